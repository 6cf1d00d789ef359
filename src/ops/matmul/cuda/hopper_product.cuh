// What the products on Hopper share. One warpgroup fills a ring of stages in shared memory, others
// multiply them: a Product says what a stage holds, which tiles a block has, how their sums are
// made and where results go.
#pragma once
#include "ops/matmul/cuda/exact16/layout.cuh"
#include "ops/matmul/cuda/exact16/wgmma.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// A ring of stages: `full` after the bytes of a stage have arrived, `empty` after its consumers are
// done with it.
struct Ring {
  uint32_t memory, bytes, full, empty, stages, at = 0, phase = 0;  // bytes: of a stage
  __device__ uint32_t stage_now() const { return memory + at * bytes; }
  __device__ uint32_t full_now() const { return full + at * 8; }
  __device__ uint32_t empty_now() const { return empty + at * 8; }
  __device__ void next() {
    if (++at == stages) at = 0, phase ^= 1;
  }
  __device__ void skip(uint32_t count) {  // at most as many as there are
    at += count;
    if (at >= stages) at -= stages, phase ^= 1;
  }
};

// kConsumers warpgroups of kArrivals arrivals each multiply; the first kProducers threads of one
// more copy. A ring has at most kStages stages of together kBytes bytes. Registers of a thread: 0
// leaves them as they are. kStartsEarly: the grid behind starts at once, and producer and consumers
// wait for the one ahead when they need it.
template <int kConsumers_, int kArrivals_, int kProducers_, int kStages_, int kBytes_,
          int kProducerRegisters_, int kConsumerRegisters_, bool kStartsEarly_>
struct ProductFrame {
  static constexpr int kConsumers = kConsumers_, kArrivals = kArrivals_, kProducers = kProducers_;
  static constexpr int kStages = kStages_, kEmptyArrivals = kConsumers * kArrivals;
  static constexpr int kProducerRegisters = kProducerRegisters_, kConsumerRegisters = kConsumerRegisters_;
  static constexpr bool kStartsEarly = kStartsEarly_;
  static constexpr int kThreads = (kConsumers + 1) * kWarpgroup;
  static constexpr int kShared = kBytes_ + 1024;  // stages begin at a multiple of 1024

  // A warpgroup is done with a stage.
  __device__ static void leave(uint32_t empty) {
    if (kArrivals > 1) __syncwarp();
    if (threadIdx.x % (kWarpgroup / kArrivals) == 0) arrive(empty);
  }
  // Calls multiply(stage, i) for the ring's next `count` stages. It starts products; a stage is
  // left when those of the next one have been started.
  template <class Multiply>
  __device__ static void multiply_stages(Ring& ring, int count, Multiply multiply) {
    uint32_t previous = 0;
    for (int i = 0; i < count; ++i) {
      wait_barrier(ring.full_now(), ring.phase);
      multiply(ring.stage_now(), i);
      wait_products<1>();
      if (i > 0) leave(previous);
      previous = ring.empty_now();
      ring.next();
    }
    wait_products<0>();
    leave(previous);
  }
};

// Product: a ProductFrame with stage_bytes(), stages(), produce(ring), consume(ring, group).
template <class Product>
__global__ void __launch_bounds__(Product::kThreads, 1)
    hopper_product_kernel(const __grid_constant__ Product product) {
  extern __shared__ uint8_t memory[];
  __shared__ uint64_t barriers[2 * Product::kStages];
  const uint32_t stages = product.stages();
  const Ring ring{(shared_address(memory) + 1023) / 1024 * 1024, product.stage_bytes(),
                  shared_address(barriers), shared_address(barriers + Product::kStages), stages};
  if (Product::kStartsEarly) trigger_next_grid();
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < stages; ++i) {
      init_barrier(ring.full + 8 * i, 1);
      init_barrier(ring.empty + 8 * i, Product::kEmptyArrivals);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (!Product::kStartsEarly) trigger_and_wait();
  const int group = threadIdx.x / kWarpgroup;
  if (group == Product::kConsumers) {
    if constexpr (Product::kProducerRegisters > 0)
      asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Product::kProducerRegisters));
    if (threadIdx.x % kWarpgroup < Product::kProducers) product.produce(ring);
    if (Product::kProducers > 1) __syncwarp();  // no lane ends before those that copy
  } else {
    if constexpr (Product::kConsumerRegisters > 0)
      asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Product::kConsumerRegisters));
    product.consume(ring, group);
  }
}
template <class Product>
void launch_product(const Product& product, int64_t blocks, Stream stream) {
  launch_dependent(hopper_product_kernel<Product>, dim3(grid_for(blocks)), dim3(Product::kThreads),
                   Product::kShared, stream, product);
}

