// spec: move.1 - move.12. For each element of the result, its source.
#include "kernels/reference.h"

#include <cstring>

#include "kernels/batch_independence.h"
#include "ops/move/walk.h"

namespace invar::ops {
namespace {

struct MultiIndex {
  int64_t at[kMaxRank];
};
MultiIndex index_of(const View& v, int64_t i) {
  MultiIndex x{};
  for (int d = v.rank - 1; d >= 0; --d) x.at[d] = i % v.dim[d], i /= v.dim[d];
  return x;
}
int64_t offset_of(const View& v, const MultiIndex& x) {
  int64_t at = 0;
  for (int d = 0; d < v.rank; ++d) at = at * v.dim[d] + x.at[d];
  return at;
}
int64_t modulo(int64_t a, int64_t n) {
  return a % n < 0 ? a % n + n : a % n;
}

// move.4: index j of an axis of n elements; -1: the fill value.
int64_t pad_index(Move move, int64_t j, int64_t n) {
  if (j >= 0 && j < n) return j;
  if (move == Move::pad) return -1;
  if (move == Move::pad_edge) return j < 0 ? 0 : n - 1;
  if (move == Move::pad_wrap) return modulo(j, n);
  if (n == 1) return 0;
  int64_t m = modulo(j, 2 * n - 2);
  return m < n ? m : 2 * n - 2 - m;
}

// The index in operand 0 of element o of the result; false: the fill value.
bool source(Move move, const Call& call, const MultiIndex& o, MultiIndex& from) {
  const View &x = call.in[0], &out = call.out[0];
  switch (move) {
    case Move::transpose: {
      const TransposeAttributes a(call);
      for (int d = 0; d < x.rank; ++d) from.at[permuted(a.perm, d, x.rank)] = o.at[d];
      return true;
    }
    case Move::slice: {
      const SliceAttributes a(call);
      for (int d = 0; d < x.rank; ++d)
        from.at[d] = (a.starts[d] < 0 ? a.starts[d] + x.dim[d] : a.starts[d]) + o.at[d] * a.steps[d];
      return true;
    }
    case Move::expand:
      for (int d = 0; d < x.rank; ++d) from.at[d] = x.dim[d] == 1 ? 0 : o.at[out.rank - x.rank + d];
      return true;
    case Move::depth_to_space: {
      const DepthToSpaceAttributes a(call);
      const int64_t b = a.blocksize, block = o.at[2] % b * b + o.at[3] % b;
      from = {{o.at[0], a.crd ? o.at[1] * b * b + block : block * out.dim[1] + o.at[1], o.at[2] / b,
               o.at[3] / b}};
      return true;
    }
    case Move::space_to_depth: {
      const int64_t b = SpaceToDepthAttributes(call).blocksize, block = o.at[1] / x.dim[1];
      from = {{o.at[0], o.at[1] % x.dim[1], o.at[2] * b + block / b, o.at[3] * b + block % b}};
      return true;
    }
    default: {
      const PadAttributes a(call);
      for (int d = 0; d < x.rank; ++d) {
        from.at[d] = pad_index(move, o.at[d] - a.begins[d], x.dim[d]);
        if (from.at[d] < 0) return false;
      }
      return true;
    }
  }
}

// Calls f(element of the result, its bytes) for the elements of units of kChunk.
template <class Fn>
void each_element(const Call& call, int64_t begin, int64_t end, Fn f) {
  int64_t n = call.out[0].elements(), width = static_cast<int64_t>(size_of(call.out[0].dtype));
  for (int64_t i = begin * kChunk; i < n && i < end * kChunk; ++i) f(i, call.out[0].as<char>() + i * width);
}
// Copies the bytes of element `from` of v, or zeros if v is null.
void put_bytes(char* to, const View* v, int64_t from, DType t) {
  size_t width = size_of(t);
  if (v)
    std::memcpy(to, v->as<const char>() + from * static_cast<int64_t>(width), width);
  else
    std::memset(to, 0, width);
}

template <Move move>
void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View& x = call.in[0];
  each_element(call, begin, end, [&](int64_t i, char* to) {
    MultiIndex from{};
    if (source(move, call, index_of(call.out[0], i), from))
      put_bytes(to, &x, offset_of(x, from), x.dtype);
    else
      put_bytes(to, call.in.size() > 1 ? &call.in[1] : nullptr, 0, x.dtype);
  });
}

void concat(const Call& call, int, int64_t begin, int64_t end, void*) {
  int64_t axis = ConcatAttributes(call).axis;
  each_element(call, begin, end, [&](int64_t i, char* to) {
    MultiIndex o = index_of(call.out[0], i);
    size_t k = 0;
    for (; o.at[axis] >= call.in[k].dim[axis]; ++k) o.at[axis] -= call.in[k].dim[axis];
    put_bytes(to, &call.in[k], offset_of(call.in[k], o), call.out[0].dtype);
  });
}

void trilu(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View& x = call.in[0];
  const TriluAttributes a(call);
  int64_t k = a.k, limit = x.dim[x.rank - 1] + x.dim[x.rank - 2];
  k = k > limit ? limit : k < -limit ? -limit : k;
  each_element(call, begin, end, [&](int64_t i, char* to) {
    MultiIndex o = index_of(x, i);
    int64_t above = o.at[x.rank - 1] - o.at[x.rank - 2] - k;
    bool stays = a.upper ? above >= 0 : above <= 0;
    put_bytes(to, stays ? &x : nullptr, i, x.dtype);
  });
}

void reverse_sequence(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View& x = call.in[0];
  int time = ReverseSequenceAttributes(call).time_axis ? 1 : 0;
  each_element(call, begin, end, [&](int64_t i, char* to) {
    MultiIndex o = index_of(x, i);
    int64_t length = call.in[1].as<const int64_t>()[o.at[1 - time]], &t = o.at[time];
    if (length > x.dim[time]) length = x.dim[time];
    if (t < length) t = length - 1 - t;
    put_bytes(to, &x, offset_of(x, o), x.dtype);
  });
}

void one_hot(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &index = call.in[0], &out = call.out[0];
  int axis = static_cast<int>(OneHotAttributes(call).axis);
  each_element(call, begin, end, [&](int64_t i, char* to) {
    MultiIndex o = index_of(out, i), at{};
    for (int d = 0; d < index.rank; ++d) at.at[d] = o.at[d < axis ? d : d + 1];
    int64_t place = offset_of(index, at);
    int64_t value = index.dtype == DType::i64 ? index.as<int64_t>()[place] : index.as<int32_t>()[place];
    if (value < 0) value += out.dim[axis];
    put_bytes(to, &call.in[1], value == o.at[axis], out.dtype);
  });
}

// a + i * b modulo 2^64 or 2^32; one fma in f32.
void iota(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &a = call.in[0], &b = call.in[1], &out = call.out[0];
  int64_t n = out.elements();
  for (int64_t i = begin * kChunk; i < n && i < end * kChunk; ++i) {
    if (out.dtype == DType::i64)
      out.as<uint64_t>()[i] = *a.as<uint64_t>() + static_cast<uint64_t>(i) * *b.as<uint64_t>();
    else if (out.dtype == DType::i32)
      out.as<uint32_t>()[i] = *a.as<uint32_t>() + static_cast<uint32_t>(i) * *b.as<uint32_t>();
    else
      store_canonical(out, i, __builtin_fmaf(static_cast<float>(i), *b.as<float>(), *a.as<float>()));
  }
}

template <Move move>
const char* check(const Call& call) {
  return move_check(move, call);
}

// The leading axis is not moved.
template <Move move>
int64_t alias_offset(const Call& call) {
  return move_alias_offset(move, call);
}
template <Move move>
bool batch_independent(const Call& c, uint64_t batched) {
  const View& x = c.in[0];
  if (batched != 1) return false;
  switch (move) {
    case Move::transpose: return permuted(TransposeAttributes(c).perm, 0, x.rank) == 0;
    case Move::slice: return SliceAttributes(c).starts[0] == 0 && SliceAttributes(c).steps[0] == 1;
    case Move::expand: return x.rank == c.out[0].rank;
    case Move::depth_to_space:
    case Move::space_to_depth: return true;
    default: return PadAttributes(c).begins[0] == 0;
  }
}
bool concat_batch_independent(const Call& c, uint64_t batched) {
  return ConcatAttributes(c).axis > 0 && c.in.size() < 64 && batched == (uint64_t{1} << c.in.size()) - 1;
}
bool trilu_batch_independent(const Call& c, uint64_t batched) {
  return batched == 1 && c.in[0].rank > 2;
}
bool one_hot_batch_independent(const Call& c, uint64_t batched) {
  return batched == 1 && OneHotAttributes(c).axis > 0;
}

}  // namespace

