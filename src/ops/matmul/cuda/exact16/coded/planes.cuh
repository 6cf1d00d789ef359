// Tiles of codes unpacked to planes of 16-bit integers, for one call: many rows, or a GPU whose
// kernels read no codes.
#pragma once
#include "ops/matmul/cuda/exact16/coded/decode.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// A block of threads for each tile.
template <weights::Codes kCodes, int kBits>
__global__ void __launch_bounds__(weights::CodeTiles::kThreads)
    unpack_tiles_kernel(Planes from, CodedForm form, Planes to) {
  trigger_and_wait();
  const int t = threadIdx.x, lane = t % kWarp, row = t / kWarp * 16 + lane / 4;
  const int64_t count = from.tiles * from.chunks;
  const int stride = (form.has_addends ? 2 : 1) * kBlockRows;  // factors of a part
  for (int64_t i = blockIdx.x; i < count; i += gridDim.x) {
    const uint8_t* const tile = from.blocks + i * form.tile_bytes;
    const auto* const factors = reinterpret_cast<const float*>(tile + form.code_bytes) + row;
    uint8_t* const block = to.blocks + i * to.block_bytes();
    int32_t e[2];
    float factor[2];
    for (int c = 0; c < 2; ++c) {
      e[c] = from.scales[i / from.chunks * kBlockRows + row + 8 * c];
      factor[c] = factor_of(e[c]);
      if (i % from.chunks == 0 && lane % 4 == 0) to.scales[i / from.chunks * kBlockRows + row + 8 * c] = e[c];
    }
#pragma unroll
    for (int word = 0; word < kBlockK / 16; ++word) {
      const int at =
          kBits == 8 ? word / 2 * 2048 + t * 16 + word % 2 * 8 : word / 4 * 2048 + t * 16 + word % 4 * 4;
      uint32_t x[2];
      words_of<kCodes, kBits>(x, *reinterpret_cast<const uint32_t*>(tile + at),
                              kBits == 8 ? *reinterpret_cast<const uint32_t*>(tile + at + 4) : 0);
      const float* const part = factors + word * form.parts / 8 * stride;
      for (int c = 0; c < 2; ++c) {
        const float scale = part[8 * c];
        const float addend =
            form.has_addends ? part[kBlockRows + 8 * c] : scale * static_cast<float>(-form.zero);
        const IntegerBytes q = integers_of<kCodes>(x[c], scale, addend, factor[c], form.rounding);
        // h and l are signed in planes.
        const uint32_t carries = (q.low & 0x80808080u) >> 7;
        const int r = row + 8 * c;
        auto* const p = block + r * kBlockK + (word ^ (r & 7)) * 16 + lane % 4 * 4;
        *reinterpret_cast<uint32_t*>(p) = __vadd4(q.high, carries);
        *reinterpret_cast<uint32_t*>(p + kPlane) = q.low;
      }
    }
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
    launch_dependent(unpack_tiles_kernel<kCodes, kBits>, dim3(grid_for(from.tiles * from.chunks)),
                     dim3(weights::CodeTiles::kThreads), 0, stream, from, form, to);
  });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
