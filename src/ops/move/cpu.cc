// CPU kernels of all data movement operations: elements are moved by size, independent of their
// type.
#include "kernels/cpu/vector_io.h"
#include "ops/move/cpu/contiguous_runs.h"
#include "ops/move/cpu/transpose_blocks.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// Calls f(T{}) for an unsigned integer of the element's size.
template <class Fn>
INVAR_INLINE void with_size(DType t, Fn f) {
  switch (size_of(t)) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    default: f(uint64_t{});
  }
}
INVAR_INLINE int64_t range_end(const Call& call, int64_t end) {
  int64_t n = call.out[0].elements();
  return end * kChunk < n ? end * kChunk : n;
}

template <Move move>
void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  if (begin >= end) return;
  const MoveLoops w = move_loops(move, call);
  with_size(call.out[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.in[0].as<const T>() + w.base;
    T* out = call.out[0].as<T>();
    if (w.contiguous_axis >= 0) return transpose(w, x, out, begin, end);
    const bool given = call.in.size() > 1;
    copy_runs(w, x, given ? *call.in[1].as<const T>() : T{0}, out, begin * kChunk, range_end(call, end));
  });
}
template <Move move>
int64_t units(const Call& call, int) {
  return call.out[0].elements() ? move_units(move_loops(move, call), call) : 0;
}

void concat(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View& out = call.out[0];
  int64_t axis = ConcatAttributes(call).axis, inner = static_cast<int64_t>(size_of(out.dtype));
  for (int d = static_cast<int>(axis) + 1; d < out.rank; ++d) inner *= out.dim[d];
  int64_t width = out.dim[axis] * inner, size = static_cast<int64_t>(size_of(out.dtype));  // in bytes
  int64_t i = begin * kChunk * size, to = range_end(call, end) * size;
  while (i < to) {
    int64_t row = i / width, at = i % width;
    for (const View& v : call.in) {
      int64_t part = v.dim[axis] * inner;
      if (at >= part) {
        at -= part;
        continue;
      }
      int64_t count = part - at < to - i ? part - at : to - i;
      const char* from = v.as<const char>() + row * part + at;
      char* dest = out.as<char>() + i;
      if (count == 4)
        std::memcpy(dest, from, 4);
      else if (count == 8)
        std::memcpy(dest, from, 8);
      else
        std::memcpy(dest, from, static_cast<size_t>(count));
      i += count, at = 0;
      if (i == to) return;
    }
  }
}

// concat of channels, operands and result each with channels first or last. Units: kPixels pixels
// of an image.
constexpr int64_t kPixels = 256;
struct Pixels {
  int64_t count, blocks;  // of an image
  explicit Pixels(const View& v) : count(1) {
    for (int d = 2; d < v.rank; ++d) count *= v.dim[d];
    blocks = (count + kPixels - 1) / kPixels;
  }
};
int64_t pixel_units(const Call& call, int) {
  return call.out[0].elements() ? call.out[0].dim[0] * Pixels(call.out[0]).blocks : 0;
}
// Elements from a channel, and from a pixel, to the next.
struct PixelSteps {
  int64_t channel, pixel, image;
  PixelSteps(const View& v, int64_t pixels)
      : channel(v.pitch ? 1 : pixels),
        pixel(v.pitch ? v.pitch : 1),
        image(pixels * (v.pitch ? v.pitch : v.dim[1])) {}
};
void concat_channels(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View& out = call.out[0];
  const Pixels p(out);
  const PixelSteps to_step(out, p.count);
  with_size(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit % p.blocks * kPixels, image = unit / p.blocks,
                    n = p.count - first < kPixels ? p.count - first : kPixels;
      T* to = out.as<T>() + image * to_step.image + first * to_step.pixel;
      for (const View& v : call.in) {
        const PixelSteps step(v, p.count);
        const T* const from = v.as<const T>() + image * step.image + first * step.pixel;
        const int64_t channels = v.dim[1];
        if (v.pitch && out.pitch)
          for (int64_t i = 0; i < n; ++i)
            std::memcpy(to + i * out.pitch, from + i * v.pitch, static_cast<size_t>(channels) * sizeof(T));
        else
          for (int64_t c = 0; c < channels; ++c)
            for (int64_t i = 0; i < n; ++i)
              to[i * to_step.pixel + c * to_step.channel] = from[i * step.pixel + c * step.channel];
        to += channels * to_step.channel;
      }
    }
  });
}
const CpuKernel* channels_last(const View& result, const Attributes& attrs, int64_t& pitch) {
  static constexpr CpuKernel row = {
      .op = "concat", .isa = INVAR_ISA, .units = pixel_units, .run = concat_channels, .joins_channels = true};
  if (result.rank < 3 || result.dim[1] < 1 || ConcatAttributes(attrs).axis != 1) return nullptr;
  pitch = result.dim[1] + (result.dim[1] % 256 ? 0 : 16);  // lines of pixels in all sets of a cache
  return &row;
}