// Tiles of results of all products, dealt out to blocks in turn.
struct ProductTiles {
  int rows, columns, all;
  static ProductTiles of(int64_t rows, int64_t columns, int64_t batches) {
    return {static_cast<int>(rows), static_cast<int>(columns), static_cast<int>(rows * columns * batches)};
  }
  int64_t blocks() const {
    const int64_t most = multiprocessors();
    return all < most ? all : most;
  }
  // Calls f(batch, tile) for those of this block. kBatched: there may be more products than one.
  template <bool kBatched, class Fn>
  __device__ void for_tiles(Fn f) const {
    const int per_batch = rows * columns;
    for (int i = static_cast<int>(blockIdx.x); i < all; i += static_cast<int>(gridDim.x)) {
      const int batch = kBatched ? i / per_batch : 0;
      f(batch, tile_in_runs(i - batch * per_batch, rows, columns));
    }
  }
};

// Both operands as planes h and l, of 64 rows and of kColumns: a thread's sums of three weights.
template <int kColumns>
struct PlaneSums {
  static constexpr int kCount = kColumns / 2;
  int high[kCount], cross[kCount], low[kCount];
  __device__ PlaneSums() {
#pragma unroll
    for (int q = 0; q < kCount; ++q) high[q] = cross[q] = low[q] = 0;
  }
  __device__ void multiply(uint64_t ah, uint64_t al, uint64_t bh, uint64_t bl) {
    begin_products();
#pragma unroll
    for (int step = 0; step < kBlockK / 32; ++step) {  // 32 bytes are 2 in an operand's address
      multiply_add(high, ah + 2 * step, bh + 2 * step);
      multiply_add(cross, ah + 2 * step, bl + 2 * step);
      multiply_add(low, al + 2 * step, bl + 2 * step);
      multiply_add(cross, al + 2 * step, bh + 2 * step);
    }
    commit_products();
  }
  __device__ int64_t value(int q) const {
    return exact_sum(high[q], cross[q], low[q]);
  }
};
// Weights as planes h and l, of 64 rows; kRows activations, h above l: each weight is read once.
template <int kRows>
struct StackedSums {
  static constexpr int kCount = kRows / 2;
  int from_h[kRows], from_l[kRows];  // of the weights' planes: with h of all rows, then with l
  __device__ StackedSums() {
#pragma unroll
    for (int q = 0; q < kRows; ++q) from_h[q] = from_l[q] = 0;
  }
  __device__ void multiply(uint64_t h, uint64_t l, uint64_t x) {
    begin_products();
#pragma unroll
    for (int step = 0; step < kBlockK / 32; ++step) {
      multiply_add(from_h, h + 2 * step, x + 2 * step);
      multiply_add(from_l, l + 2 * step, x + 2 * step);
    }
    commit_products();
  }
  __device__ void join(int64_t (&sum)[kCount]) const {
#pragma unroll
    for (int q = 0; q < kCount; ++q)
      sum[q] =
          int64_t{from_h[q]} * 65536 + (int64_t{from_h[kCount + q]} + from_l[q]) * 256 + from_l[kCount + q];
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
