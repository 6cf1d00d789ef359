// A block selects for one batch and class. It takes the candidates in order, as many at once as it sorts by itself, and those a tile
// at a time: each is compared with what is selected already, then with those before it in the tile, and one warp decides.
#include "ops/nms/nms.h"
#include "kernels/cuda/block_sort.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int kTile = 256, kWords = kTile / kWarp, kParts = kThreads / kTile;

struct Limits {
  const int64_t* most;
  const float *overlap, *least;
};

// Rows of one number each of selected boxes, `stride` floats apart.
struct Numbers {
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

// nms.5
__device__ bool overlaps(const NmsBox& a, const NmsBox& b, float threshold) {
  const float w = (a.x2 < b.x2 ? a.x2 : b.x2) - (a.x1 > b.x1 ? a.x1 : b.x1);
  const float h = (a.y2 < b.y2 ? a.y2 : b.y2) - (a.y1 > b.y1 ? a.y1 : b.y1);
  if (!(w > 0) || !(h > 0)) return false;
  const float c = w * h;
  const float both = a.area + b.area, u = both - c;
  return c > 0 && c / u > threshold;
}

// What a block has in its own memory.
struct Own {
  uint64_t pairs[kOwn];
  float tile[5 * kTile];
  uint32_t over[kWords][kTile + 1];  // of candidate i, word w: which of the 32 w + j behind it it overlaps
  uint32_t hidden[kParts][kWords];   // by what is selected, as each part of the threads has seen
  uint32_t kept[kWords];
  int64_t taken;
  Selection selection;
};

// The pairs from `from` on: the first ones in order, and how many these are.
template <class Pair>
__device__ uint32_t next_pairs(Own& own, uint32_t n, Pair pair) {
  if (threadIdx.x == 0) own.selection.found = 0;
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < n; i += kThreads) {
    const uint64_t p = pair(i);
    if (p == kLast) continue;
    const uint32_t at = atomicAdd(&own.selection.found, 1u);
    if (at < kOwn) own.pairs[at] = p;
  }
  __syncthreads();
  const uint32_t found = own.selection.found;
  __syncthreads();
  if (found > kOwn) return select_own(own.pairs, own.selection, n, kOwn / 2, pair);
  int size = 2;
  while (size < found) size *= 2;
  for (uint32_t i = found + threadIdx.x; i < size; i += kThreads) own.pairs[i] = kLast;
  sort_own(own.pairs, size, 0);
  return found;
}

// Of `count` candidates in the tile those that stay, and how many are taken with them.
__device__ void decide(Own& own, int count, int64_t taken, int64_t most) {
  const int lane = threadIdx.x;
  uint32_t gone = kAllLanes, kept = 0;
  if (lane < kWords) {
    const int left = count - lane * kWarp;
    gone = left >= kWarp ? 0 : left > 0 ? kAllLanes << left : kAllLanes;
    for (int part = 0; part < kParts; ++part) gone |= own.hidden[part][lane];
  }
  for (int word = 0; word < kWords; ++word) {
    uint32_t open = ~__shfl_sync(kAllLanes, gone, word);
    while (open && taken < most) {
      const int bit = __ffs(static_cast<int>(open)) - 1;
      if (lane == word) kept |= 1u << bit;
      if (lane < kWords) gone |= own.over[lane][word * kWarp + bit];
      ++taken;
      open = ~__shfl_sync(kAllLanes, gone, word) & ~((2u << bit) - 1);
    }
  }
  if (lane < kWords) own.kept[lane] = kept;
  if (lane == 0) own.taken = taken;
}

