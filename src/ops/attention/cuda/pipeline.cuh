// A circular pipeline of stages in shared memory: some are loaded while others are used. Loads are
// bulk copies with an mbarrier from compute capability 9.0 on, asynchronous copies of 16 bytes from
// 8.0 on, and plain copies before.
#pragma once
#include "kernels/cuda/launch.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kStages = 2, kStageRows = 32;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define INVAR_BULK_COPY 1
#else
#define INVAR_BULK_COPY 0
#endif
constexpr bool kBulkCopy = INVAR_BULK_COPY;

// A stage: up to kStageRows rows of at most kWidth floats of the right operand, and of kSide floats
// of the left operand.
template <int kThreads, int kWidth, int kSide>
struct SmemPipeline {
  // With bulk copies each warp loads every kProducers-th stage; without, all threads load every
  // stage.
  static constexpr int kProducers = kBulkCopy ? kThreads / kWarp : 1;
  float right[kStages][kStageRows * kWidth];
  float left[kStages][kStageRows * kSide];
  uint64_t full[kStages];  // mbarriers: the stage has arrived

  __device__ static unsigned address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
  }

  __device__ void init_barriers() {
#if INVAR_BULK_COPY
    if (threadIdx.x == 0) {
      for (uint64_t& b : full)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&b)) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();
#endif
  }

  __device__ static bool is_producer(int stage) {
    return !kBulkCopy || stage % kProducers == threadIdx.x / kWarp;
  }
  // Starts to load a stage: `rows` rows of `width` floats (a multiple of 4), `step` apart, to rows
  // kTo apart; and, unless `side` is null, as many contiguous rows of kSide floats. All addresses
  // are multiples of 16 bytes.
  template <int kTo>
  __device__ void load_async(int slot, const float* from, int64_t step, int rows, int width,
                             const float* side) {
#if INVAR_BULK_COPY
    if (threadIdx.x % kWarp) return;
    const unsigned barrier = address(&full[slot]);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"((rows * width + (side ? rows * kSide : 0)) * 4)
                 : "memory");
    if (step == kTo && width == kTo) {
      bulk_copy(address(right[slot]), from, rows * kTo * 4, barrier);
    } else {
      for (int i = 0; i < rows; ++i)
        bulk_copy(address(right[slot] + i * kTo), from + i * step, width * 4, barrier);
    }
    if (side) bulk_copy(address(left[slot]), side, rows * kSide * 4, barrier);
#else
    const int at = 4 * threadIdx.x, row = at / kTo, column = at % kTo, side_row = at / kSide;
    constexpr int kRows = 4 * kThreads / kTo, kSideRows = 4 * kThreads / kSide;  // at a time
    if (column < width) {
#pragma unroll
      for (int i = 0; i < kStageRows; i += kRows)
        if (row + i < rows) copy_async_16(right[slot] + i * kTo + at, from + (row + i) * step + column);
    }
    if (side) {
#pragma unroll
      for (int i = 0; i < kStageRows; i += kSideRows)
        if (side_row + i < rows) copy_async_16(left[slot] + i * kSide + at, side + i * kSide + at);
    }
#endif
  }
  // Commits the copies of load_async() as one group; also called when nothing is left to load.
  __device__ void commit() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && !INVAR_BULK_COPY
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
  }
  // Called by all threads: afterwards stage n has arrived, and the stage before it may be loaded
  // again.
  __device__ void wait(int n) {
#if INVAR_BULK_COPY
    asm volatile(
        "{\n"
        ".reg .pred arrived;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 arrived, [%0], %1;\n"
        "@!arrived bra again;\n"
        "}" ::"r"(address(&full[n % kStages])),
        "r"(n / kStages % 2)
        : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::
                     : "memory");  // orders reads before the next bulk copy's writes
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
#endif
    __syncthreads();
  }

 private:
  __device__ static void bulk_copy(unsigned to, const float* from, int bytes, unsigned barrier) {
#if INVAR_BULK_COPY
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
        "l"(from), "r"(bytes), "r"(barrier)
        : "memory");
#endif
  }
  __device__ static void copy_async_16(float* to, const float* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address(to)), "l"(from) : "memory");
#else
    *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
#endif
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
