// Division of indices by a divisor that a call fixes, by multiplication and shift: a GPU has no
// division instruction.
#pragma once
#include "kernels/cuda/launch.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// With 2^(s - 1) < d <= 2^s and m = ceil(2^(63 + s) / d), m d = 2^(63 + s) + e, 0 <= e < d, so that
// for 0 <= n < 2^63 the value n m / 2^(63 + s) = n / d + n e / (d 2^(63 + s)) exceeds n / d by less
// than 1 / d: its floor is the quotient. m is below 2^64; only the upper word of the product 2n m
// is needed. The same holds with 31 for 63 where n is below 2^31, which is faster.
class FastDivmod {
 public:
  FastDivmod() : FastDivmod(1) {}
  explicit FastDivmod(int64_t d)
      : d_(d > 1 ? d : 1) {  // a tensor without elements has d = 0, which is never used
    const auto divisor = static_cast<uint64_t>(d_);
    shift_ = d_ == 1 ? 0 : 64 - __builtin_clzll(divisor - 1);
    wide_ =
        static_cast<uint64_t>(((static_cast<unsigned __int128>(1) << (63 + shift_)) + divisor - 1) / divisor);
    if (d_ >> 31 == 0)
      narrow_ = static_cast<uint32_t>(((uint64_t{1} << (31 + shift_)) + divisor - 1) / divisor);
  }
  __device__ int64_t divisor() const { return d_; }
  // For n >= 0.
  __device__ int64_t quotient(int64_t n) const {
    if (n >> 31 == 0) return __umulhi(static_cast<uint32_t>(n) * 2, narrow_) >> (shift_ & 31);
    return static_cast<int64_t>(__umul64hi(static_cast<uint64_t>(n) * 2, wide_) >> shift_);
  }
  // Returns n mod d, and replaces n by the quotient.
  __device__ int64_t remainder(int64_t& n) const {
    const int64_t from = n;
    n = quotient(n);
    return from - n * d_;
  }
  __device__ int32_t remainder(int32_t& n) const {
    const int32_t from = n;
    n = static_cast<int32_t>(__umulhi(static_cast<uint32_t>(n) * 2, narrow_) >> (shift_ & 31));
    return from - n * static_cast<int32_t>(d_);
  }

 private:
  int64_t d_;
  uint64_t wide_;
  uint32_t narrow_ = 0;  // 0 if the divisor exceeds every n below 2^31: then the quotient is 0
  int shift_;
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
