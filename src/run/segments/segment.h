// The executor of one plan segment (plan.15, plan.16). All sizes of a segment are known when it
// starts, so it is prepared for constant sizes, again for each new combination of sizes.
#pragma once

#include <map>

#include "run/execute/executor.h"
#include "run/prepare/prepare.h"
#include "run/session.h"
#include "shape/dim_expr.h"

namespace invar::run {

// The symbols of a plan, indexed once: names, and expressions of names.
class DimSymbols {
 public:
  DimSymbols() = default;
  explicit DimSymbols(const plan::Plan&);
  bool is_name(int symbol) const { return exprs_[static_cast<size_t>(symbol)].as_symbol(); }
  // The size of a name as it is in `sizes`, or the value of an expression of the names (plan.12).
  // In `sizes` -1 means unknown; a result of -1 means unknown or no dimension.
  int64_t evaluate(int symbol, const std::vector<int64_t>& sizes) const;

 private:
  std::map<std::string, size_t> names_;
  std::vector<DimExpr> exprs_;  // per symbol
};

// The part that all executors of a function share.
struct ExecutionContext {
  DimSymbols symbols;
  std::string folder;
  std::unique_ptr<Pool> pool;
  std::shared_ptr<Device> device;  // null: the host
  Options options;
};

class SegmentExecutor {
 public:
  explicit SegmentExecutor(plan::Segment segment);

  // Loads the weights, packed for the first of some sizes that every room accepts. If none of them
  // is accepted, resize() loads the weights. A segment without symbols must be accepted, unless
  // calls `may_skip` it, since it is behind data-dependent sizes or control flow.
  Status open(const ExecutionContext&, bool may_skip);
  // Prepares the segment for sizes of the whole plan's symbols; -1: not known yet, so not used
  // here. Does nothing if the segment's symbols have the sizes of the last call.
  Status resize(const ExecutionContext&, const std::vector<int64_t>& sizes);
  Executor& executor() const { return *executor_; }  // for the last sizes
  bool has_executor() const { return executor_ != nullptr; }
  const plan::Segment& segment() const { return segment_; }
  Status weights_unchanged() { return weights_ ? weights_->unchanged(segment_.plan) : Status(); }
  size_t bytes() const { return (executor_ ? executor_->bytes() : 0) + (weights_ ? weights_->bytes() : 0); }

 private:
  Result<std::shared_ptr<const Executable>> prepare(const ExecutionContext&, const plan::Plan&,
                                                    const PassObserver& = {}) const;
  Status load(const ExecutionContext&, const Executable&);

  plan::Segment segment_;
  std::vector<size_t> symbols_;  // the whole plan's symbols that occur in a shape of this segment
  std::optional<Weights> weights_;
  std::vector<ops::KernelRef> packed_for_;
  // These belong to the last sizes:
  std::vector<int64_t> sizes_;  // of symbols_
  std::unique_ptr<plan::Plan> specialized_plan_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace invar::run
