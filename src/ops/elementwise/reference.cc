// spec: elementwise.1 - elementwise.15. One element at a time over the one-lane arithmetic
// of num/lane: the broadcast index, the widened value, and the graph.
#include "kernels/reference.h"
#include "kernels/batch_independence.h"
#include "kernels/check.h"
#include "ops/elementwise/cpu/maps.h"

namespace invar::ops {
namespace portable {
namespace {

// elementwise.2: the element of v that broadcasts to element i of the result.
int64_t element(const View& v, const View& out, int64_t i) {
  int64_t at = 0, step = 1;
  for (int back = 1; back <= v.rank; ++back) {
    int64_t size = v.dim[v.rank - back], index = i % out.dim[out.rank - back];
    i /= out.dim[out.rank - back];
    at += size == 1 ? 0 : index * step;
    step *= size;
  }
  return at;
}

void compute(const TypedMaps& kind, const Call& call, int64_t begin, int64_t end) {
  const View& out = call.out[0];
  Strip s{};
  s.n = 1;
  for (int k = 0; k < kScalars && kind.scalar[k]; ++k)
    s.scalar[k] = elementwise::scalar(call, kind.scalar[k]);
  int64_t n = out.elements();
  for (int64_t i = begin * kChunk; i < n && i < end * kChunk; ++i) {
    float wide[kOperands];
    for (int k = 0; k < kind.operands; ++k) {
      const View& v = call.in[static_cast<size_t>(k)];
      int64_t at = element(v, out, i);
      s.in[k] = v.as<const char>() + at * static_cast<int64_t>(size_of(v.dtype));
      if (v.dtype == DType::bf16 || v.dtype == DType::f16) wide[k] = value(v, at), s.in[k] = &wide[k];
    }
    s.out = out.as<char>() + i * static_cast<int64_t>(size_of(out.dtype));
    map_of(kind, call.in.back().dtype)(s);
  }
}

DType widened(DType t) {
  return t == DType::bf16 || t == DType::f16 ? DType::f32 : t;
}

const char* check(const TypedMaps& kind, const Call& c) {
  if (!has_operands(c, static_cast<size_t>(kind.operands), 1)) return "its number of operands and one result";
  DType t = c.in.back().dtype;
  if (!map_of(kind, t)) return "an element type that the operation has";
  bool chooses = kind.operands == 3;
  if (chooses && c.in[0].dtype != DType::boolean) return "a condition of bool";
  for (size_t k = chooses ? 1 : 0; k < c.in.size(); ++k)
    if (!map_of(kind, c.in[k].dtype) || widened(c.in[k].dtype) != widened(t))
      return "operands of one element type";
  if (c.out[0].dtype != (kind.truth ? DType::boolean : widened(t)))
    return "a result of the operation's element type";
  for (int k = 0; k < kScalars && kind.scalar[k]; ++k) {
    if (!c.attrs || !c.attrs->contains(kind.scalar[k])) return "the attributes of its clause";
    elementwise::scalar(c, kind.scalar[k]);
  }
  return elementwise::check_shapes(c);
}

template <const TypedMaps* kind>
void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  compute(*kind, call, begin, end);
}
template <const TypedMaps* kind>
const char* check_of(const Call& call) {
  return check(*kind, call);
}

}  // namespace
}  // namespace portable

#define INVAR_EACH(how, name, ...)                                                         \
  extern const OpContract contract_##name;                                                 \
  extern const CpuKernel row_##name##_reference;                                           \
  const OpContract contract_##name = {.op = #name,                                         \
                                      .check = portable::check_of<&portable::k_##name>,    \
                                      .batch_independent = batch_independent_elementwise}; \
  const CpuKernel row_##name##_reference = {                                               \
      .op = #name, .isa = "reference", .units = chunk_units, .run = portable::run<&portable::k_##name>};
INVAR_ELEMENTWISE(INVAR_EACH)
#undef INVAR_EACH

}  // namespace invar::ops
