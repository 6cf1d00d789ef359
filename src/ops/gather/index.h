// What the operations of this room share: how indices name places, what a place outside gives, how an update joins.
#pragma once
#include "num/convert/convert.h"
#include "kernels/call.h"

namespace invar::ops {

// gather.3: an index of an axis of n elements, negative ones from its end; -1: outside.
INVAR_INLINE int64_t inside(int64_t index, int64_t n) {
  if (index < 0) index += n;
  return index >= 0 && index < n ? index : -1;
}
// The bits of an element outside: the canonical NaN, or 0.
INVAR_INLINE uint64_t nowhere(DType t) {
  return t == DType::f32    ? 0x7fc00000
         : t == DType::bf16 ? 0x7fc0
         : t == DType::f16  ? 0x7e00
         : t == DType::f64  ? 0x7ff8000000000000
                            : 0;
}

// Tuples of indices (gather.6, gather.8): `count` of them for each of `batches`, each of `width` indices, naming slices of
// `inner` elements; `slices` slices in a batch.
struct Tuples {
  int64_t batches, count, inner, slices;
  int width;
  int64_t dim[kMaxRank], stride[kMaxRank];  // of what the indices name, in slices
};
Tuples tuples_of(const View& x, const View& indices, int64_t batch_dims);
// The slice that a tuple names, or -1.
INVAR_INLINE int64_t slice_of(const Tuples& t, const int64_t* tuple) {
  int64_t at = 0;
  for (int i = 0; i < t.width; ++i) {
    int64_t j = inside(tuple[i], t.dim[i]);
    if (j < 0) return -1;
    at += j * t.stride[i];
  }
  return at;
}

// gather.9: how an update joins what is there.
enum class Join : int64_t { none, add, mul, min, max };
inline constexpr int64_t kJoins = 5;

template <Join join>
INVAR_INLINE float joined(float there, float update) {
  if constexpr (join == Join::none) return update;
  if constexpr (join == Join::add) return num::canon(there + update);
  if constexpr (join == Join::mul) return num::canon(there * update);
  // formats.7: of equals only zeros differ, AND of their bits is the larger, OR the smaller.
  constexpr bool most = join == Join::max;
  uint32_t a = num::f32_bits(there), b = num::f32_bits(update);
  float equal = num::f32_from_bits(most ? a & b : a | b);
  float r = there == update ? equal : (most ? there > update : there < update) ? there : update;
  return there == there && update == update ? num::canon(r) : num::f32_from_bits(0x7fc00000);
}
// Integers wrap: computed without a sign.
template <Join join, class U, class S>
INVAR_INLINE U joined_whole(U there, U update) {
  if constexpr (join == Join::none) return update;
  if constexpr (join == Join::add) return there + update;
  if constexpr (join == Join::mul) return there * update;
  S a = static_cast<S>(there), b = static_cast<S>(update);
  return (join == Join::max ? a > b : a < b) ? there : update;
}
template <Join join>
INVAR_INLINE uint32_t joined(uint32_t there, uint32_t update) {
  return joined_whole<join, uint32_t, int32_t>(there, update);
}
template <Join join>
INVAR_INLINE uint64_t joined(uint64_t there, uint64_t update) {
  return joined_whole<join, uint64_t, int64_t>(there, update);
}
template <Join join>
INVAR_INLINE uint16_t joined(uint16_t, uint16_t update) {
  return update;
}
template <Join join>
INVAR_INLINE uint8_t joined(uint8_t, uint8_t update) {
  return update;
}
// f(T{}, JoinIs<join>{}) for the type in which an element is held and the operation's join. What is only moved is held
// without a sign, and joins by none alone.
template <Join join>
struct JoinIs {
  static constexpr Join value = join;
};
template <class T, class Fn>
INVAR_INLINE void with_join(int64_t reduction, T zero, Fn f) {
  switch (static_cast<Join>(reduction)) {
    case Join::none: return f(zero, JoinIs<Join::none>{});
    case Join::add: return f(zero, JoinIs<Join::add>{});
    case Join::mul: return f(zero, JoinIs<Join::mul>{});
    case Join::min: return f(zero, JoinIs<Join::min>{});
    case Join::max: return f(zero, JoinIs<Join::max>{});
  }
}
template <class Fn>
INVAR_INLINE void with_join(int64_t reduction, DType t, Fn f) {
  if (reduction != 0 && t == DType::f32) return with_join(reduction, float{}, f);
  if (reduction != 0 && size_of(t) == 4) return with_join(reduction, uint32_t{}, f);
  if (reduction != 0) return with_join(reduction, uint64_t{}, f);
  switch (size_of(t)) {
    case 1: return f(uint8_t{}, JoinIs<Join::none>{});
    case 2: return f(uint16_t{}, JoinIs<Join::none>{});
    case 4: return f(uint32_t{}, JoinIs<Join::none>{});
    default: f(uint64_t{}, JoinIs<Join::none>{});
  }
}

// How updates along an axis (gather.7) are shared out: rows of them beside the axis, in blocks of columns.
struct Lines {
  int axis;
  int64_t length;                // updates along the axis
  int64_t rows, columns, block;  // rows of `columns` updates; columns of a block
  int64_t blocks;
};
Lines lines_of(const Call&);
// How slices are shared out: blocks of columns, and parts of the slices of the result.
struct Shares {
  int64_t blocks, block, parts;
};
Shares shares_of(const Tuples&);

// What the rows of all instruction sets share. Phase 0 of a scatter copies, phase 1 joins.
int64_t lines_units(const Call&, int phase);
int64_t shares_units(const Call&, int phase);

const char* gather_check(const Call&);
const char* gather_elements_check(const Call&);
const char* gather_nd_check(const Call&);
const char* scatter_elements_check(const Call&);
const char* scatter_nd_check(const Call&);
bool gather_stray(const Call&, Stray&);
bool gather_nd_stray(const Call&, Stray&);
bool scatter_nd_stray(const Call&, Stray&);

}  // namespace invar::ops
