// CPU kernels of all elementwise operations: a map of maps.h over the operands in place, row by
// row, or over tiles if rows are short.
#include "kernels/fusion/row_steps.h"
#include "ops/elementwise/cpu/broadcast_tiles.h"
#include "ops/elementwise/cpu/maps.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int64_t kShort =
    256;  // a call of a map costs about as much as gathering this many elements into tiles

INVAR_INLINE bool is_narrow(DType t) {
  return t == DType::bf16 || t == DType::f16;
}
INVAR_INLINE int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// Row by row, elements [i, to) of the result. bf16 and f16 operands are widened tile by tile.
void long_rows(Map map, const elementwise::BroadcastLoops& w, const Call& call, Strip s, int64_t i,
               int64_t to) {
  Tile tile[kOperands];
  OperandCursor place[kOperands];
  bool narrow = false;
  for (int k = 0; k < w.operands; ++k) {
    place[k] = cursor_at(w, k, i / w.inner);
    s.one[k] = w.step[k] == 0;
    narrow |= is_narrow(call.in[static_cast<size_t>(k)].dtype);
  }
  const View& out = call.out[0];
  int64_t from = i % w.inner;  // within the row
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
      load_tile(tile[k], p, s.one[k] ? 1 : s.n, v.dtype);
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

// The same for short rows: operands with another layout than the result are first gathered into
// tiles; those that repeat after a few rows, only once.
void short_rows(Map map, const elementwise::BroadcastLoops& w, const Call& call, Strip s, int64_t i,
                int64_t to) {
  enum class Staging { in_place, widened, repeated, gathered };
  Tile tile[kOperands];
  Staging how[kOperands];
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
    how[k] = constant || follows  ? Staging::in_place
             : period[k] <= kTile ? Staging::repeated
                                  : Staging::gathered;
    if (how[k] == Staging::repeated && period[k] > longest) longest = period[k];
    if (how[k] != Staging::in_place || !is_narrow(v.dtype)) continue;
    how[k] = Staging::widened;
    if (constant) load_tile(tile[k], v.as<const char>(), 1, v.dtype);
  }
  // The longest period is a multiple of the others.
  const int64_t whole = kTile / longest * longest;
  for (int k = 0; k < w.operands; ++k)
    if (how[k] == Staging::repeated) gather(tile[k], w, k, call.in[static_cast<size_t>(k)], 0, whole);
  const View& out = call.out[0];
  while (i < to) {
    const int64_t phase = i % longest;
    s.n = least(whole - phase, to - i);
    s.out = out.as<char>() + i * static_cast<int64_t>(size_of(out.dtype));
    for (int k = 0; k < w.operands; ++k) {
      const View& v = call.in[static_cast<size_t>(k)];
      const auto size = static_cast<int64_t>(size_of(v.dtype));
      const char* p = v.as<const char>() + (s.one[k] ? 0 : i * size);
      if (how[k] == Staging::gathered) gather(tile[k], w, k, v, i, s.n);
      if (how[k] == Staging::widened && !s.one[k]) load_tile(tile[k], p, s.n, v.dtype);
      s.in[k] = how[k] == Staging::in_place ? p : tile[k].bytes;
      if (how[k] == Staging::repeated) s.in[k] = tile[k].bytes + phase * (is_narrow(v.dtype) ? 4 : size);
    }
    map(s);
    i += s.n;
  }
}

// A region that lies within rows of the result.
void run_rows(Map map, const elementwise::BroadcastLoops& w, const Call& call, Strip s, const Region& r) {
  const View& out = call.out[0];
  const bool in_turn = r.pitch == w.inner;
  OperandCursor place[kOperands] = {};
  s.n = r.n;
  for (int64_t i = 0, from = r.at; i < r.rows; ++i, from += r.pitch) {
    s.out = out.as<char>() + from * static_cast<int64_t>(size_of(out.dtype));
    for (int k = 0; k < w.operands; ++k) {
      const View& v = call.in[static_cast<size_t>(k)];
      const auto size = static_cast<int64_t>(size_of(v.dtype));
      if (w.rank > 0 && i > 0 && in_turn)
        next(place[k], w, k);
      else if (w.rank > 0)
        place[k] = cursor_at(w, k, from / w.inner);
      s.in[k] = v.as<const char>() + (place[k].at + (w.rank > 0 ? from % w.inner : from) * w.step[k]) * size;
      s.one[k] = w.step[k] == 0;
    }
    map(s);
  }
}

