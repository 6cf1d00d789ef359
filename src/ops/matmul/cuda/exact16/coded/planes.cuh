// Tiles of codes unpacked to planes of 16-bit integers, for one call: many rows, or a GPU whose
// kernels read no codes.
#pragma once
#include "ops/matmul/cuda/exact16/coded/decode.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// A block of threads for each tile. Its planes are made in shared memory, so that whole lines are
// written.
template <weights::Codes kCodes, int kBits, weights::Rounding kRounding>
__global__ void __launch_bounds__(weights::CodeTiles::kThreads)
    unpack_tiles_kernel(Planes from, CodedForm form, Planes to) {
  trigger_and_wait();
  __shared__ __align__(16) uint8_t made[2 * kPlane];
  const int t = threadIdx.x, lane = t % kWarp, row = t / kWarp * 16 + lane / 4;
  const int64_t count = from.tiles * from.chunks;
  const int stride = (form.has_addends ? 2 : 1) * kBlockRows;  // factors of a part
  const int addends = form.has_addends ? kBlockRows : 0;
  const float times = form.has_addends ? 1.0f : static_cast<float>(-form.zero);
  for (int64_t i = blockIdx.x; i < count; i += gridDim.x) {
    const uint8_t* const tile = from.blocks + i * form.tile_bytes;
    const auto* const factors = reinterpret_cast<const float*>(tile + form.code_bytes) + row;
    float factor[2];
    for (int c = 0; c < 2; ++c) {
      const int64_t column = i / from.chunks * kBlockRows + row + 8 * c;
      const int32_t e = from.scales[column];
      factor[c] = factor_of(e);
      if (i % from.chunks == 0 && lane % 4 == 0) to.scales[column] = e;
    }
    uint4 word[kBits / 2];
#pragma unroll
    for (int v = 0; v < kBits / 2; ++v) word[v] = reinterpret_cast<const uint4*>(tile)[v * 128 + t];
    const auto* const words = reinterpret_cast<const uint32_t*>(word);
#pragma unroll
    for (int sixteen = 0; sixteen < kBlockK / 16; ++sixteen) {
      const float* const part = factors + sixteen * form.parts / 8 * stride;
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const IntegerBytes q = integers_of<kCodes, kBits, kRounding>(
            words[kBits == 8 ? 2 * sixteen + c : sixteen], c, part[8 * c] * times_of_half<kCodes, kBits>(c),
            part[addends + 8 * c] * times, factor[c]);
        // h and l are signed in planes.
        const uint32_t carries = (q.low & 0x80808080u) >> 7;
        const int r = row + 8 * c;
        uint8_t* const p = made + r * kBlockK + (sixteen ^ (r & 7)) * 16 + lane % 4 * 4;
        *reinterpret_cast<uint32_t*>(p) = __vadd4(q.high, carries);
        *reinterpret_cast<uint32_t*>(p + kPlane) = q.low;
      }
    }
    __syncthreads();
    auto* const block = reinterpret_cast<uint4*>(to.blocks + i * to.block_bytes());
#pragma unroll
    for (int v = t; v < 2 * kPlane / 16; v += weights::CodeTiles::kThreads)
      block[v] = reinterpret_cast<const uint4*>(made)[v];
    __syncthreads();
  }
}

// Calls f with the integral constants of the codes and their bits.
template <class Fn>
void with_codes(const CodedForm& form, Fn f) {
  using enum weights::Codes;
  const auto go = [&]<weights::Codes kCodes, int kBits>() {
    f(std::integral_constant<weights::Codes, kCodes>{}, std::integral_constant<int, kBits>{});
  };
  switch (form.codes) {
    case integers:
      return form.bits == 4 ? go.template operator()<integers, 4>() : go.template operator()<integers, 8>();
    case e4m3: return go.template operator()<e4m3, 8>();
    case e5m2: return go.template operator()<e5m2, 8>();
    case e2m1: return go.template operator()<e2m1, 4>();
  }
}
void enqueue_unpacking(const weights::CodeTiles& tiles, const Planes& to, Stream stream) {
  const CodedForm form = form_of(tiles);
  const Planes from = coded_planes(tiles);
  with_codes(form, [&]<weights::Codes kCodes, int kBits>(std::integral_constant<weights::Codes, kCodes>,
                                                         std::integral_constant<int, kBits>) {
    with_rounding(form.rounding,
                  [&]<weights::Rounding kRounding>(std::integral_constant<weights::Rounding, kRounding>) {
                    launch_dependent(unpack_tiles_kernel<kCodes, kBits, kRounding>,
                                     dim3(grid_for(from.tiles * from.chunks)),
                                     dim3(weights::CodeTiles::kThreads), 0, stream, from, form, to);
                  });
  });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
