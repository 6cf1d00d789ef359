// The kernels of matmul_nbits_exact16 for Hopper.
#include "ops/matmul/cuda/exact16/nbits/gemm_hopper.cuh"
#include "ops/matmul/cuda/exact16/nbits/gemv_hopper.cuh"

namespace invar::ops::INVAR_ISA_NS {

template <int kBits, int kSub, int kRows, int kGroups>
static void enqueue_gemv_of(const NbitsTogether& in, const GemvWork& work, bool packed, Stream stream) {
  launch_product(NbitsGemv<kBits, kSub, kRows, kGroups>{{}, in, work, packed}, work.grid, stream);
}
template <int kBits, int kSub>
static void enqueue_gemv_rows(const NbitsTogether& in, const GemvWork& work, bool packed, Stream stream) {
  if (work.groups == 2) return enqueue_gemv_of<kBits, kSub, 64, 2>(in, work, packed, stream);
  if (work.rows == 64) return enqueue_gemv_of<kBits, kSub, 64, 1>(in, work, packed, stream);
  if (work.rows == 32) return enqueue_gemv_of<kBits, kSub, 32, 1>(in, work, packed, stream);
  if (work.rows == 16) return enqueue_gemv_of<kBits, kSub, 16, 1>(in, work, packed, stream);
  enqueue_gemv_of<kBits, kSub, 8, 1>(in, work, packed, stream);
}
template <class G>
static void enqueue_gemm_of(const NbitsProduct& in, Stream stream) {
  const auto tiles =
      ProductTiles::of(ceil_div(in.m, G::kRows), ceil_div(in.n, int64_t{G::kGroups} * kBlockRows), 1);
  launch_product(G{{}, in, tiles}, tiles.blocks(), stream);
}

// Calls f with the integers of the template arguments: bits, and kSub of NbitsStage.
template <class Fn>
static void with_kind(int bits, NbitsGroups groups, Fn f) {
  auto of_bits = [&]<int kBits>(std::integral_constant<int, kBits> b) {
    if (groups == NbitsGroups::whole) return f(b, std::integral_constant<int, 0>{});
    if (groups == NbitsGroups::chunks) return f(b, std::integral_constant<int, 1>{});
    f(b, std::integral_constant<int, 4>{});
  };
  if (bits == 4) return of_bits(std::integral_constant<int, 4>{});
  of_bits(std::integral_constant<int, 8>{});
}
void enqueue_nbits_gemv_hopper(const NbitsTogether& in, int bits, NbitsGroups groups, const GemvWork& work,
                               bool packed, Stream stream) {
  with_kind(bits, groups,
            [&]<int kBits, int kSub>(std::integral_constant<int, kBits>, std::integral_constant<int, kSub>) {
              enqueue_gemv_rows<kBits, kSub>(in, work, packed, stream);
            });
}
void enqueue_nbits_gemm_hopper(const NbitsProduct& in, int bits, NbitsGroups groups, Stream stream) {
  with_kind(bits, groups,
            [&]<int kBits, int kSub>(std::integral_constant<int, kBits>, std::integral_constant<int, kSub>) {
              if constexpr (kSub == 0)
                enqueue_gemm_of<NbitsGemm<kBits, 0, 128, 2>>(in, stream);
              else
                enqueue_gemm_of<NbitsGemm<kBits, kSub, 64, 3>>(in, stream);
            });
}

}  // namespace invar::ops::INVAR_ISA_NS
