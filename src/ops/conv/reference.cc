// spec: conv.1 - conv.5, conv_exact16.1 - conv_exact16.5, conv_transpose.1 -
// conv_transpose.3, conv_backward_weight.1 - conv_backward_weight.3; the sums: spec/contraction.md,
// spec/exact16.md.
#include "num/contract/reference.h"
#include "kernels/batch_independence.h"
#include "kernels/reference.h"
#include "num/exact16/reference.h"
#include "ops/conv/backward_weight.h"
#include "ops/conv/conv.h"

namespace invar::ops {
namespace {

using slide::kAxes;

// One element of the result, at position `at` on the spatial axes. product(k, operand, weight): of
// two rows.
template <class Product>
float output(const Call& call, const conv::ConvGeometry& p, bool transposed, int64_t image, int64_t m,
             const int64_t (&at)[kAxes], Product product) {
  const View &x = call.in[0], &w = call.in[1];
  const int64_t group = m / p.rows;
  int64_t first[kAxes], taps[kAxes], kernel[kAxes];
  for (int d = 0; d < kAxes; ++d) {
    const slide::Axis& a = p.axis[d];
    kernel[d] = a.kernel;
    // conv_transpose.2: taps r with (o + pad - r * dilation) divisible by the stride, ascending.
    first[d] = 0;
    while (transposed && first[d] < a.kernel && (at[d] + a.pad - first[d] * a.dilation) % a.stride != 0)
      ++first[d];
    taps[d] = slide::taps_of(a, first[d]);
  }
  auto tap = [&](int64_t t, int64_t(&r)[kAxes]) {
    for (int d = kAxes - 1; d >= 0; --d) r[d] = first[d] + t % taps[d] * p.axis[d].hop, t /= taps[d];
  };
  auto operand = [&](int64_t k) {  // conv.2: +0 outside
    int64_t r[kAxes], place = (image * p.groups + group) * p.channels + k % p.channels;
    tap(k / p.channels, r);
    for (int d = 0; d < kAxes; ++d) {
      const slide::Axis& a = p.axis[d];
      const int64_t i = transposed ? (at[d] + a.pad - r[d] * a.dilation) / a.stride
                                   : at[d] * a.stride + r[d] * a.dilation - a.pad;
      if (i < 0 || i >= a.in) return 0.0f;
      place = place * a.in + i;
    }
    return value(x, place);
  };
  auto weight = [&](int64_t k) {
    int64_t r[kAxes];
    tap(k / p.channels, r);
    return value(w, conv::weight_at(p.weights, transposed, group, m % p.rows, k % p.channels,
                                    (r[0] * kernel[1] + r[1]) * kernel[2] + r[2]));
  };
  const float y = num::canonicalize(product(taps[0] * taps[1] * taps[2] * p.channels, operand, weight));
  return call.in.size() > 2 ? y + value(call.in[2], m) : y;  // conv.3
}

template <bool kTransposed, bool kExact16 = false>
void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const conv::ConvGeometry p = conv::geometry_of(call, kTransposed);
  auto product = [](int64_t k, auto operand, auto weight) {
    if constexpr (kExact16)
      return num::reference::exact16_product(k, operand, weight);  // conv_exact16.2
    else
      return num::reference::contract(k, operand, weight);
  };
  const int64_t n = call.out[0].elements();
  for (int64_t i = begin * kChunk; i < n && i < end * kChunk; ++i) {
    int64_t at[kAxes], rest = i;
    for (int d = kAxes - 1; d >= 0; --d) at[d] = rest % p.axis[d].out, rest /= p.axis[d].out;
    store_canonical(
        call.out[0], i,
        output(call, p, kTransposed, rest / (p.groups * p.rows), rest % (p.groups * p.rows), at, product));
  }
}

// conv_backward_weight.2.
void backward_weight(const Call& call, int, int64_t begin, int64_t end, void*) {
  const conv::BackwardWeight p = conv::backward_weight(call);
  const View &grad = call.in[0], &x = call.in[1];
  const int64_t n = call.out[0].elements();
  for (int64_t i = begin * kChunk; i < n && i < end * kChunk; ++i) {
    int64_t r[kAxes], rest = i;
    for (int d = kAxes - 1; d >= 0; --d) r[d] = rest % p.axis[d].kernel, rest /= p.axis[d].kernel;
    const int64_t c = rest % p.channels, m = rest / p.channels, group = m / p.rows;
    auto of_grad = [&](int64_t k) {
      return value(grad, (k / p.pixels * p.groups * p.rows + m) * p.pixels + k % p.pixels);
    };
    auto of_x = [&](int64_t k) {  // +0 outside
      int64_t o = k % p.pixels, at[kAxes];
      for (int d = kAxes - 1; d >= 0; --d) {
        const auto& a = p.axis[d];
        at[d] = o % a.out * a.stride + r[d] * a.dilation - a.pad, o /= a.out;
        if (at[d] < 0 || at[d] >= a.in) return 0.0f;
      }
      int64_t place = (k / p.pixels * p.groups + group) * p.channels + c;
      for (int d = 0; d < kAxes; ++d) place = place * p.axis[d].in + at[d];
      return value(x, place);
    };
    store_canonical(call.out[0], i, num::reference::contract(p.k, of_grad, of_x));
  }
}

template <bool kTransposed>
const char* check(const Call& call) {
  return conv::check(call, kTransposed);
}

}  // namespace

extern const OpContract contract_conv, contract_conv_transpose;
extern const CpuKernel row_conv_reference, row_conv_transpose_reference;
const OpContract contract_conv = {.op = "conv", .check = check<false>};
const CpuKernel row_conv_reference = {
    .op = "conv", .isa = "reference", .units = chunk_units, .run = run<false>};
const OpContract contract_conv_transpose = {.op = "conv_transpose", .check = check<true>};
const CpuKernel row_conv_transpose_reference = {
    .op = "conv_transpose", .isa = "reference", .units = chunk_units, .run = run<true>};

extern const OpContract contract_conv_exact16;
extern const CpuKernel row_conv_exact16_reference;
const OpContract contract_conv_exact16 = {
    .op = "conv_exact16", .check = conv::check_exact16, .batch_independent = batch_independent_first_operand};
const CpuKernel row_conv_exact16_reference = {
    .op = "conv_exact16", .isa = "reference", .units = chunk_units, .run = run<false, true>};

extern const OpContract contract_conv_backward_weight;
extern const CpuKernel row_conv_backward_weight_reference;
const OpContract contract_conv_backward_weight = {.op = "conv_backward_weight",
                                                  .check = conv::check_backward_weight};
const CpuKernel row_conv_backward_weight_reference = {
    .op = "conv_backward_weight", .isa = "reference", .units = chunk_units, .run = backward_weight};

}  // namespace invar::ops
