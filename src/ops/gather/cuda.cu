// Copies: a thread per pack of results. Joins: threads own results and walk all updates that could meet there, in order, so
// that every result sees the order of gather.7.
#include <cstring>

#include "ops/divide.h"
#include "ops/flat.h"
#include "ops/gather/index.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// What is stored as In and copied as Out (gather.2).
template <class W>
struct Widened {
  using In = typename W::T;
  using Out = float;
  static __device__ Out one(In x) { return copied(F{W::one(x)}).v; }
};
template <class T>
struct Kept {
  using In = T;
  using Out = T;
  static __device__ T one(T x) { return x; }
};
// f(copy) for an operand of type t whose result is of type `out`.
template <class Fn>
void with_copy(DType t, DType out, Fn f) {
  if (out == DType::f32) return with_format(t, [&](auto format) { f(Widened<decltype(format)>{}); });
  switch (size_of(t)) {
    case 1: return f(Kept<uint8_t>{});
    case 2: return f(Kept<uint16_t>{});
    case 4: return f(Kept<uint32_t>{});
    default: f(Kept<uint64_t>{});
  }
}
template <class T>
T as_bits(uint64_t bits) {
  T x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Indices that name no place where no result asks for them.
void check_indices(const Call& call, const Tuples& t, Stream stream) {
  const int64_t* index = call.in[1].as<const int64_t>();
  uint32_t* fault = call.fault;
  each(stream, call.in[1].elements(), [=] __device__(int64_t i) {
    if (inside(index[i], t.dim[i % t.width]) < 0) *fault = 1;
  });
}

// Results are runs of `inner` elements; run r begins at x + place(r), or is nowhere where that is negative.
template <int n, class C, class Place>
__global__ void __launch_bounds__(kFlatThreads)
    runs_kernel(int64_t packs, Divisor inner, const typename C::In* x, typename C::Out* out,
                typename C::Out none, uint32_t* fault, Place place) {
  const int64_t i = blockIdx.x * int64_t{kFlatThreads} + threadIdx.x;
  follow();
  if (i >= packs) return;
  int64_t r = i;
  const int64_t from = inner.remainder(r) * n, at = place(r);
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
template <class C, class Place>
void short_runs(Stream stream, int64_t n, Divisor inner, const typename C::In* x, typename C::Out* out,
                typename C::Out none, uint32_t* fault, Place place) {
  fill(stream, n, out, [=] __device__(int64_t i) {
    const int64_t from = inner.remainder(i), at = place(i);
    if (at >= 0) return C::one(x[at + from]);
    *fault = 1;
    return none;
  });
}
template <class C, class Place>
void runs(C, const Call& call, Stream stream, int64_t inner, Place place) {
  constexpr int kPack = 16 / sizeof(typename C::In);
  const auto* x = call.in[0].as<const typename C::In>();
  auto* out = call.out[0].as<typename C::Out>();
  const auto none = as_bits<typename C::Out>(nowhere(call.out[0].dtype));
  const int64_t n = call.out[0].elements();
  if (inner % kPack == 0 && is_aligned<kPack>(x) && is_aligned<kPack>(out))
    launch_early(runs_kernel<kPack, C, Place>, dim3(static_cast<unsigned>(ceil_div(n / kPack, kFlatThreads))),
                 dim3(kFlatThreads), 0, stream, n / kPack, Divisor(inner / kPack), x, out, none, call.fault,
                 place);
  else
    short_runs<C>(stream, n, Divisor(inner), x, out, none, call.fault, place);
}

template <class C>
void gather_as(C copy, const Call& call, Stream stream) {
  const Axis a = axis_of(call.in[0], attr_i(call, "axis", 0));
  const int64_t *index = call.in[1].as<const int64_t>(), m = call.in[1].elements();
  const Divisor by_m(m);
  runs(copy, call, stream, a.inner, [=] __device__(int64_t r) -> int64_t {
    int64_t outer = r, i = a.outer == 1 ? r : by_m.remainder(outer);
    if (a.outer == 1) outer = 0;
    const int64_t j = inside(index[i], a.n);
    return j < 0 ? -1 : (outer * a.n + j) * a.inner;
  });
}
void gather(const Call& call, Stream stream) {
  if (call.out[0].elements() == 0) {
    Tuples t{.width = 1};
    t.dim[0] = axis_of(call.in[0], attr_i(call, "axis", 0)).n;
    return check_indices(call, t, stream);
  }
  with_copy(call.in[0].dtype, call.out[0].dtype, [&](auto copy) { gather_as(copy, call, stream); });
}

template <class C>
void gather_nd_as(C copy, const Call& call, const Tuples& tuples, Stream stream) {
  const Tuples t = tuples;
  const int64_t* index = call.in[1].as<const int64_t>();
  const Divisor count(t.count);
  runs(copy, call, stream, t.inner, [=] __device__(int64_t r) -> int64_t {
    const int64_t slice = slice_of(t, index + r * t.width);
    return slice < 0 ? -1 : (count.quotient(r) * t.slices + slice) * t.inner;
  });
}
void gather_nd(const Call& call, Stream stream) {
  const Tuples t = tuples_of(call.in[0], call.in[1], attr_i(call, "batch_dims", 0));
  if (call.out[0].elements() == 0) return check_indices(call, t, stream);
  with_copy(call.in[0].dtype, call.in[0].dtype, [&](auto copy) { gather_nd_as(copy, call, t, stream); });
}

// The dimensions of indices beside an axis, innermost first, with their strides in x and in the indices.
struct Beside {
  int rank = 0;
  Divisor dim[kMaxRank];
  int64_t stride[kMaxRank], step[kMaxRank];
  int64_t lines = 1, n = 0, length = 0;      // all of them; the axis in x and in the indices
  int64_t along_stride = 1, along_step = 1;  // of the axis
};
Beside beside(const View& x, const View& index, int64_t axis) {
  Beside b;
  int64_t stride = 1, step = 1;
  if (axis < 0) axis += x.rank;
  for (int d = x.rank - 1; d >= 0; --d) {
    if (d == axis) {
      b.n = x.dim[d], b.length = index.dim[d];
      b.along_stride = stride, b.along_step = step;
    } else {
      b.dim[b.rank] = Divisor(index.dim[d]);
      b.stride[b.rank] = stride, b.step[b.rank] = step;
      ++b.rank, b.lines *= index.dim[d];
    }
    stride *= x.dim[d], step *= index.dim[d];
  }
  return b;
}

// Where line u of these begins in x and in the indices.
struct Start {
  int64_t to, from;
};
__device__ Start start_of(const Beside& b, int64_t u) {
  Start l{0, 0};
  for (int d = 0; d < b.rank; ++d) {
    const int64_t i = b.dim[d].remainder(u);
    l.to += i * b.stride[d], l.from += i * b.step[d];
  }
  return l;
}

template <class C>
void gather_elements_as(C, const Call& call, Stream stream) {
  using In = typename C::In;
  using Out = typename C::Out;
  const View &x = call.in[0], &y = call.out[0];
  int64_t axis = attr_i(call, "axis", 0);
  if (axis < 0) axis += x.rank;
  const Beside b = beside(x, call.in[1], axis);
  const In* from = x.as<const In>();
  Out* out = y.as<Out>();
  const int64_t* index = call.in[1].as<const int64_t>();
  const Out none = as_bits<Out>(nowhere(y.dtype));
  uint32_t* fault = call.fault;
  const Divisor along(b.length);
  const int before = x.rank - 1 - static_cast<int>(axis);  // dimensions inside the axis
  fill(stream, y.elements(), out, [=] __device__(int64_t o) {
    int64_t rest = o, at = inside(index[o], b.n);
    if (at < 0) {
      *fault = 1;
      return none;
    }
    at *= b.along_stride;
    for (int d = 0; d < b.rank; ++d) {
      if (d == before) rest = along.quotient(rest);
      at += b.dim[d].remainder(rest) * b.stride[d];
    }
    return C::one(from[at]);
  });
}
void gather_elements(const Call& call, Stream stream) {
  with_copy(call.in[0].dtype, call.out[0].dtype, [&](auto copy) { gather_elements_as(copy, call, stream); });
}

void copy_operand(const Call& call, Stream stream) {
  const size_t bytes = static_cast<size_t>(call.out[0].elements()) * size_of(call.out[0].dtype);
  if (bytes) cudaMemcpyAsync(call.out[0].data, call.in[0].data, bytes, cudaMemcpyDeviceToDevice, stream);
}
// The lines of updates that could meet are each walked by several warps, of which warp p owns every place whose low bits are p:
// as many as make the GPU busy. All read all indices, a lane each, and then do in order those that are theirs.
int64_t parts_of(int64_t lines, int64_t updates, int64_t places) {
  constexpr int64_t kBusy = 1 << 12;
  int64_t parts = 1;
  while (parts < updates && parts < places && lines * parts < kBusy) parts *= 2;
  return parts;
}
// place(i), i < n, is where update i goes, or -1; join(i, place) is called by all lanes for those of this part, in order.
template <class PlaceOf, class JoinAt>
__device__ void walk_part(int64_t n, int64_t part, int64_t parts, PlaceOf place, JoinAt join) {
  const int lane = threadIdx.x % kWarp;
  for (int64_t first = 0; first < n; first += kWarp) {
    const int64_t i = first + lane, at = i < n ? place(i) : -1;
    unsigned mine = __ballot_sync(kAllLanes, at >= 0 && (at & (parts - 1)) == part);
    for (; mine; mine &= mine - 1) {
      const int from = __ffs(mine) - 1;
      join(first + from, __shfl_sync(kAllLanes, at, from));
      __syncwarp();
    }
  }
}

template <Join join, class T>
void scatter_elements_as(const Call& call, Stream stream) {
  const Beside b = beside(call.in[0], call.in[1], attr_i(call, "axis", 0));
  const int64_t parts = parts_of(b.lines, b.length, b.n);
  const int64_t* index = call.in[1].as<const int64_t>();
  const T* updates = call.in[2].as<const T>();
  T* out = call.out[0].as<T>();
  uint32_t* fault = call.fault;
  const Divisor by_parts(parts);
  if (parts == 1) {  // lines enough: a thread each
    return each(stream, b.lines, [=] __device__(int64_t u) {
      const Start line = start_of(b, u);
#pragma unroll 4
      for (int64_t k = 0; k < b.length; ++k) {
        const int64_t from = line.from + k * b.along_step, at = inside(index[from], b.n);
        if (at < 0) {
          *fault = 1;
          continue;
        }
        T& y = out[line.to + at * b.along_stride];
        y = joined<join>(y, updates[from]);
      }
    });
  }
  each(stream, b.lines * parts * kWarp, [=] __device__(int64_t thread) {
    int64_t u = thread / kWarp;
    const int64_t part = by_parts.remainder(u);
    const Start line = start_of(b, u);
    walk_part(
        b.length, part, parts,
        [&](int64_t k) {
          const int64_t at = inside(index[line.from + k * b.along_step], b.n);
          if (at < 0) *fault = 1;
          return at;
        },
        [&](int64_t k, int64_t at) {
          if (threadIdx.x % kWarp) return;
          T& y = out[line.to + at * b.along_stride];
          y = joined<join>(y, updates[line.from + k * b.along_step]);
        });
  });
}
void scatter_elements(const Call& call, Stream stream) {
  copy_operand(call, stream);
  with_join(attr_i(call, "reduction", 0), call.out[0].dtype, [&](auto zero, auto how) {
    scatter_elements_as<decltype(how)::value, decltype(zero)>(call, stream);
  });
}

// A warp takes runs of up to kColumns columns of its slices.
template <Join join, class T>
void scatter_nd_as(const Call& call, Stream stream) {
  constexpr int64_t kColumns = 512;
  const Tuples t = tuples_of(call.in[0], call.in[1], 0);
  const int64_t runs = ceil_div(t.inner, kColumns), parts = parts_of(runs, t.count, t.slices);
  const int64_t* index = call.in[1].as<const int64_t>();
  const T* updates = call.in[2].as<const T>();
  T* out = call.out[0].as<T>();
  uint32_t* fault = call.fault;
  const Divisor by_parts(parts);
  each(stream, runs * parts * kWarp, [=] __device__(int64_t thread) {
    int64_t run = thread / kWarp;
    const int64_t part = by_parts.remainder(run), begin = run * kColumns;
    const int64_t end = begin + kColumns < t.inner ? begin + kColumns : t.inner;
    walk_part(
        t.count, part, parts,
        [&](int64_t i) {
          const int64_t slice = slice_of(t, index + i * t.width);
          if (slice < 0) *fault = 1;
          return slice;
        },
        [&](int64_t i, int64_t slice) {
          for (int64_t c = begin + threadIdx.x % kWarp; c < end; c += kWarp) {
            T& y = out[slice * t.inner + c];
            y = joined<join>(y, updates[i * t.inner + c]);
          }
        });
  });
  if (t.inner == 0) check_indices(call, t, stream);
}
void scatter_nd(const Call& call, Stream stream) {
  copy_operand(call, stream);
  with_join(attr_i(call, "reduction", 0), call.out[0].dtype,
            [&](auto zero, auto how) { scatter_nd_as<decltype(how)::value, decltype(zero)>(call, stream); });
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_ROW_IS(name)                \
  extern const Kernel INVAR_ROW_OF(name); \
  const Kernel INVAR_ROW_OF(name) = {.op = #name, .isa = INVAR_ISA, .enqueue = INVAR_ISA_NS::name};
INVAR_ROW_IS(gather)
INVAR_ROW_IS(gather_elements)
INVAR_ROW_IS(gather_nd)
INVAR_ROW_IS(scatter_elements)
INVAR_ROW_IS(scatter_nd)
#undef INVAR_ROW_IS

}  // namespace invar::ops