// One call of the map if every operand has the layout of the result or is a single element. There
// is nothing to iterate, and one step of a recurrent network has a dozen such short calls. Returns
// false otherwise.
INVAR_INLINE bool run_contiguous(Map map, const Call& call, Strip& s, const Region& r) {
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

void run_region(const TypedMaps& kind, const Call& call, const Region& r) {
  const Map map = map_of(kind, call.in[call.in.size() - 1].dtype);
  Strip s{};
  for (int k = 0; k < kScalars && kind.scalar[k]; ++k)
    s.scalar[k] = elementwise::scalar(call, kind.scalar[k]);
  if (run_contiguous(map, call, s, r)) return;
  const elementwise::BroadcastLoops w = elementwise::broadcast_loops(call);
  bool within = w.rank == 0 || (r.at % w.inner + r.n <= w.inner && r.pitch % w.inner == 0);
  for (const View& v : call.in) within &= !is_narrow(v.dtype);
  if (within) return run_rows(map, w, call, s, r);
  const bool is_long = w.inner >= kShort || w.rank == 0 || r.n <= 2 * w.inner;
  for (int64_t i = 0; i < r.rows; ++i) {
    const int64_t from = r.at + i * r.pitch;
    if (is_long)
      long_rows(map, w, call, s, from, from + r.n);
    else
      short_rows(map, w, call, s, from, from + r.n);
  }
}

template <const TypedMaps* kind>
void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  for_each_chunk(call, begin, end, [&](const Region& r) { run_region(*kind, call, r); });
}
template <const TypedMaps* kind>
void region(const Call& call, const Region& r) {
  run_region(*kind, call, r);
}

// What a row step keeps: the strip of its scalars, of single elements and of operands like the
// result.
struct RowMap {
  Map map;
  bool one[kOperands];
  float scalar[kScalars];
};
void run_row(const RowStep& step, int64_t at, int64_t n, const void* from, void* to) {
  const auto kept = step.get<RowMap>();
  Strip s{};
  s.n = n;
  for (int k = 0; k < kScalars; ++k) s.scalar[k] = kept.scalar[k];
  for (size_t k = 0; k < step.call->in.size(); ++k) {
    const View& v = step.call->in[k];
    s.one[k] = kept.one[k];
    s.in[k] = static_cast<int>(k) == step.operand
                  ? from
                  : v.as<const char>() + (s.one[k] ? 0 : at * static_cast<int64_t>(size_of(v.dtype)));
  }
  s.out = to;
  kept.map(s);
}
INVAR_INTERNAL int append_row_map(const TypedMaps& kind, const Call& call, int operand, RowStep* steps,
                                  int count) {
  RowMap kept{map_of(kind, call.in[call.in.size() - 1].dtype), {}, {}};
  const int64_t n = call.out[0].elements();
  for (size_t k = 0; k < call.in.size(); ++k) {
    const int64_t elements = call.in[k].elements();
    const bool is_row = static_cast<int>(k) == operand;
    if (is_narrow(call.in[k].dtype) || (elements != n && (elements != 1 || is_row))) return 0;
    kept.one[k] = elements != n;
  }
  for (int k = 0; k < kScalars && kind.scalar[k]; ++k)
    kept.scalar[k] = elementwise::scalar(call, kind.scalar[k]);
  steps[count] = {.run = run_row, .call = &call, .operand = operand};
  steps[count].keep(kept);
  return count + 1;
}
template <const TypedMaps* kind>
int append_row_step(const Call& call, int operand, RowStep* steps, int count) {
  return append_row_map(*kind, call, operand, steps, count);
}

}  // namespace
}  // namespace INVAR_ISA_NS

static consteval InRegisterEpilogue in_register_of(std::string_view name) {
  return name == "add"    ? InRegisterEpilogue::add
         : name == "relu" ? InRegisterEpilogue::relu
                          : InRegisterEpilogue::none;
}
#define INVAR_EACH(how, name, ...)                             \
  extern const CpuKernel INVAR_ROW_OF(name);                   \
  const CpuKernel INVAR_ROW_OF(name) = {                       \
      .op = #name,                                             \
      .isa = INVAR_ISA,                                        \
      .units = chunk_units,                                    \
      .run = INVAR_ISA_NS::run<&INVAR_ISA_NS::k_##name>,       \
      .epilogue = true,                                        \
      .in_register = in_register_of(#name),                    \
      .region = INVAR_ISA_NS::region<&INVAR_ISA_NS::k_##name>, \
      .append_row_step = INVAR_ISA_NS::append_row_step<&INVAR_ISA_NS::k_##name>};
INVAR_ELEMENTWISE(INVAR_EACH)
#undef INVAR_EACH

}  // namespace invar::ops
