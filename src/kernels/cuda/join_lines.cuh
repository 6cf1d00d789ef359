// What the kernels of joins share (kernels/fusion/join_kernels.h): the mailboxes, and how words
// come there. Few words go as lines: one store of 64 bits has a word and the mark of its join, so
// that what arrives says itself that it is whole, and no fence is needed. More of them go as they
// are, in pieces; a flag behind each piece is released by its sender and acquired by its reader.
// Each wait has a bound in time.
#pragma once
#include "kernels/cuda/fast_divide.h"
#include "kernels/fusion/join_kernels.h"
#include "num/lane/lane.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int64_t kMaxLines = int64_t{1} << 19;  // of a part: more words go in pieces
constexpr int kSenders = 128, kPieces = 8;       // blocks that send, and pieces of each at most

// A mailbox: lines, then flags, then pieces. Each is [half][sending rank][...].
struct MailboxLayout {
  int64_t lines, flags, part;  // bytes of a sender, in one half
  int64_t flags_at, parts_at, size;
};
inline MailboxLayout mailbox_layout(int ranks, int64_t part_bytes) {
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
  const uint32_t* given_up;
  int64_t most;   // words of any part
  bool in_lines;  // else in pieces
};

__device__ inline void store_line(uint64_t* to, uint64_t line) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(line) : "memory");
}
__device__ inline uint64_t load_line(const uint64_t* from) {
  uint64_t line;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(line) : "l"(from) : "memory");
  return line;
}
__device__ inline void release_flag(uint32_t* to, uint32_t mark) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(mark) : "memory");
}
__device__ inline uint32_t acquire_flag(const uint32_t* from) {
  uint32_t mark;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(mark) : "l"(from) : "memory");
  return mark;
}
__device__ inline uint64_t nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)::"memory");
  return now;
}

// Calls arrived() until it is true, or some rank of this step is known to be stalled or to have
// failed. The bound is one of time, looked at now and then.
template <class Arrived>
__device__ void wait_until(const JoinWork& w, int sender, Arrived arrived) {
  constexpr int kLooks = 256;
  uint64_t start = 0;
  for (;;) {
#pragma unroll 1
    for (int i = 0; i < kLooks; ++i)
      if (arrived()) return;
    if (*reinterpret_cast<volatile uint32_t*>(w.stalled)) return;
    if (w.given_up && *reinterpret_cast<const volatile uint32_t*>(w.given_up)) return;
    const uint64_t now = nanoseconds();
    if (start == 0) start = now;
    if (now - start < w.patience) continue;
    atomicCAS(w.stalled, 0u, 1u + static_cast<uint32_t>(sender));
    return;
  }
}

// What is stored of the result: words, and the addend if there is one.
__device__ inline uint32_t sum_of(uint32_t word, float addend) {
  return __float_as_uint(canonicalize(add(F{__uint_as_float(word)}, F{addend})).v);
}
__device__ inline void store_sum(const JoinWork& w, int64_t at, uint32_t word) {
  w.out[at] = w.addend ? sum_of(word, w.addend[at]) : word;
}
__device__ inline void store_sum(const JoinWork& w, int64_t at, uint4 words) {
  if (w.addend) {
    const float4 x = *reinterpret_cast<const float4*>(w.addend + at);
    words = {sum_of(words.x, x.x), sum_of(words.y, x.y), sum_of(words.z, x.z), sum_of(words.w, x.w)};
  }
  *reinterpret_cast<uint4*>(w.out + at) = words;
}

// Two lines by one access: each of them is whole or not there yet.
__device__ inline void store_lines(uint64_t* to, uint32_t a, uint32_t b, uint64_t mark) {
  asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(mark | a), "l"(mark | b)
               : "memory");
}
__device__ inline bool load_lines(const uint64_t* from, uint32_t& a, uint32_t& b, uint32_t mark) {
  uint64_t line[2];
  asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(line[0]), "=l"(line[1])
               : "l"(from)
               : "memory");
  a = static_cast<uint32_t>(line[0]), b = static_cast<uint32_t>(line[1]);
  return line[0] >> 32 == mark && line[1] >> 32 == mark;
}
// Four words from word `i` of the own part on, for all others; those of a sender.
__device__ inline void send_quad(const JoinWork& w, int64_t i, const uint4& x, uint32_t mark) {
  for (int r = 0; r < w.ranks; ++r) {
    if (r == w.rank) continue;
    uint64_t* const to = reinterpret_cast<uint64_t*>(w.to[r]) + i;
    store_lines(to, x.x, x.y, uint64_t{mark} << 32), store_lines(to + 2, x.z, x.w, uint64_t{mark} << 32);
  }
}
__device__ inline uint4 receive_quad(const JoinWork& w, int sender, int64_t i, uint32_t mark) {
  const uint64_t* const from = reinterpret_cast<const uint64_t*>(w.from[sender]) + i;
  uint4 x;
  wait_until(w, sender,
             [&] { return load_lines(from, x.x, x.y, mark) & load_lines(from + 2, x.z, x.w, mark); });
  return x;
}
// By all threads of a block: row r of the result, whose parts are of whole quads.
__device__ inline void join_row(const JoinWork& w, int64_t r) {
  const uint32_t mark = *w.base + w.number;
  const JoinPart& own = w.part[w.rank];
  const int64_t first = threadIdx.x * 4, step = int64_t{blockDim.x} * 4;
  for (int64_t i = first; i < own.columns; i += step) {
    const uint4 x = *reinterpret_cast<const uint4*>(w.own + r * own.columns + i);
    send_quad(w, r * own.columns + i, x, mark);
    store_sum(w, r * w.width + own.first + i, x);
  }
  for (int s = 0; s < w.ranks; ++s)
    for (int64_t i = first; s != w.rank && i < w.part[s].columns; i += step)
      store_sum(w, r * w.width + w.part[s].first + i, receive_quad(w, s, r * w.part[s].columns + i, mark));
}
inline bool are_quads(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % 16 == 0;
}
// Whether every rank adds lines of whole quads.
inline bool joins_quads(const JoinWork& w) {
  bool fits = w.in_lines && w.width % 4 == 0 && are_quads(w.own) && are_quads(w.addend);
  for (int r = 0; r < w.ranks; ++r) fits &= w.part[r].words > 0 && w.part[r].columns % 4 == 0;
  return fits;
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
  w.given_up = join.given_up;
  return w;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
