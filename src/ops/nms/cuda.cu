// Non-maximum suppression: a block takes one batch and class. It sorts the candidates, as many as
// fit in shared memory at once, and goes through them by tiles: it compares each with the boxes
// selected before and with those before it in the tile, and then one warp decides in order.
#include "kernels/cuda/block_sort.cuh"
#include "ops/nms/nms.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int kTileBoxes = 256, kWords = kTileBoxes / kWarp, kThreadGroups = kSortThreads / kTileBoxes;

struct Limits {
  const int64_t* most;
  const float *overlap, *least;
};

// Selected boxes as five columns (coordinates and area), `stride` floats apart.
struct BoxColumns {
  float* first;
  int64_t stride;
  __device__ NmsBox get(int64_t i) const {
    const float* p = first + i;
    return {p[0], p[stride], p[2 * stride], p[3 * stride], p[4 * stride]};
  }
  __device__ void put(int64_t i, const NmsBox& b) const {
    float* p = first + i;
    p[0] = b.x1, p[stride] = b.y1, p[2 * stride] = b.x2, p[3 * stride] = b.y2, p[4 * stride] = b.area;
  }
};

// nms.5: whether two boxes overlap by more than the threshold.
__device__ bool overlaps(const NmsBox& a, const NmsBox& b, float threshold) {
  const float w = (a.x2 < b.x2 ? a.x2 : b.x2) - (a.x1 > b.x1 ? a.x1 : b.x1);
  const float h = (a.y2 < b.y2 ? a.y2 : b.y2) - (a.y1 > b.y1 ? a.y1 : b.y1);
  if (!(w > 0) || !(h > 0)) return false;
  const float c = w * h;
  const float both = a.area + b.area, u = both - c;
  return c > 0 && c / u > threshold;
}

// The shared memory of a block.
struct BlockState {
  uint64_t pairs[kBlockPairs];
  float tile[5 * kTileBoxes];
  uint32_t overlapped[kWords][kTileBoxes + 1];  // [w][i] bit j: candidate i overlaps 32 w + j > i
  uint32_t suppressed[kThreadGroups][kWords];   // by selected boxes, as each group of threads has found
  uint32_t kept[kWords];
  int64_t taken;
  RadixSelectState selection;
};

// Loads the next candidates in order; returns how many these are.
template <class Pair>
__device__ uint32_t next_pairs(BlockState& state, uint32_t n, Pair pair) {
  if (threadIdx.x == 0) state.selection.found = 0;
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < n; i += kSortThreads) {
    const uint64_t p = pair(i);
    if (p == kLastPair) continue;
    const uint32_t at = atomicAdd(&state.selection.found, 1u);
    if (at < kBlockPairs) state.pairs[at] = p;
  }
  __syncthreads();
  const uint32_t found = state.selection.found;
  __syncthreads();
  if (found > kBlockPairs) return radix_select(state.pairs, state.selection, n, kBlockPairs / 2, pair);
  int size = 2;
  while (size < found) size *= 2;
  for (uint32_t i = found + threadIdx.x; i < size; i += kSortThreads) state.pairs[i] = kLastPair;
  bitonic_sort(state.pairs, size, 0);
  return found;
}

// Decides which of `count` candidates of the tile stay, in order; one warp.
__device__ void suppress(BlockState& state, int count, int64_t taken, int64_t most) {
  const int lane = threadIdx.x;
  uint32_t gone = kFullWarp, kept = 0;
  if (lane < kWords) {
    const int left = count - lane * kWarp;
    gone = left >= kWarp ? 0 : left > 0 ? kFullWarp << left : kFullWarp;
    for (int thread_group = 0; thread_group < kThreadGroups; ++thread_group)
      gone |= state.suppressed[thread_group][lane];
  }
  for (int word = 0; word < kWords; ++word) {
    uint32_t open = ~__shfl_sync(kFullWarp, gone, word);
    while (open && taken < most) {
      const int bit = __ffs(static_cast<int>(open)) - 1;
      if (lane == word) kept |= 1u << bit;
      if (lane < kWords) gone |= state.overlapped[lane][word * kWarp + bit];
      ++taken;
      open = ~__shfl_sync(kFullWarp, gone, word) & ~((2u << bit) - 1);
    }
  }
  if (lane < kWords) state.kept[lane] = kept;
  if (lane == 0) state.taken = taken;
}

