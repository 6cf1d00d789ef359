// Data movement: the strided loops of each operation, and the checks.
#include "kernels/check.h"
#include "kernels/fusion/part_rules.h"
#include "ops/move/walk.h"

namespace invar::ops {
namespace {

constexpr int64_t kMinTransposeSize = 8;  // shorter innermost axes are copied as that many streams

// Merges the axis with its outer neighbour if both form one longer axis.
void append(MoveLoops& w, MoveAxis a) {
  if (a.size == 1 && a.pad_mode == PadMode::none) return;
  if (w.rank > 0 && a.pad_mode == PadMode::none) {
    MoveAxis& outer = w.axis[w.rank - 1];
    bool in_step = outer.stride == a.stride * a.size;
    if (in_step && outer.pad_mode != PadMode::edge && outer.pad_mode != PadMode::reflect) {
      outer.size *= a.size, outer.stride = a.stride;
      outer.begin *= a.size, outer.length *= a.size;
      return;
    }
  }
  w.axis[w.rank++] = a;
}

const RegisteredPartRule joined_parts({.op = "concat", .joins_along = [](const Attributes& attrs) -> int64_t {
                                         return ConcatAttributes(attrs).axis;
                                       }});

void find_transpose(MoveLoops& w, int64_t width) {
  for (int d = 0; d < w.rank; ++d)
    if (w.axis[d].pad_mode != PadMode::none) return;
  const MoveAxis& inner = w.axis[w.rank - 1];
  if (inner.stride == 0 || inner.stride == 1 || inner.size < kMinTransposeSize) return;
  for (int d = 0; d + 1 < w.rank; ++d)
    if (w.axis[d].stride == 1 && w.axis[d].size > 1) w.contiguous_axis = d;
  if (w.contiguous_axis < 0) return;
  int64_t lines = kTransposeBytes / width;
  w.groups = (inner.size + kTransposeGroup - 1) / kTransposeGroup;
  w.blocks = (w.axis[w.contiguous_axis].size + lines - 1) / lines;
}

PadMode pad_mode_of(Move move) {
  return move == Move::pad           ? PadMode::constant
         : move == Move::pad_edge    ? PadMode::edge
         : move == Move::pad_reflect ? PadMode::reflect
                                     : PadMode::wrap;
}

}  // namespace

MoveLoops move_loops(Move move, const Call& call) {
  const View &x = call.in[0], &out = call.out[0];
  int64_t stride[kMaxRank], step = 1;
  for (int d = x.rank - 1; d >= 0; --d) stride[d] = step, step *= x.dim[d];
  MoveLoops w;
  switch (move) {
    case Move::transpose: {
      const TransposeAttributes a(call);
      for (int d = 0; d < out.rank; ++d) append(w, {out.dim[d], stride[permuted(a.perm, d, out.rank)]});
      break;
    }
    case Move::slice: {
      const SliceAttributes a(call);
      for (int d = 0; d < out.rank; ++d) {
        w.base += (a.starts[d] < 0 ? a.starts[d] + x.dim[d] : a.starts[d]) * stride[d];
        append(w, {out.dim[d], a.steps[d] * stride[d]});
      }
      break;
    }
    case Move::expand:
      for (int d = 0; d < out.rank; ++d) {
        int from = d - (out.rank - x.rank);
        append(w, {out.dim[d], from < 0 || x.dim[from] == 1 ? 0 : stride[from]});
      }
      break;
    case Move::depth_to_space: {
      const DepthToSpaceAttributes a(call);
      int64_t b = a.blocksize, c = out.dim[1], plane = x.dim[2] * x.dim[3];
      bool crd = a.crd != 0;
      append(w, {x.dim[0], stride[0]});
      append(w, {c, crd ? b * b * plane : plane});
      append(w, {x.dim[2], x.dim[3]});
      append(w, {b, (crd ? b : b * c) * plane});
      append(w, {x.dim[3], 1});
      append(w, {b, (crd ? 1 : c) * plane});
      break;
    }
    case Move::space_to_depth: {
      int64_t b = SpaceToDepthAttributes(call).blocksize;
      append(w, {x.dim[0], stride[0]});
      append(w, {b, x.dim[3]});
      append(w, {b, 1});
      append(w, {x.dim[1], stride[1]});
      append(w, {out.dim[2], b * x.dim[3]});
      append(w, {out.dim[3], b});
      break;
    }
    default: {
      const PadAttributes a(call);
      for (int d = 0; d < out.rank; ++d) {
        if (a.begins[d] == 0 && out.dim[d] == x.dim[d])
          append(w, {out.dim[d], stride[d]});
        else
          append(w, {out.dim[d], stride[d], pad_mode_of(move), a.begins[d], x.dim[d]});
      }
    }
  }
  if (w.rank == 0) w.axis[w.rank++] = {1, 1};
  find_transpose(w, static_cast<int64_t>(size_of(out.dtype)));
  return w;
}

int64_t move_units(const MoveLoops& w, const Call& call) {
  if (w.contiguous_axis < 0) return chunk_units(call, 0);
  int64_t units = w.blocks * w.groups;
  for (int d = 0; d + 1 < w.rank; ++d)
    if (d != w.contiguous_axis) units *= w.axis[d].size;
  return units;
}

int64_t move_alias_offset(Move move, const Call& call) {
  const MoveLoops w = move_loops(move, call);
  const MoveAxis& only = w.axis[0];
  const bool together = w.rank == 1 && only.stride == 1 && only.pad_mode == PadMode::none;
  return together && call.out[0].elements() ? w.base * static_cast<int64_t>(size_of(call.out[0].dtype)) : -1;
}

int64_t triangle_units(const Call& call, int phase) {
  return call.out[0].elements() ? row_units(call, phase) : 0;
}

int64_t sequence_units(const Call& call, int) {
  const View& x = call.in[0];
  return x.elements() ? x.dim[0] * x.dim[1] : 0;
}

namespace {

bool divides(int64_t b, int64_t n) {
  return n % b == 0;
}

const char* check_transpose(const Call& c) {
  const View &x = c.in[0], &out = c.out[0];
  const IntegerList perm = TransposeAttributes(c).perm;
  if (out.rank != x.rank || !perm.fits(x.rank)) return "a permutation of the operand's dimensions";
  unsigned seen = 0;
  for (int d = 0; d < x.rank; ++d) {
    int64_t from = permuted(perm, d, x.rank);
    if (from < 0 || from >= x.rank || (seen >> from & 1)) return "a permutation of the operand's dimensions";
    seen |= 1u << from;
    if (out.dim[d] != x.dim[from]) return "a result shaped like the permuted operand";
  }
  return nullptr;
}

const char* check_slice(const Call& c) {
  const View &x = c.in[0], &out = c.out[0];
  const SliceAttributes a(c);
  if (out.rank != x.rank || !a.starts.fits(x.rank) || !a.steps.fits(x.rank))
    return "starts and steps for every dimension of the operand";
  for (int d = 0; d < x.rank; ++d) {
    if (out.dim[d] == 0) continue;
    int64_t n = x.dim[d], first = a.starts[d], step = a.steps[d], last;
    if (first < 0 && first >= -n) first += n;
    if (__builtin_mul_overflow(out.dim[d] - 1, step, &last) || __builtin_add_overflow(last, first, &last) ||
        first < 0 || first >= n || last < 0 || last >= n)
      return "slices inside the operand";
  }
  return nullptr;
}

const char* check_expand(const Call& c) {
  const View &x = c.in[0], &out = c.out[0];
  if (out.rank < x.rank) return "a result of the operand's rank or a higher one";
  for (int i = 1; i <= x.rank; ++i)
    if (x.dim[x.rank - i] != 1 && x.dim[x.rank - i] != out.dim[out.rank - i])
      return "an operand that broadcasts to the result's shape";
  return nullptr;
}

const char* check_blocks(const View& deep, const View& wide, int64_t b) {
  if (deep.rank != 4 || wide.rank != 4) return "operand and result of rank 4";
  if (b < 1 || b > INT32_MAX) return "a positive blocksize";
  if (deep.dim[0] != wide.dim[0] || !divides(b * b, deep.dim[1]) || deep.dim[1] / (b * b) != wide.dim[1])
    return "blocksize^2 times the channels on the deep side";
  for (int d = 2; d < 4; ++d)
    if (!divides(b, wide.dim[d]) || wide.dim[d] / b != deep.dim[d])
      return "blocksize times the height and width on the wide side";
  return nullptr;
}

const char* check_pad(const Call& c, bool filled) {
  const View &x = c.in[0], &out = c.out[0];
  const IntegerList begins = PadAttributes(c).begins;
  if (out.rank != x.rank || !begins.fits(x.rank)) return "begins for every dimension of the operand";
  if (c.in.size() > 1 && (c.in[1].dtype != x.dtype || c.in[1].elements() != 1))
    return "a fill value of the operand's type";
  for (int d = 0; d < x.rank; ++d) {
    int64_t begin = begins[d], most = x.dim[d] > out.dim[d] ? x.dim[d] : out.dim[d];
    if (begin < -most || begin > most) return "begins within the operand or the result";
    if (!filled && x.dim[d] == 0 && out.dim[d] != 0) return "a dimension with elements where it is continued";
  }
  return nullptr;
}

}  // namespace

const char* move_check(Move move, const Call& c) {
  const bool filled = move == Move::pad;
  if (c.in.empty() || c.in.size() > (filled ? 2 : 1) || c.out.size() != 1)
    return "one operand and one result";
  if (c.in[0].dtype != c.out[0].dtype) return "operand and result of one dtype";
  const DepthToSpaceAttributes a(c);
  if (a.crd != 0 && a.crd != 1) return "crd of 0 or 1";
  switch (move) {
    case Move::transpose: return check_transpose(c);
    case Move::slice: return check_slice(c);
    case Move::expand: return check_expand(c);
    case Move::depth_to_space: return check_blocks(c.in[0], c.out[0], a.blocksize);
    case Move::space_to_depth: return check_blocks(c.out[0], c.in[0], a.blocksize);
    default: return check_pad(c, filled);
  }
}

const char* concat_check(const Call& c) {
  if (c.in.empty() || c.out.size() != 1) return "operands and one result";
  const View& out = c.out[0];
  int64_t axis = ConcatAttributes(c).axis, total = 0;
  if (axis < 0 || axis >= out.rank) return "an axis of the result";
  for (const View& v : c.in) {
    if (v.dtype != out.dtype || v.rank != out.rank) return "operands of the result's type and rank";
    for (int d = 0; d < out.rank; ++d)
      if (d != axis && v.dim[d] != out.dim[d]) return "operands that differ along the axis only";
    if (__builtin_add_overflow(total, v.dim[axis], &total)) return "a sum of dimensions that is a dimension";
  }
  return total == out.dim[axis] ? nullptr : "a result as long as all operands along the axis";
}

const char* trilu_check(const Call& c) {
  if (!has_operands(c, 1, 1) || c.in[0].dtype != c.out[0].dtype || !same_shape(c.in[0], c.out[0]))
    return "a result shaped like the operand";
  int64_t upper = TriluAttributes(c).upper;
  if (upper != 0 && upper != 1) return "upper of 0 or 1";
  return c.in[0].rank >= 2 ? nullptr : "an operand of rank 2 or more";
}

const char* sequence_check(const Call& c) {
  if (!has_operands(c, 2, 1) || c.in[0].dtype != c.out[0].dtype || !same_shape(c.in[0], c.out[0]))
    return "an operand, lengths, and a result shaped like the operand";
  const View &x = c.in[0], &lengths = c.in[1];
  int64_t time = ReverseSequenceAttributes(c).time_axis;
  if (x.rank < 2 || (time != 0 && time != 1)) return "time_axis 0 or 1 of rank 2 or more";
  if (lengths.dtype != DType::i64 || lengths.rank != 1 || lengths.dim[0] != x.dim[1 - time])
    return "an i64 length for each sequence";
  return nullptr;
}

const char* one_hot_check(const Call& c) {
  if (!has_operands(c, 2, 1)) return "indices, two values and one result";
  const View &index = c.in[0], &values = c.in[1], &out = c.out[0];
  if ((index.dtype != DType::i64 && index.dtype != DType::i32) || values.dtype != out.dtype ||
      values.rank != 1 || values.dim[0] != 2)
    return "i64 or i32 indices and two values of the result's type";
  int64_t axis = OneHotAttributes(c).axis;
  if (out.rank != index.rank + 1 || axis < 0 || axis >= out.rank)
    return "one axis more than the indices have";
  for (int d = 0; d < index.rank; ++d)
    if (index.dim[d] != out.dim[d < axis ? d : d + 1])
      return "a result shaped like the indices beside the axis";
  return nullptr;
}

const char* iota_check(const Call& c) {
  if (!has_operands(c, 2, 1)) return "two operands and one result";
  const View &a = c.in[0], &b = c.in[1], &out = c.out[0];
  if (a.dtype != out.dtype || b.dtype != out.dtype) return "operands of the result's type";
  if (out.dtype != DType::f32 && out.dtype != DType::i64 && out.dtype != DType::i32) return "f32, i64 or i32";
  return a.elements() == 1 && b.elements() == 1 && out.rank == 1 ? nullptr
                                                                 : "two numbers and a result of rank 1";
}

}  // namespace invar::ops
