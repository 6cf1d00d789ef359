// What the kernels of joins share (kernels/fusion/join_kernels.h): the mailboxes, and how words
// come there. Few words go as lines: one store of 64 bits has a word and the mark of its join, so
// that what arrives says itself that it is whole, and no fence is needed. More of them go as they
// are, in pieces; a flag behind each piece is released by its sender and acquired by its reader.
// Each wait has a bound in time.
#pragma once
#include "kernels/cuda/fast_divide.h"
#include "kernels/fusion/join_kernels.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int64_t kMaxLines = int64_t{1} << 17;  // of a part: more words go in pieces
constexpr int kSenders = 64, kPieces = 8;        // blocks that send, and pieces of each

// A mailbox: lines, then flags, then pieces. Each is [half][sending rank][...].
struct MailboxLayout {
  int64_t lines, flags, part;  // bytes of a sender, in one half
  int64_t flags_at, parts_at, size;
};
MailboxLayout mailbox_layout(int ranks, int64_t part_bytes) {
  MailboxLayout m{};
  const int64_t senders = 2 * int64_t{ranks};
  const int64_t words = ceil_div(part_bytes, 4);
  m.lines = ceil_div((words < kMaxLines ? words : kMaxLines) + 1, 32) * 256;
  m.flags = ceil_div(kSenders * kPieces * 4, 256) * 256;
  m.part = words <= kMaxLines ? 0 : ceil_div(part_bytes, 256) * 256;
  m.flags_at = senders * m.lines, m.parts_at = m.flags_at + senders * m.flags;
  m.size = m.parts_at + senders * m.part;
  return m;
}

struct JoinPart {
  int64_t words = 0, first = 0;  // of the part, and of its rows within those of the result
  int64_t columns = 0;           // words of a row
  FastDivmod width;              // the same
};
// A step's join, for one rank. Addresses are those of the half that it uses.
struct JoinWork {
  int ranks, rank;
  JoinPart part[kMaxJoinedRanks];     // per rank
  int64_t width;                      // words of a row of the result
  char* to[kMaxJoinedRanks];          // per rank: its place for what this one sends
  const char* from[kMaxJoinedRanks];  // per rank: the own place for what that one sends
  uint32_t* flag_to[kMaxJoinedRanks];
  const uint32_t* flag_from[kMaxJoinedRanks];
  const uint32_t* own;
  const float* addend;  // null: none
  uint32_t* out;
  const uint32_t* base;
  uint32_t number;
  uint32_t* stalled;
  uint64_t patience;
  int64_t most;   // words of any part
  bool in_lines;  // else in pieces
};

__device__ void store_line(uint64_t* to, uint64_t line) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(line) : "memory");
}
__device__ uint64_t load_line(const uint64_t* from) {
  uint64_t line;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(line) : "l"(from) : "memory");
  return line;
}
__device__ void release_flag(uint32_t* to, uint32_t mark) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(mark) : "memory");
}
__device__ uint32_t acquire_flag(const uint32_t* from) {
  uint32_t mark;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(mark) : "l"(from) : "memory");
  return mark;
}
__device__ uint64_t nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)::"memory");
  return now;
}

// Calls arrived() until it is true, or some rank of this step is known to be stalled. The bound is
// one of time, looked at now and then.
template <class Arrived>
__device__ void wait_until(const JoinWork& w, int sender, Arrived arrived) {
  constexpr int kLooks = 256;
  uint64_t start = 0;
  for (;;) {
#pragma unroll 1
    for (int i = 0; i < kLooks; ++i)
      if (arrived()) return;
    if (*reinterpret_cast<volatile uint32_t*>(w.stalled)) return;
    const uint64_t now = nanoseconds();
    if (start == 0) start = now;
    if (now - start < w.patience) continue;
    atomicCAS(w.stalled, 0u, 1u + static_cast<uint32_t>(sender));
    return;
  }
}

// The join that `call`, a concatenation along `axis`, is in this step.
inline JoinWork join_work(const Call& call, const GpuJoin& join, int64_t axis) {
  const View& out = call.out[0];
  int64_t inner = static_cast<int64_t>(size_of(out.dtype)) / 4, rows = 1;
  for (int d = 0; d < out.rank; ++d) (d < axis ? rows : inner) *= d == axis ? 1 : out.dim[d];
  JoinWork w{};
  w.ranks = join.ranks, w.rank = join.rank, w.width = out.dim[axis] * inner, w.most = 1;
  int64_t first = 0;
  for (size_t i = 0; i < call.in.size(); ++i) {
    const View& v = call.in[i];
    JoinPart& part = checked(w.part, join.makers[i]);
    const int64_t width = v.dim[axis] * inner;
    part.words = rows * width, part.first = first;
    part.columns = width, part.width = FastDivmod(width);
    first += width;
    w.most = part.words > w.most ? part.words : w.most;
    if (join.makers[i] == join.rank) w.own = v.as<const uint32_t>();
  }
  const MailboxLayout m = mailbox_layout(join.ranks, join.part_bytes);
  w.in_lines = w.most <= kMaxLines;
  const int64_t half = join.number % 2 * int64_t{join.ranks};
  const int64_t at = w.in_lines ? 0 : m.parts_at, bytes = w.in_lines ? m.lines : m.part;
  for (int r = 0; r < join.ranks; ++r) {
    char* const there = reinterpret_cast<char*>(join.mailboxes[r]);
    char* const here = reinterpret_cast<char*>(join.mailboxes[join.rank]);
    checked(w.to, r) = there + at + (half + join.rank) * bytes;
    w.from[r] = here + at + (half + r) * bytes;
    w.flag_to[r] = reinterpret_cast<uint32_t*>(there + m.flags_at + (half + join.rank) * m.flags);
    w.flag_from[r] = reinterpret_cast<const uint32_t*>(here + m.flags_at + (half + r) * m.flags);
  }
  w.out = out.as<uint32_t>(), w.addend = join.addend;
  w.base = join.base, w.number = join.number, w.stalled = join.stalled, w.patience = join.patience;
  return w;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