__global__ void __launch_bounds__(kSortThreads)
    select_boxes_kernel(NmsShape s, const float* all_boxes, const float* scores, Limits limits,
                        int64_t* result, float* shared) {
  __shared__ BlockState state;
  const int64_t wanted = *limits.most, most = wanted < s.k ? wanted : s.k;
  const float overlap = *limits.overlap, least = limits.least ? *limits.least : 0;
  const bool limited = limits.least != nullptr;
  const auto n = static_cast<uint32_t>(s.n);
  const int candidate = threadIdx.x % kTileBoxes, thread_group = threadIdx.x / kTileBoxes,
            lane = threadIdx.x % kWarp;
  const BoxColumns tile{state.tile, kTileBoxes};
  for (int64_t u = blockIdx.x; u < s.batches * s.classes; u += gridDim.x) {
    const float* boxes = all_boxes + u / s.classes * s.n * 4;
    const float* score = scores + u * s.n;
    int64_t* out = result + u * s.k;
    const BoxColumns selected{shared + u * s.k * 5, s.k};
    uint64_t from = 0;
    auto pair = [&](uint32_t i) {
      const float x = score[i];
      if (limited && !(x > least)) return kLastPair;
      const uint64_t p = static_cast<uint64_t>(nms_key(x)) << 32 | i;
      return p < from ? kLastPair : p;
    };
    int64_t taken = 0;
    while (taken < most) {
      const uint32_t found = next_pairs(state, n, pair);
      if (found == 0) break;
      from = state.pairs[found - 1] + 1;
      for (uint32_t first = 0; first < found && taken < most; first += kTileBoxes) {
        const int count = found - first < kTileBoxes ? static_cast<int>(found - first) : kTileBoxes;
        const uint32_t index = candidate < count ? static_cast<uint32_t>(state.pairs[first + candidate]) : 0;
        const NmsBox box = nms_box(boxes + int64_t{index} * 4, s.centred);
        if (thread_group == 0) tile.put(candidate, box);
        bool suppressed = candidate >= count;
        for (int64_t i = thread_group; i < taken && !suppressed; i += kThreadGroups)
          suppressed = overlaps(box, selected.get(i), overlap);
        const uint32_t votes = __ballot_sync(kFullWarp, suppressed);
        if (lane == 0) state.suppressed[thread_group][candidate / kWarp] = votes;
        __syncthreads();
        for (int word = thread_group; word < kWords; word += kThreadGroups) {
          uint32_t overlapped = 0;
          for (int j = 0; j < kWarp; ++j)
            if (word * kWarp + j > candidate && overlaps(box, tile.get(word * kWarp + j), overlap))
              overlapped |= 1u << j;
          state.overlapped[word][candidate] = overlapped;
        }
        __syncthreads();
        if (threadIdx.x < kWarp) suppress(state, count, taken, most);
        __syncthreads();
        const int word = candidate / kWarp;
        if (thread_group == 0 && state.kept[word] >> lane & 1) {
          int64_t at = taken + __popc(state.kept[word] & ((1u << lane) - 1));
          for (int w = 0; w < word; ++w) at += __popc(state.kept[w]);
          out[at] = index;
          selected.put(at, box);
        }
        taken = state.taken;
        __syncthreads();
      }
    }
    for (int64_t i = taken + threadIdx.x; i < s.k; i += kSortThreads) out[i] = -1;
    __syncthreads();
  }
}

void enqueue(const Call& call, Stream stream) {
  const NmsShape s = nms_shape(call);
  const Limits limits{call.in[2].as<const int64_t>(), call.in[3].as<const float>(),
                      call.in.size() > 4 ? call.in[4].as<const float>() : nullptr};
  launch(select_boxes_kernel, dim3(grid_for(nms_units(call, 0))), dim3(kSortThreads), 0, stream, s,
         call.in[0].as<const float>(), call.in[1].as<const float>(), limits, call.out[0].as<int64_t>(),
         static_cast<float*>(call.shared));
}

// Five floats for each box that may be selected.
size_t shared_bytes(const Call& call) {
  return static_cast<size_t>(nms_units(call, 0) * nms_shape(call).k) * 5 * sizeof(float);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW;
const GpuKernel INVAR_ROW = {.op = "nms",
                             .isa = INVAR_ISA,
                             .shared_bytes = INVAR_ISA_NS::shared_bytes,
                             .enqueue = INVAR_ISA_NS::enqueue};

}  // namespace invar::ops
