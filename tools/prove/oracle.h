// The correctly rounded value of a function of src/num/function_list.h, for proofs.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace invar::prove {

class Oracle {
 public:
  explicit Oracle(std::string_view function);  // one per thread: MPFR's exponent range belongs to the thread
  ~Oracle();
  Oracle(const Oracle&) = delete;
  static bool knows(std::string_view function);
  // The bits of f(x) rounded to nearest even, NaN as 7fc00000.
  uint32_t value(float x);
  int64_t judged() const { return judged_; }  // how many inputs went to MPFR

 private:
  uint32_t judge(float x);
  struct Impl;
  std::unique_ptr<Impl> impl_;
  int64_t judged_ = 0;
};

}  // namespace invar::prove
