// Division of indices by sizes that a call fixes, by multiplication: a GPU has no instruction that divides.
#pragma once
#include "ops/launch.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// With 2^(s - 1) < d <= 2^s and m = ceil(2^(63 + s) / d), m d = 2^(63 + s) + e, 0 <= e < d, so that for 0 <= n < 2^63
// n m / 2^(63 + s) = n / d + n e / (d 2^(63 + s)) exceeds n / d by less than 1 / d: floored it is the quotient.
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(int64_t d) : d_(d) {
    if (d < 2) return;
    const int s = 64 - __builtin_clzll(static_cast<uint64_t>(d) - 1);
    const auto power = static_cast<unsigned __int128>(1) << (63 + s);
    m_ = static_cast<uint64_t>((power + static_cast<uint64_t>(d) - 1) / static_cast<uint64_t>(d));
    shift_ = s - 1;
  }
  // For n >= 0. A divisor of 0, where a tensor has no elements, divides nothing.
  __device__ int64_t quotient(int64_t n) const {
    return m_ ? static_cast<int64_t>(__umul64hi(static_cast<uint64_t>(n), m_) >> shift_) : n;
  }
  __device__ int64_t divisor() const { return d_; }
  // Leaves the quotient in n.
  __device__ int64_t remainder(int64_t& n) const {
    const int64_t q = quotient(n), r = n - q * d_;
    n = q;
    return r;
  }

 private:
  int64_t d_ = 1;
  uint64_t m_ = 0;
  int shift_ = 0;
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
