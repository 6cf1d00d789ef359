// A ring of stages in shared memory, filled from memory while others are used: by the copy engine where there is one (9.0), by
// asynchronous copies of 16 bytes (8.0), else at once.
#pragma once
#include "kernels/cuda/launch.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kStages = 2, kDepth = 32;  // of a ring, and rows in a stage

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define INVAR_COPY_ENGINE 1
#else
#define INVAR_COPY_ENGINE 0
#endif
constexpr bool kEngine = INVAR_COPY_ENGINE;

// A stage: up to kDepth rows of at most kWidth floats from one place, and of kSide from another.
template <int kThreads, int kWidth, int kSide>
struct Ring {
  // The warps ask in turn, each for every kFetchers-th stage; without the engine all threads for every one.
  static constexpr int kFetchers = kEngine ? kThreads / kWarp : 1;
  float right[kStages][kDepth * kWidth];
  float left[kStages][kDepth * kSide];
  uint64_t full[kStages];  // barriers

  __device__ static unsigned address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
  }

  __device__ void open() {
#if INVAR_COPY_ENGINE
    if (threadIdx.x == 0) {
      for (uint64_t& b : full)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&b)) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();
#endif
  }

  __device__ static bool fetches(int stage) {
    return !kEngine || stage % kFetchers == threadIdx.x / kWarp;
  }
  // `rows` rows of `width` floats, a multiple of 4, `step` apart, to rows kTo apart; and as many contiguous ones of kSide where
  // `side` is not null. All lie at multiples of 16 bytes.
  template <int kTo>
  __device__ void fetch(int slot, const float* from, int64_t step, int rows, int width, const float* side) {
#if INVAR_COPY_ENGINE
    if (threadIdx.x % kWarp) return;
    const unsigned barrier = address(&full[slot]);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"((rows * width + (side ? rows * kSide : 0)) * 4)
                 : "memory");
    if (step == kTo && width == kTo) {
      engine(address(right[slot]), from, rows * kTo * 4, barrier);
    } else {
      for (int i = 0; i < rows; ++i)
        engine(address(right[slot] + i * kTo), from + i * step, width * 4, barrier);
    }
    if (side) engine(address(left[slot]), side, rows * kSide * 4, barrier);
#else
    const int at = 4 * threadIdx.x, row = at / kTo, column = at % kTo, side_row = at / kSide;
    constexpr int kRows = 4 * kThreads / kTo, kSideRows = 4 * kThreads / kSide;  // at a time
    if (column < width) {
#pragma unroll
      for (int i = 0; i < kDepth; i += kRows)
        if (row + i < rows) copy16(right[slot] + i * kTo + at, from + (row + i) * step + column);
    }
    if (side) {
#pragma unroll
      for (int i = 0; i < kDepth; i += kSideRows)
        if (side_row + i < rows) copy16(left[slot] + i * kSide + at, side + i * kSide + at);
    }
#endif
  }
  // Ends what fetch() asked for, or where nothing was left to ask for.
  __device__ void fetched() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && !INVAR_COPY_ENGINE
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
  }
  // By all threads: the n-th stage is there, and the one before it may be filled anew.
  __device__ void next(int n) {
#if INVAR_COPY_ENGINE
    asm volatile(
        "{\n"
        ".reg .pred there;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 there, [%0], %1;\n"
        "@!there bra again;\n"
        "}" ::"r"(address(&full[n % kStages])),
        "r"(n / kStages % 2)
        : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::
                     : "memory");  // what was read, before the engine writes there
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
#endif
    __syncthreads();
  }

 private:
  __device__ static void engine(unsigned to, const float* from, int bytes, unsigned barrier) {
#if INVAR_COPY_ENGINE
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
        "l"(from), "r"(bytes), "r"(barrier)
        : "memory");
#endif
  }
  __device__ static void copy16(float* to, const float* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address(to)), "l"(from) : "memory");
#else
    *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
#endif
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
