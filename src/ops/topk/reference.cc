// spec: topk.1 - topk.5.
#include "kernels/reference.h"

#include "kernels/batch_independence.h"
#include "kernels/check.h"
#include "ops/topk/topk.h"

namespace invar::ops {
namespace {

// topk.2: whether a precedes b in descending (or ascending) order.
bool before(float a, float b, bool largest) {
  if (a != a || b != b) return largest ? a != a && b == b : a == a && b != b;
  return largest ? a > b : a < b;
}

void topk(const Call& call, int, int64_t begin, int64_t end, void*) {
  const TopkShape s = topk_shape(call);
  for (int64_t row = begin; row < end; ++row) {
    int64_t from = row / s.inner * s.n * s.inner + row % s.inner;
    int64_t to = row / s.inner * s.k * s.inner + row % s.inner;
    const float* x = call.in[0].as<const float>() + from;
    // topk.3: the order of (value, index); each next element is the first after the previous one.
    auto ahead = [&](int64_t a, int64_t b) {
      if (before(x[a * s.inner], x[b * s.inner], s.largest)) return true;
      return !before(x[b * s.inner], x[a * s.inner], s.largest) && a < b;
    };
    int64_t last = -1;
    for (int64_t j = 0; j < s.k; ++j) {
      int64_t best = -1;
      for (int64_t i = 0; i < s.n; ++i)
        if ((last < 0 || ahead(last, i)) && (best < 0 || ahead(i, best))) best = i;
      call.out[0].as<int64_t>()[to + j * s.inner] = last = best;
    }
  }
}

const char* check(const Call& c) {
  if (!has_operands(c, 1, 1) || !is_f32(c.in[0]) || c.out[0].dtype != DType::i64)
    return "an f32 operand and an i64 result";
  const View &x = c.in[0], &out = c.out[0];
  const TopkAttributes a(c);
  int axis = axis_in(x, a.axis);
  int64_t largest = a.largest;
  if (axis < 0) return "an axis of the operand";
  if (largest != 0 && largest != 1) return "largest of 0 or 1";
  if (out.rank != x.rank) return "a result of the operand's rank";
  for (int d = 0; d < x.rank; ++d)
    if (d == axis ? out.dim[d] > x.dim[d] : out.dim[d] != x.dim[d])
      return "a result shaped like the operand, with at most its elements along the axis";
  return x.dim[axis] <= INT32_MAX ? nullptr : "an axis of fewer than 2^31 elements";
}

}  // namespace

extern const OpContract contract_topk;
extern const CpuKernel row_topk_reference;
const OpContract contract_topk = {
    .op = "topk", .check = check, .batch_independent = batch_independent_along_axis<TopkAttributes>};
const CpuKernel row_topk_reference = {.op = "topk", .isa = "reference", .units = topk_units, .run = topk};

}  // namespace invar::ops
