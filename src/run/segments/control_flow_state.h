// The state of a control-flow node between the runs of its bodies (plan.16).
#pragma once

#include <algorithm>

#include "run/segments/block_executor.h"

namespace invar::run {

// A loop-carried value: a copy of what the last iteration computed for the next.
class LoopCarriedValue {
 public:
  Status store(const ExecutionContext&, const TensorRef&);
  const TensorRef& value() const { return value_; }
  bool has_shape(const ops::View& v) const {
    return v.rank == value_.view.rank && std::equal(v.dim, v.dim + v.rank, value_.view.dim);
  }
  size_t bytes() const { return memory_.size(); }

 private:
  Allocation memory_;
  TensorRef value_{};
};

// A scan output of a loop: one value per iteration, stacked along a new leading axis.
class ScanOutput {
 public:
  void clear() { count_ = 0, bytes_ = 0; }
  // Error: the value's shape differs from that of the earlier ones.
  Status append(const ExecutionContext&, const TensorRef&);
  // The stacked values. `element`: the type and shape of one if there is none.
  ops::View stacked(const ops::View& element) const;
  size_t bytes() const { return memory_.size(); }

 private:
  Allocation memory_;
  ops::View element_;
  int64_t count_ = 0;
  size_t bytes_ = 0;  // that are filled
};

struct ControlFlowState {
  const plan::Node& node;
  int number;  // of the node, in errors
  std::vector<std::unique_ptr<BlockExecutor>> bodies{};
  // A loop has these:
  std::vector<LoopCarriedValue> carried{};
  std::vector<ScanOutput> scans{};
  int64_t iteration = 0;               // the first input of the body points here
  bool condition_is_constant = false;  // every iteration computes the condition of the first

  Status weights_unchanged();
  size_t bytes() const;
};

}  // namespace invar::run