#define INVAR_ROW_IS(name, check_of, batch_independent_of, run_of, ...)                     \
  extern const OpContract contract_##name;                                                  \
  extern const CpuKernel row_##name##_reference;                                            \
  const OpContract contract_##name = {                                                      \
      .op = #name,                                                                          \
      .check = check_of,                                                                    \
      .batch_independent = batch_independent_of __VA_OPT__(, .alias_offset =) __VA_ARGS__}; \
  const CpuKernel row_##name##_reference = {                                                \
      .op = #name, .isa = "reference", .units = chunk_units, .run = run_of};
#define INVAR_EACH(name)                                                                \
  INVAR_ROW_IS(name, check<Move::name>, batch_independent<Move::name>, run<Move::name>, \
               alias_offset<Move::name>)
INVAR_MOVES(INVAR_EACH)
#undef INVAR_EACH
INVAR_ROW_IS(concat, concat_check, concat_batch_independent, concat)
INVAR_ROW_IS(trilu, trilu_check, trilu_batch_independent, trilu)
INVAR_ROW_IS(reverse_sequence, sequence_check, nullptr, reverse_sequence)
INVAR_ROW_IS(one_hot, one_hot_check, one_hot_batch_independent, one_hot)
INVAR_ROW_IS(iota, iota_check, nullptr, iota)
#undef INVAR_ROW_IS

}  // namespace invar::ops
