// A program between two places where sizes become known or control flows (plan.15, plan.16), made for the sizes of a call.
#pragma once

#include <map>
#include <optional>

#include "shape/dim_expr.h"
#include "run/prepare/program.h"
#include "run/session.h"

namespace invar::run {

// What a plan's symbols stand for, read once.
class Symbols {
 public:
  Symbols() = default;
  explicit Symbols(const plan::Plan&);
  bool is_name(int symbol) const { return !sums_[static_cast<size_t>(symbol)]; }
  // That of a name, or what plan.12 computes from those that are known, which others are -1; -1: that is no dimension.
  int64_t size(int symbol, const std::vector<int64_t>& sizes) const;

 private:
  std::map<std::string, size_t> names_;
  std::vector<std::optional<Polynomial>> sums_;  // of those that are no names
};

// What all parts of a program share.
struct Setting {
  Symbols symbols;
  std::string folder;
  std::unique_ptr<Pool> pool;
  std::shared_ptr<Device> device;  // null: the host
  Options options;
};

class PartProgram {
 public:
  explicit PartProgram(plan::Part part);

  // Loads weights; of a part that `waits` for sizes that are bound, not if it fits none of those that are tried: then resize() does.
  Status open(const Setting&, bool waits);
  // Makes ready for sizes of the whole plan's symbols, each at least 0 or not known yet, which is -1; the same for those that it has: is ready.
  Status resize(const Setting&, const std::vector<int64_t>& sizes);
  Program& program() { return program_; }  // of the last sizes
  const Program& program() const { return program_; }
  const plan::Part& part() const { return part_; }
  Status weights_unchanged() { return weights_ ? weights_->unchanged(part_.plan) : Status(); }
  size_t bytes() const { return program_.bytes() + (weights_ ? weights_->bytes() : 0); }

 private:
  Status load(const Setting&, const Program&);

  plan::Part part_;
  std::vector<size_t> symbols_;  // of the whole, that occur in it
  std::optional<Weights> weights_;
  std::vector<const ops::Kernel*> packed_for_;
  // Of the last sizes.
  std::vector<int64_t> sizes_;  // of symbols_
  std::unique_ptr<plan::Plan> sized_;
  Program program_;
};

}  // namespace invar::run
