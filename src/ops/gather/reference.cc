// spec: gather.1 - gather.9.
#include "kernels/reference.h"

#include <cstring>

#include "kernels/check.h"
#include "ops/gather/index.h"

namespace invar::ops {
namespace {

// Element o of the result is element `from` of operand 0, or the out-of-bounds value if negative.
void put_copy(const Call& call, int64_t o, int64_t from) {
  const View &x = call.in[0], &out = call.out[0];
  size_t width = size_of(out.dtype);
  char* to = out.as<char>() + o * static_cast<int64_t>(width);
  uint64_t bits = out_of_bounds_value(out.dtype);
  if (from >= 0 && out.dtype == DType::f32) bits = num::f32_bits(canonical_nan(value(x, from)));
  if (from >= 0 && out.dtype != DType::f32) {
    std::memcpy(to, x.as<char>() + from * static_cast<int64_t>(width), width);
  } else if (width == 1) {
    *to = static_cast<char>(bits);
  } else if (width == 2) {
    *reinterpret_cast<uint16_t*>(to) = static_cast<uint16_t>(bits);
  } else if (width == 4) {
    *reinterpret_cast<uint32_t*>(to) = static_cast<uint32_t>(bits);
  } else {
    *reinterpret_cast<uint64_t*>(to) = bits;
  }
}
template <class Fn>
void each_result(const Call& call, int64_t begin, int64_t end, Fn from) {
  int64_t n = call.out[0].elements();
  for (int64_t o = begin * kChunk; o < n && o < end * kChunk; ++o) put_copy(call, o, from(o));
}

void gather(const Call& call, int, int64_t begin, int64_t end, void*) {
  const AxisExtents a = axis_extents(call.in[0], GatherAttributes(call).axis);
  int64_t m = call.in[1].elements();
  each_result(call, begin, end, [&](int64_t o) -> int64_t {
    int64_t c = o % a.inner, i = o / a.inner % m, outer = o / a.inner / m;
    int64_t j = normalize_index(call.in[1].as<int64_t>()[i], a.n);
    return j < 0 ? -1 : (outer * a.n + j) * a.inner + c;
  });
}

// The offset in x of element o of `index`, with the index value in place of the axis; -1: out of
// bounds.
int64_t offset_along_axis(const View& x, const View& index, int64_t o, int axis) {
  int64_t at = 0, stride = 1, rest = o;
  for (int d = x.rank - 1; d >= 0; --d) {
    int64_t i = rest % index.dim[d];
    rest /= index.dim[d];
    if (d == axis && (i = normalize_index(index.as<int64_t>()[o], x.dim[d])) < 0) return -1;
    at += i * stride, stride *= x.dim[d];
  }
  return at;
}

void gather_elements(const Call& call, int, int64_t begin, int64_t end, void*) {
  int axis = axis_in(call.in[0], GatherElementsAttributes(call).axis);
  each_result(call, begin, end,
              [&](int64_t o) { return offset_along_axis(call.in[0], call.in[1], o, axis); });
}

void gather_nd(const Call& call, int, int64_t begin, int64_t end, void*) {
  const IndexTuples t = index_tuples(call.in[0], call.in[1], GatherNdAttributes(call).batch_dims);
  each_result(call, begin, end, [&](int64_t o) -> int64_t {
    int64_t tuple = o / t.inner, slice = slice_of(t, call.in[1].as<int64_t>() + tuple * t.width);
    return slice < 0 ? -1 : (tuple / t.count * t.slices + slice) * t.inner + o % t.inner;
  });
}

int64_t one_unit(const Call&, int) {
  return 1;
}

// gather.7, gather.8: a copy, then each update in row-major order at place(its element).
template <class Fn>
void scatter(const Call& call, Fn place) {
  const View &out = call.out[0], &updates = call.in[2];
  size_t bytes = static_cast<size_t>(out.elements()) * size_of(out.dtype);
  if (bytes) std::memcpy(out.data, call.in[0].data, bytes);
  with_reduction(ScatterNdAttributes(call).reduction, out.dtype, [&](auto zero, auto how) {
    using T = decltype(zero);
    int64_t n = updates.elements();
    for (int64_t i = 0; i < n; ++i) {
      int64_t at = place(i);
      if (at >= 0) out.as<T>()[at] = reduce_update<decltype(how)::value>(out.as<T>()[at], updates.as<T>()[i]);
    }
  });
}

void scatter_elements(const Call& call, int, int64_t begin, int64_t end, void*) {
  int axis = axis_in(call.in[0], ScatterElementsAttributes(call).axis);
  if (begin < end)
    scatter(call, [&](int64_t i) { return offset_along_axis(call.in[0], call.in[1], i, axis); });
}

void scatter_nd(const Call& call, int, int64_t begin, int64_t end, void*) {
  const IndexTuples t = index_tuples(call.in[0], call.in[1], 0);
  if (begin < end)
    scatter(call, [&](int64_t i) -> int64_t {
      int64_t slice = slice_of(t, call.in[1].as<int64_t>() + i / t.inner * t.width);
      return slice < 0 ? -1 : slice * t.inner + i % t.inner;
    });
}

// Batched indices into one table, or one list of indices into a batched table.
bool gather_batch_independent(const Call& c, uint64_t batched) {
  return batched == (axis_in(c.in[0], GatherAttributes(c).axis) == 0 ? 2u : 1u);
}
// Batched indices into a batched table, along another axis.
bool gather_elements_batch_independent(const Call& c, uint64_t batched) {
  return batched == 3 && axis_in(c.in[0], GatherElementsAttributes(c).axis) > 0;
}

}  // namespace

#define INVAR_ROW_IS(name, units_of, out_of_bounds_of, batch_independent_of)      \
  extern const OpContract contract_##name;                                        \
  extern const CpuKernel row_##name##_reference;                                  \
  const OpContract contract_##name = {.op = #name,                                \
                                      .check = name##_check,                      \
                                      .find_out_of_bounds = out_of_bounds_of,     \
                                      .batch_independent = batch_independent_of}; \
  const CpuKernel row_##name##_reference = {.op = #name, .isa = "reference", .units = units_of, .run = name};
INVAR_ROW_IS(gather, chunk_units, gather_out_of_bounds, gather_batch_independent)
INVAR_ROW_IS(gather_elements, chunk_units, gather_out_of_bounds, gather_elements_batch_independent)
INVAR_ROW_IS(gather_nd, chunk_units, gather_nd_out_of_bounds, nullptr)
INVAR_ROW_IS(scatter_elements, one_unit, gather_out_of_bounds, nullptr)
INVAR_ROW_IS(scatter_nd, one_unit, scatter_nd_out_of_bounds, nullptr)
#undef INVAR_ROW_IS

}  // namespace invar::ops
