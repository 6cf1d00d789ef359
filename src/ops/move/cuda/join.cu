// Joins of ranks on several GPUs. Few words go as lines: one store of 64 bits has a word and the
// mark of its join, so that what arrives says itself that it is whole, and no fence is needed. More
// of them go as they are, in blocks; a flag behind each block is released by its sender and
// acquired by its reader. Each wait has a bound in time.
#include "ops/move/cuda/join.h"

#include "kernels/cuda/fast_divide.h"
#include "kernels/cuda/vectorized_loop.h"
#include "ops/move/attributes.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int64_t kMaxLines = int64_t{1} << 17;  // of a part: more words go in blocks
constexpr int kLineThreads = 256, kMaxLineBlocks = 128;
constexpr int kBlockThreads = 512, kBlocks = 64;
constexpr int64_t kBlockWords = 4;  // blocks begin at multiples of so many words

// A mailbox: lines, then flags, then blocks. Each is [half][sending rank][...].
struct MailboxLayout {
  int64_t lines, flags, part;  // bytes of a sender, in one half
  int64_t flags_at, parts_at, size;
};
MailboxLayout mailbox_layout(int ranks, int64_t part_bytes) {
  MailboxLayout m{};
  const int64_t senders = 2 * int64_t{ranks};
  const int64_t words = ceil_div(part_bytes, 4);
  m.lines = ceil_div((words < kMaxLines ? words : kMaxLines) + 1, 32) * 256;
  m.flags = ceil_div(kBlocks * 4, 256) * 256;
  m.part = words <= kMaxLines ? 0 : ceil_div(part_bytes, 256) * 256;
  m.flags_at = senders * m.lines, m.parts_at = m.flags_at + senders * m.flags;
  m.size = m.parts_at + senders * m.part;
  return m;
}

struct JoinPart {
  int64_t words = 0, first = 0;  // of the part, and of its rows within those of the result
  FastDivmod width;              // words of a row
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
  uint32_t* out;
  const uint32_t* base;
  uint32_t number;
  uint32_t* stalled;
  uint64_t patience;
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

// The word of the result that word i of a part is.
__device__ int64_t place_in(const JoinWork& w, const JoinPart& part, int64_t i) {
  int64_t row = i;
  const int64_t column = part.width.remainder(row);
  return row * w.width + part.first + column;
}

// A rank without a part sends one line, so that the others know that it has come here.
__device__ int64_t lines_of(const JoinPart& part) {
  return part.words > 0 ? part.words : 1;
}

__global__ void __launch_bounds__(kLineThreads) join_lines_kernel(const __grid_constant__ JoinWork w) {
  trigger_and_wait();
  const uint32_t mark = *w.base + w.number;
  const int64_t first = blockIdx.x * int64_t{kLineThreads} + threadIdx.x,
                step = int64_t{gridDim.x} * kLineThreads;
  const JoinPart& own = w.part[w.rank];
  for (int64_t i = first; i < lines_of(own); i += step) {
    const uint32_t word = i < own.words ? w.own[i] : 0;
    const uint64_t line = uint64_t{mark} << 32 | word;
    for (int r = 0; r < w.ranks; ++r)
      if (r != w.rank) store_line(reinterpret_cast<uint64_t*>(w.to[r]) + i, line);
    if (i < own.words) w.out[place_in(w, own, i)] = word;
  }
  for (int r = 0; r < w.ranks; ++r) {
    if (r == w.rank) continue;
    const JoinPart& part = w.part[r];
    for (int64_t i = first; i < lines_of(part); i += step) {
      const auto* const from = reinterpret_cast<const uint64_t*>(w.from[r]) + i;
      uint64_t line = 0;
      wait_until(w, r, [&] { return (line = load_line(from)) >> 32 == mark; });
      if (i < part.words) w.out[place_in(w, part, i)] = static_cast<uint32_t>(line);
    }
  }
}

// The words of a part that block b has.
struct BlockRange {
  int64_t begin, end;
};
__device__ BlockRange block_range(int64_t words, int b) {
  const int64_t groups = (words + kBlockWords - 1) / kBlockWords;
  const int64_t begin = groups * b / kBlocks * kBlockWords, end = groups * (b + 1) / kBlocks * kBlockWords;
  return {begin < words ? begin : words, end < words ? end : words};
}

// T: a word, or four of them where all rows are so aligned.
template <class T>
__global__ void __launch_bounds__(kBlockThreads) join_blocks_kernel(const __grid_constant__ JoinWork w) {
  constexpr int64_t kUnit = sizeof(T) / sizeof(uint32_t);
  const uint32_t mark = *w.base + w.number;
  const int b = static_cast<int>(blockIdx.x);
  const JoinPart& own = w.part[w.rank];
  const BlockRange mine = block_range(own.words, b);
  for (int64_t i = mine.begin + threadIdx.x * kUnit; i < mine.end; i += kBlockThreads * kUnit) {
    const T words = *reinterpret_cast<const T*>(w.own + i);
    for (int r = 0; r < w.ranks; ++r)
      if (r != w.rank) *reinterpret_cast<T*>(w.to[r] + i * 4) = words;
    *reinterpret_cast<T*>(w.out + place_in(w, own, i)) = words;
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0)
    for (int r = 0; r < w.ranks; ++r)
      if (r != w.rank) release_flag(w.flag_to[r] + b, mark);
  for (int r = 0; r < w.ranks; ++r) {
    if (r == w.rank) continue;
    if (threadIdx.x == 0) wait_until(w, r, [&] { return acquire_flag(w.flag_from[r] + b) == mark; });
    __syncthreads();
    const JoinPart& part = w.part[r];
    const BlockRange range = block_range(part.words, b);
    for (int64_t i = range.begin + threadIdx.x * kUnit; i < range.end; i += kBlockThreads * kUnit)
      *reinterpret_cast<T*>(w.out + place_in(w, part, i)) =
          __ldcg(reinterpret_cast<const T*>(w.from[r] + i * 4));
  }
}

bool is_aligned_16(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % 16 == 0;
}

}  // namespace

