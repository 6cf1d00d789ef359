// Rows of mul, and of an activation times another operand, that are rounded where they are made:
// one kernel reads the operands and writes integers of 16 bits.

#include "kernels/call.h"
#include "kernels/fusion/rounding_kernels.h"
#include "ops/elementwise/cuda/chains.h"
#include "ops/elementwise/cuda/rounded_products.cuh"
#include "ops/elementwise/cuda/rounded_products.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

struct Rows {
  const float *a, *b;
  int64_t k, count;
  bool packs;  // quads of elements are aligned
};
// Where a block keeps its products until their scale is known. kRegisters: each thread has one
// quad, so that a block needs little memory and can start while a large kernel ahead of it still
// runs. kNowhere: its shared memory is too small; they are made twice.
enum class Keep { kRegisters, kShared, kNowhere };

// A cluster of blocks for each row, grid.x in all, a warp for chunks of kRoundedK elements.
template <class Fn, bool kPacks>
__global__ void __launch_bounds__(kMostWarps* kWarp, 2)
    rounded_rows_kernel(Rows from, RoundedRows to, Keep keep) {
  extern __shared__ float4 made[];
  trigger_next_grid();
  const int blocks = gridDim.x, part = blockIdx.x;
  ClusterLargest cluster(blocks);
  const typename Fn::Quick quick;
  const int warps = blockDim.x / kWarp, warp = threadIdx.x / kWarp;
  const int chunks = static_cast<int>(to.chunks), each = (chunks + blocks - 1) / blocks;
  const int k = static_cast<int>(from.k), end = min(part * each + each, chunks) * kRoundedK;
  const int first = (part * each + warp) * kRoundedK + threadIdx.x % kWarp * kQuad, step = warps * kRoundedK;
  auto* const own = reinterpret_cast<Quad*>(made) + threadIdx.x;
  auto inside = [&](int i) { return i < end ? i : k; };  // else nothing is loaded
  cluster.meet();
  wait_for_previous_grid();
  for (int64_t r = blockIdx.y; r < from.count; r += gridDim.y) {
    const float *a = from.a + r * k, *b = from.b + r * k;
    float largest = 0;
    auto x = load_quad<kPacks>(a, inside(first), k), y = load_quad<kPacks>(b, inside(first), k);
    Quad *to_own = own, last;
#pragma unroll 1
    for (int i = first; i < end; i += step, to_own += blockDim.x) {
      const int next = inside(i + step);
      const auto next_x = load_quad<kPacks>(a, next, k), next_y = load_quad<kPacks>(b, next, k);
      last = products<Fn>(quick, x, y);
      for (const float one : last.v) largest = larger_magnitude(largest, one);
      if (keep == Keep::kShared) *to_own = last;
      x = next_x, y = next_y;
    }
    // The store rule: subnormal products are zero. They matter in rows of tiny ones only.
    uint32_t bits = cluster.of(__float_as_uint(largest));
    if (bits < 0x00800000) bits = 0;
    const int32_t e = num::exact16_scale(bits);
    const bool tiny = e < -100;
    const RoundedRow out(to, r, e);
    to_own = own;
#pragma unroll 1
    for (int i = first; i < end; i += step, to_own += blockDim.x) {
      auto result = last;
      if (keep == Keep::kShared) result = *to_own;
      if (keep == Keep::kNowhere)
        result = products<Fn>(quick, load_quad<kPacks>(a, i, k), load_quad<kPacks>(b, i, k));
      if (tiny)
        for (float& one : result.v) one = fabsf(one) < 0x1p-126f ? 0 : one;
      out.store<kQuad>(i, result.v);
    }
    if (part == 0 && threadIdx.x == 0) to.scales[r] = e;
    if (part == 0 && r == 0) clear_scales(to, from.count, threadIdx.x, blockDim.x);
  }
}

