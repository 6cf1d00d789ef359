// The rows of every operation of this room: a map of maps.h over the operands where they lie, row by row, or, where rows are
// short, over tiles.
#include "ops/elementwise/cpu/maps.h"
#include "ops/elementwise/cpu/broadcast_tiles.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int64_t kShort =
    256;  // a call of a map costs about as much as laying this many elements into tiles

INVAR_INLINE bool is_narrow(DType t) {
  return t == DType::bf16 || t == DType::f16;
}
INVAR_INLINE int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// Row by row, elements [i, to) of the result. bf16 and f16 are widened by the way.
void long_rows(Map map, const elementwise::Walk& w, const Call& call, Strip s, int64_t i, int64_t to) {
  Tile tile[kOperands];
  Place place[kOperands];
  bool narrow = false;
  for (int k = 0; k < w.operands; ++k) {
    place[k] = place_of(w, k, i / w.inner);
    s.one[k] = w.step[k] == 0;
    narrow |= is_narrow(call.in[static_cast<size_t>(k)].dtype);
  }
  const View& out = call.out[0];
  int64_t from = i % w.inner;  // in the row
  while (i < to) {
    s.n = least(w.inner - from, to - i);
    if (narrow) s.n = least(s.n, kTile);
    s.out = out.as<char>() + i * static_cast<int64_t>(size_of(out.dtype));
    for (int k = 0; k < w.operands; ++k) {
      const View& v = call.in[static_cast<size_t>(k)];
      const char* p =
          v.as<const char>() + (place[k].at + from * w.step[k]) * static_cast<int64_t>(size_of(v.dtype));
      s.in[k] = p;
      if (!is_narrow(v.dtype)) continue;
      lay(tile[k], p, s.one[k] ? 1 : s.n, v.dtype);
      s.in[k] = tile[k].bytes;
    }
    map(s);
    i += s.n;
    from += s.n;
    if (from < w.inner) continue;
    from = 0;
    for (int k = 0; k < w.operands; ++k) next(place[k], w, k);
  }
}

// The same where rows are short: what does not lie as the result does is laid so first; what repeats after a few rows, once.
void short_rows(Map map, const elementwise::Walk& w, const Call& call, Strip s, int64_t i, int64_t to) {
  enum class How { in_place, widened, laid_once, gathered };
  Tile tile[kOperands];
  How how[kOperands];
  int64_t period[kOperands], longest = 1;
  for (int k = 0; k < w.operands; ++k) {
    const View& v = call.in[static_cast<size_t>(k)];
    bool follows = w.step[k] != 0, constant = w.step[k] == 0;
    int64_t n = w.inner;
    period[k] = n;
    for (int d = 0; d < w.rank; ++d) {
      follows &= w.stride[k][d] == n;
      constant &= w.stride[k][d] == 0;
      n *= w.dim[d];
      if (w.stride[k][d]) period[k] = n;
    }
    s.one[k] = constant;
    s.in[k] = v.data;
    how[k] = constant || follows ? How::in_place : period[k] <= kTile ? How::laid_once : How::gathered;
    if (how[k] == How::laid_once && period[k] > longest) longest = period[k];
    if (how[k] != How::in_place || !is_narrow(v.dtype)) continue;
    how[k] = How::widened;
    if (constant) lay(tile[k], v.as<const char>(), 1, v.dtype);
  }
  // The longest period is a multiple of the others.
  const int64_t whole = kTile / longest * longest;
  for (int k = 0; k < w.operands; ++k)
    if (how[k] == How::laid_once) gather(tile[k], w, k, call.in[static_cast<size_t>(k)], 0, whole);
  const View& out = call.out[0];
  while (i < to) {
    const int64_t phase = i % longest;
    s.n = least(whole - phase, to - i);
    s.out = out.as<char>() + i * static_cast<int64_t>(size_of(out.dtype));
    for (int k = 0; k < w.operands; ++k) {
      const View& v = call.in[static_cast<size_t>(k)];
      const auto size = static_cast<int64_t>(size_of(v.dtype));
      const char* p = v.as<const char>() + (s.one[k] ? 0 : i * size);
      if (how[k] == How::gathered) gather(tile[k], w, k, v, i, s.n);
      if (how[k] == How::widened && !s.one[k]) lay(tile[k], p, s.n, v.dtype);
      s.in[k] = how[k] == How::in_place ? p : tile[k].bytes;
      if (how[k] == How::laid_once) s.in[k] = tile[k].bytes + phase * (is_narrow(v.dtype) ? 4 : size);
    }
    map(s);
    i += s.n;
  }
}

