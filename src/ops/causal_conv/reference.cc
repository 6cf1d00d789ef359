// spec: causal_conv.1 - causal_conv.6; sums: spec/contraction.md.
#include <algorithm>

#include "kernels/batch_independence.h"
#include "kernels/check.h"
#include "kernels/reference.h"
#include "num/contract/reference.h"
#include "ops/causal_conv/causal_conv.h"

namespace invar::ops {
namespace {

using causal_conv::Geometry;

// A unit is a channel of a sequence.
int64_t units(const Call& call, int) {
  const Geometry g = causal_conv::geometry(call);
  return g.batch * g.channels;
}

void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &x = call.in[0], &w = call.in[1];
  const Geometry g = causal_conv::geometry(call);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t b = unit / g.channels, c = unit % g.channels, past = causal_conv::past_of(call, b);
    const auto at = [&](int64_t p) { return (b * g.seq + p - past) * g.channels + c; };
    const auto kept = [&](int64_t p) {
      return causal_conv::state_row(call, g, call.sequences[b].slot, p) + c;
    };
    for (int64_t p = past; p < past + g.seq; ++p) {
      const int64_t first = std::max(g.width - 1 - p, int64_t{0});  // causal_conv.2: the first tap
      float y = num::canonicalize(num::reference::contract(
          g.width - first,
          [&](int64_t k) {
            const int64_t q = p - (g.width - 1) + first + k;
            return q < past ? *kept(q) : value(x, at(q));
          },
          [&](int64_t k) { return value(w, c * g.width + first + k); }));
      if (call.in.size() == 3) y = num::canonicalize(y + value(call.in[2], c));  // causal_conv.3
      store_canonical(call.out[0], at(p), y);
    }
    // causal_conv.4
    if (!call.state || g.width == 1) continue;
    for (int64_t p = std::max(past, past + g.seq - g.width); p < past + g.seq; ++p)
      *kept(p) = value(x, at(p));
  }
}

const char* check(const Call& c) {
  if (c.in.size() != 2 && c.in.size() != 3) return "x, weights, perhaps a bias, and one result";
  if (c.out.size() != 1) return "one result";
  const View &x = c.in[0], &w = c.in[1];
  if (!is_f32(x) || !is_weight(w) || !is_f32(c.out[0])) return "f32, and weights of f32, bf16 or f16";
  if (x.rank != 3) return "x [batch, seq, channels]";
  if (w.rank != 2 || w.dim[0] != x.dim[2] || w.dim[1] < 1 || w.dim[1] > causal_conv::kWidest)
    return "weights [channels, width] with a width of 1 to 8";
  if (c.in.size() == 3 && (!is_weight(c.in[2]) || c.in[2].rank != 1 || c.in[2].dim[0] != x.dim[2]))
    return "a bias [channels] of f32, bf16 or f16";
  return same_shape(x, c.out[0]) ? nullptr : "a result shaped like x";
}

}  // namespace

extern const OpContract contract_causal_conv;
extern const CpuKernel row_causal_conv_reference;
const OpContract contract_causal_conv = {.op = "causal_conv",
                                         .check = check,
                                         .batch_independent = batch_independent_first_operand,
                                         .stateful = true};
const CpuKernel row_causal_conv_reference = {.op = "causal_conv",
                                             .isa = "reference",
                                             .units = units,
                                             .run = run,
                                             .state_bytes = causal_conv::state_bytes};

}  // namespace invar::ops
