// How the operations of this room walk memory: every element of the result comes from one element of one operand, axis by
// axis. Computed out of line (kernels/call.h) from shapes and attributes alone, so that no unit depends on threads.
#pragma once
#include "kernels/call.h"
#include "ops/move/table.h"

namespace invar::ops {

// Where index i along an axis of the result comes from (move.2): j = i - begin, in an operand of `length` along this axis.
enum class Beyond : uint8_t {
  never,     // j itself: every j is inside
  constant,  // outside: the fill value
  edge,      // outside: the nearest inside
  reflect,   // mirrored at both ends, which are not repeated
  wrap,      // modulo the length
};
struct MoveAxis {
  int64_t size;    // of the result
  int64_t stride;  // in elements of the operand
  Beyond beyond = Beyond::never;
  int64_t begin = 0, length = 0;
};

// `size` results from `begin` on that lie `stride` apart from `at` on, or are all the fill value.
struct MovePiece {
  int64_t at, stride, count;
  bool outside;
};
INVAR_INLINE MovePiece move_piece(const MoveAxis& a, int64_t i, int64_t most) {
  int64_t j = i - a.begin, s = a.stride, n = a.length;
  auto until = [most](int64_t count) { return count < most ? count : most; };
  switch (a.beyond) {
    case Beyond::never: return {i * s, s, most, false};
    case Beyond::constant:
      if (j < 0) return {0, 0, until(-j), true};
      return j < n ? MovePiece{j * s, s, until(n - j), false} : MovePiece{0, 0, most, true};
    case Beyond::edge:
      if (j < 0) return {0, 0, until(-j), false};
      return j < n ? MovePiece{j * s, s, until(n - j), false} : MovePiece{(n - 1) * s, 0, most, false};
    case Beyond::reflect: {
      if (n == 1) return {0, 0, most, false};
      int64_t period = 2 * (n - 1), m = j % period;
      if (m < 0) m += period;
      return m < n - 1 ? MovePiece{m * s, s, until(n - 1 - m), false}
                       : MovePiece{(period - m) * s, -s, until(period - m), false};
    }
    case Beyond::wrap: break;
  }
  int64_t m = j % n;
  if (m < 0) m += n;
  return {m * s, s, until(n - m), false};
}

// Axes from the outermost, neighbours that are walked in step merged; at least one. The last is the innermost.
struct MoveWalk {
  int rank = 0;
  int64_t base = 0;  // the element at which the operand is entered
  MoveAxis axis[kMaxRank];
  // Where the innermost axis crosses memory and axis `along` follows it, blocks of both are turned at a time: `groups`
  // runs of the innermost, `blocks` of the other.
  int along = -1;
  int64_t groups = 0, blocks = 0;
};
enum class Move : uint8_t {
#define INVAR_EACH(name) name,
  INVAR_MOVES(INVAR_EACH)
#undef INVAR_EACH
};
MoveWalk move_walk(Move, const Call&);
int64_t move_units(const MoveWalk&, const Call&);
int64_t move_lies(Move, const Call&);  // Kernel::lies

// Bytes of a turned block along memory, its elements across it, and elements of a group.
inline constexpr int64_t kTurnBytes = 64, kTurnAcross = 64, kTurnGroup = 1024;

// Element `i` of the list `name`, or the fallback where the attribute is absent.
int64_t move_list(const Call&, const char* name, int i, int64_t fallback);

// Null where the room takes these operands, else what it requires.
const char* move_check(Move, const Call&);
const char* concat_check(const Call&);
const char* trilu_check(const Call&);
const char* sequence_check(const Call&);
const char* one_hot_check(const Call&);
const char* iota_check(const Call&);

int64_t triangle_units(const Call&, int phase);  // rows of the last dimension
int64_t sequence_units(const Call&, int phase);  // places of the first two dimensions

}  // namespace invar::ops