size_t join_mailbox_bytes(int ranks, int64_t part_bytes) {
  return static_cast<size_t>(mailbox_layout(ranks, part_bytes).size);
}

void enqueue_join(const Call& call, const GpuJoin& join, Stream stream) {
  const View& out = call.out[0];
  const int64_t axis = ConcatAttributes(call).axis;
  int64_t inner = static_cast<int64_t>(size_of(out.dtype)) / 4, rows = 1;
  for (int d = 0; d < out.rank; ++d) (d < axis ? rows : inner) *= d == axis ? 1 : out.dim[d];
  JoinWork w{};
  w.ranks = join.ranks, w.rank = join.rank, w.width = out.dim[axis] * inner;
  int64_t most = 1, first = 0;
  bool aligned = w.width % kBlockWords == 0 && is_aligned_16(out.data);
  for (size_t i = 0; i < call.in.size(); ++i) {
    const View& v = call.in[i];
    JoinPart& part = checked(w.part, join.makers[i]);
    const int64_t width = v.dim[axis] * inner;
    part.words = rows * width, part.first = first, part.width = FastDivmod(width);
    first += width;
    most = part.words > most ? part.words : most;
    aligned &= width % kBlockWords == 0;
    if (join.makers[i] != join.rank) continue;
    w.own = v.as<const uint32_t>();
    aligned &= is_aligned_16(v.data);
  }
  const MailboxLayout m = mailbox_layout(join.ranks, join.part_bytes);
  const bool lines = most <= kMaxLines;
  const int64_t half = join.number % 2 * int64_t{join.ranks};
  const int64_t at = lines ? 0 : m.parts_at, bytes = lines ? m.lines : m.part;
  for (int r = 0; r < join.ranks; ++r) {
    char* const there = reinterpret_cast<char*>(join.mailboxes[r]);
    char* const here = reinterpret_cast<char*>(join.mailboxes[join.rank]);
    checked(w.to, r) = there + at + (half + join.rank) * bytes;
    w.from[r] = here + at + (half + r) * bytes;
    w.flag_to[r] = reinterpret_cast<uint32_t*>(there + m.flags_at + (half + join.rank) * m.flags);
    w.flag_from[r] = reinterpret_cast<const uint32_t*>(here + m.flags_at + (half + r) * m.flags);
  }
  w.out = out.as<uint32_t>();
  w.base = join.base, w.number = join.number, w.stalled = join.stalled, w.patience = join.patience;
  if (lines) {
    const int64_t blocks = ceil_div(most, kLineThreads);
    launch_dependent(join_lines_kernel,
                     dim3(static_cast<unsigned>(blocks < kMaxLineBlocks ? blocks : kMaxLineBlocks)),
                     dim3(kLineThreads), 0, stream, w);
  } else if (aligned) {
    launch(join_blocks_kernel<uint4>, dim3(kBlocks), dim3(kBlockThreads), 0, stream, w);
  } else {
    launch(join_blocks_kernel<uint32_t>, dim3(kBlocks), dim3(kBlockThreads), 0, stream, w);
  }
}

}  // namespace INVAR_ISA_NS
}  // namespace invar::ops
