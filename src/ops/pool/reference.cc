// spec: pool.1 - pool.8; the sum: spec/contraction.md.
#include <cmath>

#include "kernels/check.h"
#include "kernels/reference.h"
#include "num/contract/reference.h"
#include "ops/pool/pool.h"

namespace invar::ops {
namespace {

using slide::kAxes;

// Calls fn(t, element of the channel) for the taps t of window o inside x, row-major, so that the
// cost is theirs and not the window's.
template <class Fn>
void each_inside(const pool::PoolGeometry& p, int64_t o, Fn fn) {
  int64_t at[kAxes], first[kAxes], taps[kAxes];
  for (int d = kAxes - 1; d >= 0; --d) {
    const slide::Axis& a = p.axis[d];
    first[d] = pool::first_tap_inside(a, o % a.out), taps[d] = pool::taps_inside(a, o % a.out, false);
    at[d] = o % a.out * a.stride - a.pad;
    o /= a.out;
  }
  auto place = [&](int d, int64_t t) { return at[d] + t * p.axis[d].dilation; };
  for (int64_t i = first[0]; i < first[0] + taps[0]; ++i)
    for (int64_t j = first[1]; j < first[1] + taps[1]; ++j)
      for (int64_t k = first[2]; k < first[2] + taps[2]; ++k)
        fn((i * p.axis[1].kernel + j) * p.axis[2].kernel + k,
           (place(0, i) * p.axis[1].in + place(1, j)) * p.axis[2].in + place(2, k));
}

int64_t size_in(const pool::PoolGeometry& p) {
  return p.axis[0].in * p.axis[1].in * p.axis[2].in;
}
int64_t size_out(const pool::PoolGeometry& p) {
  return p.axis[0].out * p.axis[1].out * p.axis[2].out;
}

// fn(geometry, elements of the channel, output of the channel).
template <class Fn>
void each_output(const Call& call, int64_t begin, int64_t end, Fn fn) {
  const pool::PoolGeometry p = pool::geometry_of(call);
  const int64_t n = call.out[0].elements();
  for (int64_t i = begin * kChunk; i < n && i < end * kChunk; ++i)
    store_canonical(call.out[0], i,
                    fn(p, call.in[0].as<const float>() + i / size_out(p) * size_in(p), i % size_out(p)));
}

void max_pool(const Call& call, int, int64_t begin, int64_t end, void*) {
  each_output(call, begin, end, [](const pool::PoolGeometry& p, const float* x, int64_t o) {
    float most = -INFINITY;
    each_inside(p, o, [&](int64_t, int64_t e) { most = maximum(most, x[e]); });  // pool.3
    return most;
  });
}

void max_pool_indices(const Call& call, int, int64_t begin, int64_t end, void*) {
  const pool::PoolGeometry p = pool::geometry_of(call);
  const bool by_columns = MaxPoolIndicesAttributes(call).column_major != 0;
  const int64_t n = call.out[0].elements();
  for (int64_t i = begin * kChunk; i < n && i < end * kChunk; ++i) {
    const int64_t channel = i / size_out(p);
    const float* x = call.in[0].as<const float>() + channel * size_in(p);
    int64_t best = -1;
    each_inside(p, i % size_out(p), [&](int64_t, int64_t e) {  // pool.4
      if (best < 0 || x[e] > x[best] || (x[e] != x[e] && x[best] == x[best])) best = e;
    });
    if (best >= 0 && by_columns) {
      const int64_t high = call.in[0].rank > 3 ? call.in[0].dim[call.in[0].rank - 2] : 1,
                    wide = last_dim(call.in[0]);
      const int64_t deep = size_in(p) / (high * wide), d = best / (high * wide), h = best / wide % high,
                    w = best % wide;
      best = (w * high + h) * deep + d;
    }
    call.out[0].as<int64_t>()[i] = best < 0 ? -1 : channel * size_in(p) + best;
  }
}

// The contraction of a(element) with b(element). A tap in the padding is +0 times 1 or +0:
// contraction.5.
template <class A, class B>
float sum(const pool::PoolGeometry& p, const float* x, int64_t o, A a, B b) {
  return num::reference::contract_some(p.taps, [&](auto term) {
    each_inside(p, o, [&](int64_t t, int64_t e) { term(t, a(x[e]), b(x[e])); });
  });
}
float same(float v) {
  return v;
}
float one(float) {
  return 1;
}

void average_pool(const Call& call, int, int64_t begin, int64_t end, void*) {
  const bool padded = AveragePoolAttributes(call).count_include_pad != 0;
  each_output(call, begin, end, [&](const pool::PoolGeometry& p, const float* x, int64_t o) {
    int64_t count = 1, rest = o;
    for (int d = kAxes - 1; d >= 0; --d)
      count *= pool::taps_inside(p.axis[d], rest % p.axis[d].out, padded), rest /= p.axis[d].out;
    return sum(p, x, o, same, one) / static_cast<float>(count);  // pool.5
  });
}

void lp_pool(const Call& call, int, int64_t begin, int64_t end, void*) {
  const bool squares = LpPoolAttributes(call).p == 2;
  each_output(call, begin, end, [&](const pool::PoolGeometry& p, const float* x, int64_t o) {
    if (squares) return std::sqrt(sum(p, x, o, same, same));  // pool.6
    return sum(
        p, x, o, [](float v) { return std::fabs(v); }, one);
  });
}

const char* check(const Call& c) {
  if (const char* wrong = pool::check(c)) return wrong;
  return is_f32(c.out[0]) ? nullptr : "an f32 result";
}
const char* check_indices(const Call& c) {
  if (const char* wrong = pool::check(c)) return wrong;
  return c.out[0].dtype == DType::i64 ? nullptr : "an i64 result";
}
const char* check_lp(const Call& c) {
  const int64_t p = LpPoolAttributes(c).p;
  return p == 1 || p == 2 ? check(c) : "a p of 1 or 2";
}

}  // namespace

extern const OpContract contract_max_pool, contract_max_pool_indices, contract_average_pool, contract_lp_pool;
extern const CpuKernel row_max_pool_reference, row_max_pool_indices_reference, row_average_pool_reference,
    row_lp_pool_reference;
const OpContract contract_max_pool = {.op = "max_pool", .check = check};
const CpuKernel row_max_pool_reference = {
    .op = "max_pool", .isa = "reference", .units = chunk_units, .run = max_pool};
const OpContract contract_max_pool_indices = {.op = "max_pool_indices", .check = check_indices};
const CpuKernel row_max_pool_indices_reference = {
    .op = "max_pool_indices", .isa = "reference", .units = chunk_units, .run = max_pool_indices};
const OpContract contract_average_pool = {.op = "average_pool", .check = check};
const CpuKernel row_average_pool_reference = {
    .op = "average_pool", .isa = "reference", .units = chunk_units, .run = average_pool};
const OpContract contract_lp_pool = {.op = "lp_pool", .check = check_lp};
const CpuKernel row_lp_pool_reference = {
    .op = "lp_pool", .isa = "reference", .units = chunk_units, .run = lp_pool};

}  // namespace invar::ops