template <class Fn, bool kPacks>
void launch_packs(const Rows& from, const RoundedRows& to, Stream stream) {
  const RowBlocks at = row_blocks(from.k, from.count);
  const bool fits =
      at.bytes() <= static_cast<size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  const Keep keep = at.turns == 1 ? Keep::kRegisters : fits ? Keep::kShared : Keep::kNowhere;
  constexpr int64_t kMostRows = 65535;  // of a grid
  const dim3 grid(static_cast<unsigned>(at.blocks),
                  static_cast<unsigned>(from.count < kMostRows ? from.count : kMostRows));
  const dim3 threads(static_cast<unsigned>(at.warps * kWarp));
  const size_t shared = keep == Keep::kShared ? at.bytes() : 0;
  if (at.blocks > 1)
    launch_clusters(rounded_rows_kernel<Fn, kPacks>, static_cast<unsigned>(at.blocks), grid, threads, shared,
                    stream, from, to, keep);
  else
    launch_dependent(rounded_rows_kernel<Fn, kPacks>, grid, threads, shared, stream, from, to, keep);
}
template <class Fn>
void launch_rows(const Rows& from, const RoundedRows& to, Stream stream) {
  if (from.packs)
    launch_packs<Fn, true>(from, to, stream);
  else
    launch_packs<Fn, false>(from, to, stream);
}

bool same_shape(const View& a, const View& b) {
  bool same = a.rank == b.rank && a.dtype == DType::f32 && b.dtype == DType::f32;
  for (int d = 0; same && d < a.rank; ++d) same = a.dim[d] == b.dim[d];
  return same;
}

}  // namespace

bool can_round_products(std::span<const Call* const> calls) {
  const View& out = calls.back()->out[0];
  bool fits = out.rank > 0 && last_dim(out) > 0 && last_dim(out) <= kLongestRow;
  for (const Call* call : calls) {
    fits &= same_shape(call->out[0], out);
    for (const View& in : call->in) fits &= same_shape(in, out);
  }
  return fits;
}

namespace {

template <class Fn>
void enqueue_rounded(std::span<const Call* const> calls, const RoundedRows& to, Stream stream) {
  const Call& mul = *calls.back();
  Rows rows{mul.in[0].as<const float>(), mul.in[1].as<const float>(), last_dim(mul.out[0]),
            row_count(mul.out[0]), false};
  if (calls.size() > 1) {
    if (rows.a != calls[0]->out[0].as<const float>()) rows.b = rows.a;  // the activation is in[1]
    rows.a = calls[0]->in[0].as<const float>();
  }
  rows.packs = rows.k % kQuad == 0 && is_aligned<kQuad>(rows.a) && is_aligned<kQuad>(rows.b);
  launch_rows<Fn>(rows, to, stream);
}

}  // namespace

void enqueue_rounded_products(std::span<const Call* const> calls, const RoundedRows& to, Stream stream) {
  enqueue_rounded<Product>(calls, to, stream);
}

namespace {

template <class Fn>
constexpr GpuKernel kKernel{
    .op = "mul", .isa = INVAR_ISA, .can_round = can_round_products, .enqueue_rounded = enqueue_rounded<Fn>};
const RegisteredRounding registered[] = {{Silu::ops, kKernel<Silu>},
                                         {Gelu::ops, kKernel<Gelu>},
                                         {GeluTanh::ops, kKernel<GeluTanh>},
                                         {Relu::ops, kKernel<Relu>},
                                         {Sigmoid::ops, kKernel<Sigmoid>}};
const RegisteredChain registered_chain(chain_of_floats);
template <class Fn>
constexpr std::string_view kWithJoin[] = {Fn::ops[0], Fn::ops[1], kJoin};
constexpr std::string_view kPart[] = {kJoin}, kMul[] = {"mul", kJoin};
const RegisteredRoundedJoin registered_joins[] = {{kPart, join_of_part},
                                                  {kMul, join_of_product},
                                                  {kWithJoin<Silu>, join_of_silu},
                                                  {kWithJoin<Gelu>, join_of_gelu},
                                                  {kWithJoin<GeluTanh>, join_of_gelu_tanh},
                                                  {kWithJoin<Relu>, join_of_relu},
                                                  {kWithJoin<Sigmoid>, join_of_sigmoid}};

}  // namespace
}  // namespace INVAR_ISA_NS
}  // namespace invar::ops