__global__ void __launch_bounds__(kThreads)
    select_boxes(NmsShape s, const float* all_boxes, const float* scores, Limits limits, int64_t* result,
                 float* shared) {
  __shared__ Own own;
  const int64_t wanted = *limits.most, most = wanted < s.k ? wanted : s.k;
  const float overlap = *limits.overlap, least = limits.least ? *limits.least : 0;
  const bool limited = limits.least != nullptr;
  const auto n = static_cast<uint32_t>(s.n);
  const int candidate = threadIdx.x % kTile, part = threadIdx.x / kTile, lane = threadIdx.x % kWarp;
  const Numbers tile{own.tile, kTile};
  for (int64_t u = blockIdx.x; u < s.batches * s.classes; u += gridDim.x) {
    const float* boxes = all_boxes + u / s.classes * s.n * 4;
    const float* score = scores + u * s.n;
    int64_t* out = result + u * s.k;
    const Numbers selected{shared + u * s.k * 5, s.k};
    uint64_t from = 0;
    auto pair = [&](uint32_t i) {
      const float x = score[i];
      if (limited && !(x > least)) return kLast;
      const uint64_t p = static_cast<uint64_t>(nms_key(x)) << 32 | i;
      return p < from ? kLast : p;
    };
    int64_t taken = 0;
    while (taken < most) {
      const uint32_t found = next_pairs(own, n, pair);
      if (found == 0) break;
      from = own.pairs[found - 1] + 1;
      for (uint32_t first = 0; first < found && taken < most; first += kTile) {
        const int count = found - first < kTile ? static_cast<int>(found - first) : kTile;
        const uint32_t index = candidate < count ? static_cast<uint32_t>(own.pairs[first + candidate]) : 0;
        const NmsBox box = nms_box(boxes + int64_t{index} * 4, s.centred);
        if (part == 0) tile.put(candidate, box);
        bool hidden = candidate >= count;
        for (int64_t i = part; i < taken && !hidden; i += kParts)
          hidden = overlaps(box, selected.get(i), overlap);
        const uint32_t votes = __ballot_sync(kAllLanes, hidden);
        if (lane == 0) own.hidden[part][candidate / kWarp] = votes;
        __syncthreads();
        for (int word = part; word < kWords; word += kParts) {
          uint32_t over = 0;
          for (int j = 0; j < kWarp; ++j)
            if (word * kWarp + j > candidate && overlaps(box, tile.get(word * kWarp + j), overlap))
              over |= 1u << j;
          own.over[word][candidate] = over;
        }
        __syncthreads();
        if (threadIdx.x < kWarp) decide(own, count, taken, most);
        __syncthreads();
        const int word = candidate / kWarp;
        if (part == 0 && own.kept[word] >> lane & 1) {
          int64_t at = taken + __popc(own.kept[word] & ((1u << lane) - 1));
          for (int w = 0; w < word; ++w) at += __popc(own.kept[w]);
          out[at] = index;
          selected.put(at, box);
        }
        taken = own.taken;
        __syncthreads();
      }
    }
    for (int64_t i = taken + threadIdx.x; i < s.k; i += kThreads) out[i] = -1;
    __syncthreads();
  }
}

void enqueue(const Call& call, Stream stream) {
  const NmsShape s = nms_shape(call);
  const Limits limits{call.in[2].as<const int64_t>(), call.in[3].as<const float>(),
                      call.in.size() > 4 ? call.in[4].as<const float>() : nullptr};
  launch(select_boxes, dim3(grid_for(nms_units(call, 0))), dim3(kThreads), 0, stream, s,
         call.in[0].as<const float>(), call.in[1].as<const float>(), limits, call.out[0].as<int64_t>(),
         static_cast<float*>(call.shared));
}

// Five numbers of each box that may be selected.
size_t shared_bytes(const Call& call) {
  return static_cast<size_t>(nms_units(call, 0) * nms_shape(call).k) * 5 * sizeof(float);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW;
const Kernel INVAR_ROW = {.op = "nms",
                          .isa = INVAR_ISA,
                          .shared_bytes = INVAR_ISA_NS::shared_bytes,
                          .enqueue = INVAR_ISA_NS::enqueue};

}  // namespace invar::ops
