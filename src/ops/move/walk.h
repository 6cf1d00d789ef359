// Data movement as strided loops: every element of the result comes from one element of one
// operand, axis by axis. Computed out of line (kernels/call.h) from shapes and attributes only, so
// no unit depends on threads.
#pragma once
#include "kernels/call.h"
#include "ops/move/attributes.h"
#include "ops/move/table.h"

namespace invar::ops {

// The source of index i along an axis of the result (move.2): j = i - begin, in an operand of
// `length` along this axis.
enum class PadMode : uint8_t {
  none,      // j itself: always in bounds
  constant,  // out of bounds: the fill value
  edge,      // out of bounds: the nearest element
  reflect,   // mirrored at both ends, which are not repeated
  wrap,      // modulo the length
};
struct MoveAxis {
  int64_t size;    // of the result
  int64_t stride;  // in elements of the operand
  PadMode pad_mode = PadMode::none;
  int64_t begin = 0, length = 0;
};

// A run of `count` results whose sources start at `at`, `stride` apart, or that are all the fill
// value.
struct MoveRun {
  int64_t at, stride, count;
  bool outside;
};
INVAR_INLINE MoveRun move_run(const MoveAxis& a, int64_t i, int64_t most) {
  int64_t j = i - a.begin, s = a.stride, n = a.length;
  auto until = [most](int64_t count) { return count < most ? count : most; };
  switch (a.pad_mode) {
    case PadMode::none: return {i * s, s, most, false};
    case PadMode::constant:
      if (j < 0) return {0, 0, until(-j), true};
      return j < n ? MoveRun{j * s, s, until(n - j), false} : MoveRun{0, 0, most, true};
    case PadMode::edge:
      if (j < 0) return {0, 0, until(-j), false};
      return j < n ? MoveRun{j * s, s, until(n - j), false} : MoveRun{(n - 1) * s, 0, most, false};
    case PadMode::reflect: {
      if (n == 1) return {0, 0, most, false};
      int64_t period = 2 * (n - 1), m = j % period;
      if (m < 0) m += period;
      return m < n - 1 ? MoveRun{m * s, s, until(n - 1 - m), false}
                       : MoveRun{(period - m) * s, -s, until(period - m), false};
    }
    case PadMode::wrap: break;
  }
  int64_t m = j % n;
  if (m < 0) m += n;
  return {m * s, s, until(n - m), false};
}

// Axes from the outermost to the innermost, at least one; adjacent axes that are traversed in step
// are merged.
struct MoveLoops {
  int rank = 0;
  int64_t base = 0;  // the first element of the operand
  MoveAxis axis[kMaxRank];
  // If the innermost axis is strided in memory and axis `contiguous_axis` is contiguous, blocks of
  // both are transposed at a time: `groups` groups of the innermost, `blocks` of the other.
  int contiguous_axis = -1;
  int64_t groups = 0, blocks = 0;
};
enum class Move : uint8_t {
#define INVAR_EACH(name) name,
  INVAR_MOVES(INVAR_EACH)
#undef INVAR_EACH
};
MoveLoops move_loops(Move, const Call&);
int64_t move_units(const MoveLoops&, const Call&);
int64_t move_alias_offset(Move, const Call&);  // OpContract::alias_offset

// A transposed block: bytes along memory, elements across it; elements of a group.
inline constexpr int64_t kTransposeBytes = 64, kTransposeAcross = 64, kTransposeGroup = 1024;

// The dimension of the operand that becomes dimension d: without a list, the order is reversed.
INVAR_INLINE int64_t permuted(const IntegerList& perm, int d, int rank) {
  return perm.absent() ? rank - 1 - d : perm[d];
}

// Null if the room accepts these operands, else what it requires.
const char* move_check(Move, const Call&);
const char* concat_check(const Call&);
const char* trilu_check(const Call&);
const char* sequence_check(const Call&);
const char* one_hot_check(const Call&);
const char* iota_check(const Call&);

int64_t triangle_units(const Call&, int phase);  // rows of the last dimension
int64_t sequence_units(const Call&, int phase);  // indices of the first two dimensions

}  // namespace invar::ops
