// cross_entropy and its gradient. Included by cpu.cc only.
#pragma once
#include "ops/softmax/cpu/contiguous.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Row i of x [N, C]: its class, if it has one, and what its log_softmax is made of.
struct ClassRow {
  const float* x;
  int64_t n, t;
  bool ignored;
  F most, log_sum;
  [[gnu::always_inline]] ClassRow(const Call& call, int64_t ignore, int64_t i) {
    const View &rows = call.in[call.in.size() - 2], &target = call.in[call.in.size() - 1];
    n = rows.dim[1], x = rows.as<const float>() + i * n, t = target.as<const int64_t>()[i];
    ignored = t == ignore;
    most = maximum_of<true>(x, n);
    log_sum = num::INVAR_ISA_NS::log(set1(sum_of_weights<true>(x, nullptr, n, most)));
  }
  [[gnu::always_inline]] bool has_class() const { return !ignored && t >= 0 && t < n; }
  [[gnu::always_inline]] F y(F v) const { return canonicalize(sub(sub(v, most), log_sum)); }  // softmax.6
};

void run_cross_entropy(const Call& call, int, int64_t begin, int64_t end, void*) {
  const int64_t ignore = CrossEntropyAttributes(call).ignore;
  for (int64_t i = begin; i < end; ++i) {
    const ClassRow row(call, ignore, i);
    const F loss = row.has_class() ? canonicalize(neg(row.y(set1(row.x[row.t]))))  // softmax.12
                   : row.ignored   ? zero()
                                   : from_bits(set1_i(0x7fc00000));
    call.out[0].as<float>()[i] = first(loss);
  }
}

void run_cross_entropy_backward(const Call& call, int, int64_t begin, int64_t end, void*) {
  const int64_t ignore = CrossEntropyAttributes(call).ignore;
  for (int64_t i = begin; i < end; ++i) {
    const ClassRow row(call, ignore, i);
    float* const out = call.out[0].as<float>() + i * row.n;
    F u = zero();  // softmax.13
    if (row.has_class())
      u = canonicalize(add(zero(), canonicalize(neg(set1(call.in[0].as<const float>()[i])))));
    const auto part = [&](F v, F here) __attribute__((always_inline)) {
      const F y = row.y(v);
      const F e = num::INVAR_ISA_NS::exp_stored(select(lt(zero(), y), zero(), y));
      return fma(neg(e), u, here);
    };
    strip(
        out, row.n, [&](int64_t j, int lanes) __attribute__((always_inline)) {
          return part(load_part(row.x + j, lanes), zero());
        });
    if (row.has_class()) out[row.t] = first(canonicalize(part(set1(row.x[row.t]), u)));
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
