// Measures a GPU's peaks: multiply-adds without memory accesses, and memory bandwidth without
// arithmetic.
#include <cuda_runtime.h>

#include <algorithm>

#include "bench/peak/peak_device.h"

namespace invar::bench {
namespace {

constexpr int kThreads = 256, kChains = 8, kRounds = 2048, kTrials = 5;
constexpr size_t kBytes = size_t{1} << 30;  // many times the largest cache

__global__ void __launch_bounds__(kThreads) fma_kernel(float* kept, float a, float b) {
  float x[kChains];
  for (int c = 0; c < kChains; ++c) x[c] = static_cast<float>(threadIdx.x + c);
  for (int r = 0; r < kRounds; ++r)
#pragma unroll
    for (int c = 0; c < kChains; ++c) x[c] = __fmaf_rn(x[c], a, b);
  float sum = 0;
  for (int c = 0; c < kChains; ++c) sum += x[c];
  if (sum == 12345.0f) *kept = sum;  // practically never, but the compiler must keep the loop
}

// Calls take(i, word) for each word of this thread; kAhead loads are in flight.
template <class Take>
__device__ void each_word(const uint4* from, size_t words, Take take) {
  constexpr int kAhead = 4;
  const size_t step = size_t{gridDim.x} * kThreads;
  for (size_t i = size_t{blockIdx.x} * kThreads + threadIdx.x; i + (kAhead - 1) * step < words;
       i += kAhead * step) {
    uint4 w[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) w[k] = from[i + k * step];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) take(i + k * step, w[k]);
  }
}

__global__ void __launch_bounds__(kThreads) read_kernel(const uint4* from, size_t words, uint32_t* kept) {
  uint32_t all = 0;
  each_word(from, words, [&](size_t, uint4 w) { all ^= w.x ^ w.y ^ w.z ^ w.w; });
  if (all == 0x9e3779b9u) *kept = all;
}

__global__ void __launch_bounds__(kThreads) copy_kernel(uint4* to, const uint4* from, size_t words) {
  each_word(from, words, [&](size_t i, uint4 w) { to[i] = w; });
}

// The shortest time of several replays of the work that `queue` enqueues.
template <class Queue>
Result<double> least_seconds(Device& device, Queue queue) {
  INVAR_CHECK_OK(device.begin_capture());
  queue();
  INVAR_TRY(const auto graph, device.end_capture());
  double least = 0;
  for (int trial = 0; trial <= kTrials; ++trial) {
    INVAR_TRY(const double seconds, device.time(*graph));
    if (trial) least = trial == 1 ? seconds : std::min(least, seconds);  // the first trial warms up
  }
  return least;
}

}  // namespace

Result<DevicePeaks> device_peaks(Device& device) {
  device.make_current();
  struct Memory {
    Device& device;
    void* at;
    ~Memory() { device.free(at); }
  };
  INVAR_TRY(void* const memory, device.allocate(kBytes, "the measurement of peaks"));
  const Memory owner{device, memory};
  INVAR_CHECK_OK(device.fill(memory, 0, kBytes));
  const int processors = device.info().processors;
  const dim3 threads(kThreads), waves(static_cast<unsigned>(processors * 64)),
      once(static_cast<unsigned>(processors * 8));
  DevicePeaks p;
  INVAR_TRY(const double fma, least_seconds(device, [&] {
              fma_kernel<<<waves, threads, 0, device.stream()>>>(static_cast<float*>(memory), 1.0f, 0.0f);
            }));
  p.flops = 2.0 * kChains * kRounds * kThreads * waves.x / fma;
  INVAR_TRY(const double read, least_seconds(device, [&] {
              read_kernel<<<once, threads, 0, device.stream()>>>(
                  static_cast<const uint4*>(memory), kBytes / sizeof(uint4), static_cast<uint32_t*>(memory));
            }));
  p.read = kBytes / read;
  constexpr size_t kHalf = kBytes / 2 / sizeof(uint4);
  INVAR_TRY(const double copy, least_seconds(device, [&] {
              copy_kernel<<<once, threads, 0, device.stream()>>>(static_cast<uint4*>(memory) + kHalf,
                                                                 static_cast<const uint4*>(memory), kHalf);
            }));
  p.copied = kBytes / copy;
  return p;
}

}  // namespace invar::bench
