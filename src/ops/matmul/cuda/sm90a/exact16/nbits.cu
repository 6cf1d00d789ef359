// The kernels of matmul_nbits_exact16 for Hopper.
#include "ops/matmul/cuda/exact16/nbits/gemm_hopper.cuh"
#include "ops/matmul/cuda/exact16/nbits/gemv_hopper.cuh"

namespace invar::ops::INVAR_ISA_NS {

template <int kBits, int kSub, int kRows, int kGroups>
static void enqueue_gemv_of(const NbitsTogether& in, const GemvWork& work, bool packed, Stream stream) {
  using R = NbitsGemv<kBits, kSub, kRows, kGroups>;
  // Its threads that read results of earlier kernels, or write, wait for those first; the one that
  // loads weights does so behind its first loads.
  const auto kernel = nbits_gemv_kernel<kBits, kSub, kRows, kGroups>;
  launch_dependent(kernel, dim3(grid_for(work.grid)), dim3(R::kThreads), R::kShared, stream, in, work,
                   packed);
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
  const NbitsTiles tiles{static_cast<int>(ceil_div(in.m, G::kRows)),
                         static_cast<int>(ceil_div(in.n, int64_t{G::kGroups} * kBlockRows))};
  const int64_t all = int64_t{tiles.rows} * tiles.columns, most = multiprocessors();
  launch_dependent(nbits_gemm_kernel<G>, dim3(grid_for(all < most ? all : most)), dim3(G::kThreads),
                   G::kShared, stream, in, tiles);
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
