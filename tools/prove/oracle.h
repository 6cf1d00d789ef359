// The correctly rounded value of exp, sin or cos, for proofs.
#pragma once

#include <cstdint>
#include <string_view>

namespace invar::prove {

enum class Function { exp, sin, cos };

class Oracle {
 public:
  explicit Oracle(Function f);  // one per thread: MPFR's exponent range belongs to the thread
  ~Oracle();
  Oracle(const Oracle&) = delete;
  // The bits of f(x) rounded to nearest even, NaN as 7fc00000.
  uint32_t value(float x);
  int64_t judged() const { return judged_; }  // how many inputs the filter left to MPFR

 private:
  bool filter(float x, double& y) const;
  uint32_t judge(float x);
  struct Impl;
  Impl* impl_;
  Function f_;
  int64_t judged_ = 0;
};

}  // namespace invar::prove
