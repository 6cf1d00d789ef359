// What a node of control flow holds between the runs of its bodies (plan.16).
#pragma once

#include <algorithm>

#include "run/execute/block_executor.h"

namespace invar::run {

// A value that a step hands to the next one.
class Carried {
 public:
  Status take(const Setting&, const Found&);
  const Found& found() const { return found_; }
  bool has_shape(const ops::View& v) const {
    return v.rank == found_.view.rank && std::equal(v.dim, v.dim + v.rank, found_.view.dim);
  }
  size_t bytes() const { return memory_.size(); }

 private:
  Block memory_;
  Found found_{};
};

// Values of one shape, one for each step, one behind the other.
class Rows {
 public:
  void clear() { count_ = 0, bytes_ = 0; }
  // Error: it has not the shape of those before it.
  Status add(const Setting&, const Found&);
  // All of them along a new leading axis; of none, `row` says the shape.
  Found all(const ops::View& row) const;
  size_t bytes() const { return memory_.size(); }

 private:
  Block memory_;
  ops::View row_;
  int64_t count_ = 0;
  size_t bytes_ = 0;  // that are filled
};

struct Flow {
  const plan::Node& node;
  int number;  // of the node, in errors
  std::vector<std::unique_ptr<Scope>> bodies{};
  std::vector<Carried> carried{};
  std::vector<Rows> rows{};
  int64_t step = 0;
  bool goes_on = false;  // the condition that a step gives is what the first one gave

  Status weights_unchanged();
  size_t bytes() const;
};

}  // namespace invar::run