void trilu(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View& x = call.in[0];
  const TriluAttributes a(call);
  const bool upper = a.upper != 0;
  int64_t n = last_dim(x), rows = x.dim[x.rank - 2], k = a.k;
  k = k < -rows ? -rows : k > n ? n : k;
  with_size(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t r = begin; r < end; ++r) {
      int64_t edge = r % rows + k + (upper ? 0 : 1);  // the boundary between copied and zero elements
      edge = edge < 0 ? 0 : edge > n ? n : edge;
      const T* from = x.as<const T>() + r * n;
      T* to = call.out[0].as<T>() + r * n;
      if (upper) {
        fill(to, T{0}, edge);
        copy(to + edge, from + edge, n - edge, 1);
      } else {
        copy(to, from, edge, 1);
        fill(to + edge, T{0}, n - edge);
      }
    }
  });
}

void reverse_sequence(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View& x = call.in[0];
  const int time = ReverseSequenceAttributes(call).time_axis != 0 ? 1 : 0;
  int64_t inner = static_cast<int64_t>(size_of(x.dtype));
  for (int d = 2; d < x.rank; ++d) inner *= x.dim[d];
  for (int64_t r = begin; r < end; ++r) {
    int64_t place[2] = {r / x.dim[1], r % x.dim[1]};
    int64_t length = call.in[1].as<const int64_t>()[place[1 - time]], t = place[time];
    if (length > x.dim[time]) length = x.dim[time];
    if (t < length) place[time] = length - 1 - t;
    std::memcpy(call.out[0].as<char>() + r * inner,
                x.as<const char>() + (place[0] * x.dim[1] + place[1]) * inner, static_cast<size_t>(inner));
  }
}

void one_hot(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &index = call.in[0], &out = call.out[0];
  int64_t axis = OneHotAttributes(call).axis, depth = out.dim[axis], inner = 1;
  for (int d = static_cast<int>(axis) + 1; d < out.rank; ++d) inner *= out.dim[d];
  with_size(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T off = call.in[1].as<const T>()[0], on = call.in[1].as<const T>()[1];
    T* to = out.as<T>();
    int64_t last = range_end(call, end);
    auto place = [&](int64_t j) __attribute__((always_inline)) {
      int64_t v = index.dtype == DType::i64 ? index.as<const int64_t>()[j] : index.as<const int32_t>()[j];
      return v < 0 ? v + depth : v;
    };
    for (int64_t i = begin * kChunk; i < last;) {
      int64_t row = i / inner, at = i % inner, d = row % depth;
      if (inner == 1) {  // one row per index
        int64_t count = depth - d < last - i ? depth - d : last - i, hot = place(row / depth) - d;
        fill(to + i, off, count);
        if (hot >= 0 && hot < count) to[i + hot] = on;
        i += count;
        continue;
      }
      int64_t count = inner - at < last - i ? inner - at : last - i;
      for (int64_t j = 0; j < count; ++j) to[i + j] = place(row / depth * inner + at + j) == d ? on : off;
      i += count;
    }
  });
}

void iota(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View& out = call.out[0];
  int64_t from = begin * kChunk, last = range_end(call, end);
  auto whole = [&](auto zero) {
    using T = decltype(zero);
    T start = *call.in[0].as<const T>(), delta = *call.in[1].as<const T>();
    for (int64_t i = from; i < last; ++i) out.as<T>()[i] = static_cast<T>(start + static_cast<T>(i) * delta);
  };
  if (out.dtype == DType::i64) return whole(uint64_t{});
  if (out.dtype == DType::i32) return whole(uint32_t{});
  const F start = set1(*call.in[0].as<const float>()), delta = set1(*call.in[1].as<const float>());
  strip(out.as<float>() + from, last - from, [&](int64_t i, int) __attribute__((always_inline)) {
    alignas(64) float index[kW];
    for (int j = 0; j < kW; ++j) index[j] = static_cast<float>(from + i + j);
    return fma(load(index), delta, start);
  });
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_ROW_IS(name, units_of, run_of) \
  extern const CpuKernel INVAR_ROW_OF(name); \
  const CpuKernel INVAR_ROW_OF(name) = {.op = #name, .isa = INVAR_ISA, .units = units_of, .run = run_of};
#define INVAR_EACH(name) INVAR_ROW_IS(name, INVAR_ISA_NS::units<Move::name>, INVAR_ISA_NS::run<Move::name>)
INVAR_MOVES(INVAR_EACH)
#undef INVAR_EACH
extern const CpuKernel INVAR_ROW_OF(concat);
const CpuKernel INVAR_ROW_OF(concat) = {.op = "concat",
                                        .isa = INVAR_ISA,
                                        .units = chunk_units,
                                        .run = INVAR_ISA_NS::concat,
                                        .channels_last = INVAR_ISA_NS::channels_last,
                                        .joins_channels = true};
INVAR_ROW_IS(trilu, triangle_units, INVAR_ISA_NS::trilu)
INVAR_ROW_IS(reverse_sequence, sequence_units, INVAR_ISA_NS::reverse_sequence)
INVAR_ROW_IS(one_hot, chunk_units, INVAR_ISA_NS::one_hot)
INVAR_ROW_IS(iota, chunk_units, INVAR_ISA_NS::iota)
#undef INVAR_ROW_IS

}  // namespace invar::ops
