// The rows of every operation of this room: operands are widened and repeated as needed into small tiles, or read where they
// lie, and a map of maps.h goes over them.
#include "ops/elementwise/maps.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int64_t kTile = 512;  // elements of an operand on the stack
constexpr int64_t kShort =
    24;  // loops shorter than this are gathered into tiles: a map costs about as much to call

// `count` elements of a loop that starts at p, at their place in a tile.
template <class T>
INVAR_INLINE void lay(T* to, const void* p, int64_t count, bool one) {
  auto from = static_cast<const T*>(p);
  for (int64_t i = 0; i < count; ++i) to[i] = from[one ? 0 : i];
}
template <class W>
INVAR_INLINE void widen(float* to, const void* p, int64_t count) {
  auto from = static_cast<const typename W::T*>(p);
  strip_exact(
      to, count, [=](int64_t i, int lanes) __attribute__((always_inline)) {
        return lanes == kW ? W::get(from + i) : W::get_n(from + i, lanes);
      });
}
void widen(float* to, const void* p, int64_t count, DType t) {
  t == DType::bf16 ? widen<Bf16>(to, p, count) : widen<F16>(to, p, count);
}
INVAR_INLINE bool is_narrow(DType t) {
  return t == DType::bf16 || t == DType::f16;
}

// Where the walk stands: row `index` of the outer loops, and the operands' elements there.
struct Place {
  int64_t index[kMaxRank], at[kOperands];
  INVAR_INLINE Place of(const elementwise::Walk& w, int64_t row) {
    Place p{};
    for (int d = 0; d < w.rank; ++d) {
      p.index[d] = row % w.dim[d];
      row /= w.dim[d];
      for (int k = 0; k < w.operands; ++k) p.at[k] += p.index[d] * w.stride[k][d];
    }
    return p;
  }
  INVAR_INLINE void next(Place& p, const elementwise::Walk& w) {
    for (int d = 0; d < w.rank; ++d) {
      bool wraps = ++p.index[d] == w.dim[d];
      if (wraps) p.index[d] = 0;
      for (int k = 0; k < w.operands; ++k)
        p.at[k] += wraps ? -(w.dim[d] - 1) * w.stride[k][d] : w.stride[k][d];
      if (!wraps) return;
    }
  }
};

struct alignas(64) Tile {
  char bytes[kTile * 8];
};

void drive(const Kind& kind, const Call& call, int64_t begin, int64_t end) {
  const View& out = call.out[0];
  const elementwise::Walk w = elementwise::walk(call);
  const int64_t n = out.elements(), to = end * kChunk < n ? end * kChunk : n;
  const Map map = map_of(kind, call.in[call.in.size() - 1].dtype);
  Strip s{};
  for (int k = 0; k < kScalars && kind.scalar[k]; ++k)
    s.scalar[k] = elementwise::scalar(call, kind.scalar[k]);
  Tile tile[kOperands];
  int64_t size[kOperands];
  bool narrow = false;
  const char* data[kOperands];
  DType dtype[kOperands];
  for (int k = 0; k < w.operands; ++k) {
    const View& v = call.in[static_cast<size_t>(k)];
    dtype[k] = v.dtype, data[k] = v.as<const char>();
    size[k] = static_cast<int64_t>(size_of(v.dtype));
    narrow |= is_narrow(v.dtype);
  }
  const int64_t result = static_cast<int64_t>(size_of(out.dtype));
  int64_t i = begin * kChunk;
  if (i >= to) return;
  Place place = Place::of(w, i / w.inner);
  int64_t from = i % w.inner;  // in the inner loop
  while (i < to) {
    s.out = out.as<char>() + i * result;
    if (w.inner >= kShort || w.rank == 0) {
      int64_t count = w.inner - from < to - i ? w.inner - from : to - i;
      if (narrow && count > kTile) count = kTile;
      for (int k = 0; k < w.operands; ++k) {
        const char* p = data[k] + (place.at[k] + from * w.step[k]) * size[k];
        s.one[k] = w.step[k] == 0;
        s.in[k] = p;
        if (!is_narrow(dtype[k])) continue;
        widen(reinterpret_cast<float*>(tile[k].bytes), p, s.one[k] ? 1 : count, dtype[k]);
        s.in[k] = tile[k].bytes;
      }
      s.n = count;
      from += count;
      if (from == w.inner) from = 0, Place::next(place, w);
    } else {
      s.n = 0;
      while (s.n < kTile - kShort && i + s.n < to) {
        int64_t left = to - i - s.n, count = w.inner - from < left ? w.inner - from : left;
        for (int k = 0; k < w.operands; ++k) {
          const char* p = data[k] + (place.at[k] + from * w.step[k]) * size[k];
          char* t = tile[k].bytes + s.n * size[k];
          bool one = w.step[k] == 0;
          switch (size[k]) {
            case 1: lay(reinterpret_cast<uint8_t*>(t), p, count, one); break;
            case 2: lay(reinterpret_cast<uint16_t*>(t), p, count, one); break;
            case 4: lay(reinterpret_cast<uint32_t*>(t), p, count, one); break;
            default: lay(reinterpret_cast<uint64_t*>(t), p, count, one);
          }
        }
        s.n += count;
        from += count;
        if (from == w.inner) from = 0, Place::next(place, w);
      }
      for (int k = 0; k < w.operands; ++k) {
        s.one[k] = false;
        s.in[k] = tile[k].bytes;
        if (!is_narrow(dtype[k])) continue;
        Tile wide;
        widen(reinterpret_cast<float*>(wide.bytes), tile[k].bytes, s.n, dtype[k]);
        tile[k] = wide;
      }
    }
    map(s);
    i += s.n;
  }
}

template <const Kind* kind>
void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  drive(*kind, call, begin, end);
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_EACH(how, name, ...)                         \
  extern const Kernel INVAR_ROW_OF(name);                  \
  const Kernel INVAR_ROW_OF(name) = {.op = #name,          \
                                     .isa = INVAR_ISA,     \
                                     .units = chunk_units, \
                                     .run = INVAR_ISA_NS::run<&INVAR_ISA_NS::k_##name>};
INVAR_ELEMENTWISE(INVAR_EACH)
#undef INVAR_EACH

}  // namespace invar::ops
