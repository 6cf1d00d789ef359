// Gathers: a thread for each pack of results. Scatters are in cuda/scatter.cu.
#include <cstring>

#include "kernels/cuda/vectorized_loop.h"
#include "ops/gather/cuda/element_offsets.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// Copies an element of a narrow float to f32 (gather.2).
template <class W>
struct WidenedTo32 {
  using In = typename W::T;
  using Out = float;
  static __device__ Out one(In x) { return canonical_nan(F{W::one(x)}).v; }
};
template <class T>
struct Unchanged {
  using In = T;
  using Out = T;
  static __device__ T one(T x) { return x; }
};
// Calls f with the copy from type t to type `out`.
template <class Fn>
void with_copy(DType t, DType out, Fn f) {
  if (out == DType::f32) return with_format(t, [&](auto format) { f(WidenedTo32<decltype(format)>{}); });
  switch (size_of(t)) {
    case 1: return f(Unchanged<uint8_t>{});
    case 2: return f(Unchanged<uint16_t>{});
    case 4: return f(Unchanged<uint32_t>{});
    default: f(Unchanged<uint64_t>{});
  }
}
template <class T>
T as_bits(uint64_t bits) {
  T x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Finds indices out of range if the result is empty, so that no thread reads them.
void check_indices(const Call& call, const IndexTuples& t, Stream stream) {
  const int64_t* index = call.in[1].as<const int64_t>();
  uint32_t* fault = call.gpu.fault;
  launch_for_each(stream, call.in[1].elements(), [=] __device__(int64_t i) {
    if (normalize_index(index[i], t.dim[i % t.width]) < 0) *fault = 1;
  });
}

// Results are runs of `inner` elements. Run r begins at x + offset_of(r); a negative offset is out
// of range.
template <int n, class C, class OffsetOf>
__global__ void __launch_bounds__(kElementwiseThreads)
    gather_runs_kernel(int64_t packs, FastDivmod inner, const typename C::In* x, typename C::Out* out,
                       typename C::Out none, uint32_t* fault, OffsetOf offset_of) {
  const int64_t i = blockIdx.x * int64_t{kElementwiseThreads} + threadIdx.x;
  trigger_and_wait();
  if (i >= packs) return;
  int64_t r = i;
  const int64_t from = inner.remainder(r) * n, at = offset_of(r);
  Pack<typename C::Out, n> y;
  if (at >= 0) {
    const auto read = load_pack<n>(x + at + from);
#pragma unroll
    for (int j = 0; j < n; ++j) y.v[j] = C::one(read.v[j]);
  } else {
    for (auto& v : y.v) v = none;
    *fault = 1;
  }
  store_pack(out + i * n, y);
}
// The same element by element.
template <class C, class OffsetOf>
void gather_elementwise(Stream stream, int64_t n, FastDivmod inner, const typename C::In* x,
                        typename C::Out* out, typename C::Out none, uint32_t* fault, OffsetOf offset_of) {
  launch_generate(stream, n, out, [=] __device__(int64_t i) {
    const int64_t from = inner.remainder(i), at = offset_of(i);
    if (at >= 0) return C::one(x[at + from]);
    *fault = 1;
    return none;
  });
}
template <class C, class OffsetOf>
void gather_runs(C, const Call& call, Stream stream, int64_t inner, OffsetOf offset_of) {
  constexpr int kPack = 16 / sizeof(typename C::In);
  const auto* x = call.in[0].as<const typename C::In>();
  auto* out = call.out[0].as<typename C::Out>();
  const auto none = as_bits<typename C::Out>(out_of_bounds_value(call.out[0].dtype));
  const int64_t n = call.out[0].elements();
  if (inner % kPack == 0 && is_aligned<kPack>(x) && is_aligned<kPack>(out))
    launch_dependent(gather_runs_kernel<kPack, C, OffsetOf>,
                     dim3(static_cast<unsigned>(ceil_div(n / kPack, kElementwiseThreads))),
                     dim3(kElementwiseThreads), 0, stream, n / kPack, FastDivmod(inner / kPack), x, out, none,
                     call.gpu.fault, offset_of);
  else
    gather_elementwise<C>(stream, n, FastDivmod(inner), x, out, none, call.gpu.fault, offset_of);
}

template <class C>
void gather_as(C copy, const Call& call, Stream stream) {
  const AxisExtents a = axis_extents(call.in[0], GatherAttributes(call).axis);
  const int64_t *index = call.in[1].as<const int64_t>(), m = call.in[1].elements();
  const FastDivmod by_m(m);
  gather_runs(copy, call, stream, a.inner, [=] __device__(int64_t r) -> int64_t {
    int64_t outer = r, i = a.outer == 1 ? r : by_m.remainder(outer);
    if (a.outer == 1) outer = 0;
    const int64_t j = normalize_index(index[i], a.n);
    return j < 0 ? -1 : (outer * a.n + j) * a.inner;
  });
}
void gather(const Call& call, Stream stream) {
  if (call.out[0].elements() == 0) {
    IndexTuples t{.width = 1};
    t.dim[0] = axis_extents(call.in[0], GatherAttributes(call).axis).n;
    return check_indices(call, t, stream);
  }
  with_copy(call.in[0].dtype, call.out[0].dtype, [&](auto copy) { gather_as(copy, call, stream); });
}

template <class C>
void gather_nd_as(C copy, const Call& call, const IndexTuples& tuples, Stream stream) {
  const IndexTuples t = tuples;
  const int64_t* index = call.in[1].as<const int64_t>();
  const FastDivmod count(t.count);
  gather_runs(copy, call, stream, t.inner, [=] __device__(int64_t r) -> int64_t {
    const int64_t slice = slice_of(t, index + r * t.width);
    return slice < 0 ? -1 : (count.quotient(r) * t.slices + slice) * t.inner;
  });
}
void gather_nd(const Call& call, Stream stream) {
  const IndexTuples t = index_tuples(call.in[0], call.in[1], GatherNdAttributes(call).batch_dims);
  if (call.out[0].elements() == 0) return check_indices(call, t, stream);
  with_copy(call.in[0].dtype, call.in[0].dtype, [&](auto copy) { gather_nd_as(copy, call, t, stream); });
}

template <class C>
void gather_elements_as(C, const Call& call, Stream stream) {
  using Out = typename C::Out;
  const ElementOffsets offset_of(call.in[0], call.in[1], GatherElementsAttributes(call).axis);
  const auto* from = call.in[0].as<const typename C::In>();
  const Out none = as_bits<Out>(out_of_bounds_value(call.out[0].dtype));
  uint32_t* fault = call.gpu.fault;
  launch_generate(stream, call.out[0].elements(), call.out[0].as<Out>(), [=] __device__(int64_t o) {
    const int64_t at = offset_of(o);
    if (at >= 0) return C::one(from[at]);
    *fault = 1;
    return none;
  });
}
void gather_elements(const Call& call, Stream stream) {
  with_copy(call.in[0].dtype, call.out[0].dtype, [&](auto copy) { gather_elements_as(copy, call, stream); });
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_ROW_IS(name)                   \
  extern const GpuKernel INVAR_ROW_OF(name); \
  const GpuKernel INVAR_ROW_OF(name) = {.op = #name, .isa = INVAR_ISA, .enqueue = INVAR_ISA_NS::name};
INVAR_ROW_IS(gather)
INVAR_ROW_IS(gather_elements)
INVAR_ROW_IS(gather_nd)
#undef INVAR_ROW_IS

}  // namespace invar::ops