// A region that lies within rows, which are pieces of those of the result.
void pieces(Map map, const elementwise::Walk& w, const Call& call, Strip s, const Region& r) {
  const View& out = call.out[0];
  const bool in_turn = r.pitch == w.inner;
  Place place[kOperands] = {};
  s.n = r.n;
  for (int64_t i = 0, from = r.at; i < r.rows; ++i, from += r.pitch) {
    s.out = out.as<char>() + from * static_cast<int64_t>(size_of(out.dtype));
    for (int k = 0; k < w.operands; ++k) {
      const View& v = call.in[static_cast<size_t>(k)];
      const auto size = static_cast<int64_t>(size_of(v.dtype));
      if (w.rank > 0 && i > 0 && in_turn)
        next(place[k], w, k);
      else if (w.rank > 0)
        place[k] = place_of(w, k, from / w.inner);
      s.in[k] = v.as<const char>() + (place[k].at + (w.rank > 0 ? from % w.inner : from) * w.step[k]) * size;
      s.one[k] = w.step[k] == 0;
    }
    map(s);
  }
}

// One call of the map where every operand lies as the result does, or is one element: there is nothing to walk, and a step of a recurrent
// network has a dozen of such, as short as that. False: it is not so.
INVAR_INLINE bool flat(Map map, const Call& call, Strip& s, const Region& r) {
  const View& out = call.out[0];
  const int64_t n = out.elements();
  if (r.rows != 1) return false;
  for (size_t k = 0; k < call.in.size(); ++k) {
    const View& v = call.in[k];
    const int64_t count = v.elements();
    if ((count != n && count != 1) || is_narrow(v.dtype)) return false;
    s.one[k] = count != n;
    s.in[k] = v.as<const char>() + (s.one[k] ? 0 : r.at * static_cast<int64_t>(size_of(v.dtype)));
  }
  s.n = r.n;
  s.out = out.as<char>() + r.at * static_cast<int64_t>(size_of(out.dtype));
  map(s);
  return true;
}

void drive(const Kind& kind, const Call& call, const Region& r) {
  const Map map = map_of(kind, call.in[call.in.size() - 1].dtype);
  Strip s{};
  for (int k = 0; k < kScalars && kind.scalar[k]; ++k)
    s.scalar[k] = elementwise::scalar(call, kind.scalar[k]);
  if (flat(map, call, s, r)) return;
  const elementwise::Walk w = elementwise::walk(call);
  bool within = w.rank == 0 || (r.at % w.inner + r.n <= w.inner && r.pitch % w.inner == 0);
  for (const View& v : call.in) within &= !is_narrow(v.dtype);
  if (within) return pieces(map, w, call, s, r);
  const bool is_long = w.inner >= kShort || w.rank == 0 || r.n <= 2 * w.inner;
  for (int64_t i = 0; i < r.rows; ++i) {
    const int64_t from = r.at + i * r.pitch;
    if (is_long)
      long_rows(map, w, call, s, from, from + r.n);
    else
      short_rows(map, w, call, s, from, from + r.n);
  }
}

template <const Kind* kind>
void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  each_part(call, begin, end, [&](const Region& r) { drive(*kind, call, r); });
}
template <const Kind* kind>
void region(const Call& call, const Region& r) {
  drive(*kind, call, r);
}

}  // namespace
}  // namespace INVAR_ISA_NS

static consteval Light light_of(std::string_view name) {
  return name == "add" ? Light::add : name == "relu" ? Light::relu : Light::none;
}
#define INVAR_EACH(how, name, ...)                                                      \
  extern const Kernel INVAR_ROW_OF(name);                                               \
  const Kernel INVAR_ROW_OF(name) = {.op = #name,                                       \
                                     .isa = INVAR_ISA,                                  \
                                     .units = chunk_units,                              \
                                     .run = INVAR_ISA_NS::run<&INVAR_ISA_NS::k_##name>, \
                                     .epilogue = true,                                  \
                                     .light = light_of(#name),                          \
                                     .region = INVAR_ISA_NS::region<&INVAR_ISA_NS::k_##name>};
INVAR_ELEMENTWISE(INVAR_EACH)
#undef INVAR_EACH

}  // namespace invar::ops
