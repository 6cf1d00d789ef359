// matmul by tiles or GEMV, with packed or plain b. The choice is free by matmul.3.
#include "num/contract/binary64.h"
#include "ops/matmul/cuda/turned.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

KernelChoice choose_kernel(const Shape& s, const View& b) {
  return matmul::select_kernel(s, fits_gemv(s, b.packed), multiprocessors(), variant());
}
// Variants from kRoutes on transpose operands of any size.
Turned turned(const Shape& s, const View& b) {
  return turned_operands(s, b, variant() >= matmul::kRoutes);
}
// matmul.5: binary64, a thread for each element of the result.
__global__ void binary64_kernel(Shape s, const double* a, const double* b, double* out) {
  const int64_t n = s.batches * s.m * s.n, step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < n; at += step) {
    const int64_t row = at / s.n, j = at % s.n, i = row % s.m;
    const matmul::Offsets from = matmul::offsets(s, row / s.m);
    const double *left = a + from.a + (s.trans_a ? i : i * s.k),
                 *right = b + from.b + (s.trans_b ? j * s.k : j);
    const int64_t step_a = s.trans_a ? s.m : 1, step_b = s.trans_b ? 1 : s.n;
    num::INVAR_ISA_NS::contract64<1>(
        s.k, 1, [=](int64_t k) { return left[k * step_a]; },
        [=](int64_t k, int) { return right[k * step_b]; }, out + at);
  }
}
void enqueue_binary64(const Call& call, const Shape& s, Stream stream) {
  constexpr int kThreads = 256;
  const int64_t n = s.batches * s.m * s.n;
  if (n)
    launch(binary64_kernel, dim3(grid_for(ceil_div(n, kThreads))), dim3(kThreads), 0, stream, s,
           call.in[0].as<const double>(), call.in[1].as<const double>(), call.out[0].as<double>());
}

size_t shared_bytes(const Call& call) {
  if (call.in[0].dtype == DType::f64) return 0;
  const Shape s = matmul::shape(call);
  const Turned t = turned(s, call.in[1]);
  return t.bytes_a + t.bytes_b + workspace(s, choose_kernel(s, call.in[1]));
}

template <class Reader>
WeightColumns<Reader, true> columns(const Shape& s, const View& b, const Reader& reader) {
  return {reader, b.as<const uint32_t>(), s.n, s.k, word_rows(s.k, b.dtype)};
}

void enqueue(const Call& call, Stream stream) {
  Shape s = matmul::shape(call);
  if (call.in[0].dtype == DType::f64) return enqueue_binary64(call, s, stream);
  const View& b = call.in[1];
  const auto* a = call.in[0].as<const float>();
  auto* out = call.out[0].as<float>();
  if (enqueue_zeros(s, out, stream)) return;
  const KernelChoice c = choose_kernel(s, b);
  const Turned t = turned(s, b);
  auto* const copies = static_cast<std::byte*>(call.shared);
  void* const work = copies + t.bytes_a + t.bytes_b;
  if (t.a) {
    auto* const copy = reinterpret_cast<float*>(copies);
    enqueue_turn(a, copy, s.m, s.k, stream);
    a = copy, s.trans_a = true;
  }
  auto product = [&]<bool kLarge>(const auto& source, std::bool_constant<kLarge>) {
    enqueue_product<kLarge>(s, c, a, source, out, work, stream);
  };
  constexpr std::true_type kFast{};
  constexpr std::false_type kRare{};
  if (!b.packed && b.dtype == DType::f32) {
    const auto* p = b.as<const float>();
    if (t.b) {
      auto* const copy = reinterpret_cast<float*>(copies + t.bytes_a);
      enqueue_turn(p, copy, s.n, s.k, stream);
      p = copy, s.trans_b = false;
    }
    if (s.trans_b) return product(KContiguous{p, s.k, s.n, s.k}, kFast);
    if (s.n % 4 == 0 && reinterpret_cast<uintptr_t>(p) % 16 == 0)
      return product(OuterContiguous<true>{p, s.n, s.n, s.k}, kFast);
    return product(OuterContiguous<false>{p, s.n, s.n, s.k}, kRare);
  }
  const Strides strides = s.trans_b ? Strides{1, s.k} : Strides{s.n, 1};
  const auto* packed = b.as<const uint32_t>();
  const int64_t rows = word_rows(s.k, b.dtype);
  with_reader(b.dtype, b.data, strides, [&](auto reader) {
    using Reader = decltype(reader);
    if (c.route == Route::gemv)
      return enqueue_gemv(GemvProblem{a, packed, out, s.m, s.n, s.k, rows}, reader, stream);
    if (b.packed) return product(columns(s, b, reader), kFast);
    if constexpr (Reader::kPerWord > 1)
      product(WeightColumns<Reader, false>{reader, nullptr, s.n, s.k, rows}, kRare);
  });
}

// How several products run: separately; as one grouped GEMV, each with its own a; or as one grouped
// GEMM of large tiles, all with one a. Grouped products have packed weights of one format.
struct GroupedPlan {
  enum Mode { separate, gemv, tiles } mode;
  Shape shapes[kMaxProducts];
  KernelChoice choice;  // of tiles
};
GroupedPlan plan_group(std::span<const Call* const> calls) {
  GroupedPlan t{};
  if (calls.size() > kMaxProducts) return t;
  const View& b = calls[0]->in[1];
  bool alike = true, one_a = true;
  Shape all{};
  for (size_t i = 0; i < calls.size(); ++i) {
    const Shape& s = t.shapes[i] = matmul::shape(*calls[i]);
    alike &= calls[i]->in[1].packed && calls[i]->in[1].dtype == b.dtype && s.m == t.shapes[0].m &&
             s.k == t.shapes[0].k && s.k > 0 && s.batches == 1 && !s.trans_a;
    one_a &= calls[i]->in[0].data == calls[0]->in[0].data;
    if (i == 0)
      all = s;
    else
      all.n += s.n;
  }
  if (!alike) return t;
  t.choice = choose_kernel(all, b);
  if (t.choice.route == Route::gemv)
    t.mode = GroupedPlan::gemv;
  else if (one_a && is_large(t.choice))
    t.mode = GroupedPlan::tiles;
  return t;
}
size_t shared_bytes_batch(std::span<const Call* const> calls) {
  const GroupedPlan t = plan_group(calls);
  if (t.mode != GroupedPlan::tiles) {
    size_t most = 0;
    for (const Call* c : calls) most = std::max(most, shared_bytes(*c));
    return most;
  }
  Shape all = t.shapes[0];  // has at least as many tiles as all products together
  for (size_t i = 1; i < calls.size(); ++i)
    all.n = ceil_div(all.n, Large::kColumns) * Large::kColumns + t.shapes[i].n;
  return workspace_of<Large>(all, t.choice);
}

void enqueue_batch(std::span<const Call* const> calls, Stream stream) {
  const GroupedPlan plan = plan_group(calls);
  if (plan.mode == GroupedPlan::separate) {
    for (const Call* c : calls) enqueue(*c, stream);
    return;
  }
  const View& b = calls[0]->in[1];
  with_reader(b.dtype, b.data, Strides{}, [&](auto reader) {
    using Reader = decltype(reader);
    if (plan.mode == GroupedPlan::tiles) {
      WeightColumns<Reader, true> of_b[kMaxProducts] = {columns(plan.shapes[0], b, reader)};
      float* out[kMaxProducts] = {};
      for (size_t i = 0; i < calls.size(); ++i)
        of_b[i] = columns(plan.shapes[i], calls[i]->in[1], reader), out[i] = calls[i]->out[0].as<float>();
      const Shape& s = plan.shapes[0];
      enqueue_tiles<Large, kMaxProducts>({plan.shapes, calls.size()}, plan.choice,
                                         KContiguous{calls[0]->in[0].as<const float>(), s.k, s.m, s.k}, of_b,
                                         out, calls[0]->shared, stream);
      return;
    }
    GroupedGemv<Reader> products{};
    for (const Call* c : calls) {
      const Shape t = matmul::shape(*c);
      products.reader[products.count] = reader;  // its pointer is not read: b is packed
      products.problem[products.count++] = {
          c->in[0].as<const float>(), c->in[1].as<const uint32_t>(), c->out[0].as<float>(), t.m, t.n, t.k,
          word_rows(t.k, b.dtype)};
    }
    enqueue_gemv(products, stream);
  });
}

size_t pack_bytes(const View& b, int i, const Attributes& attrs) {
  return i != 1 || b.dtype == DType::f64 ? 0 : packed_bytes(b, attrs);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(matmul);
const GpuKernel INVAR_ROW_OF(matmul) = {.op = "matmul",
                                        .isa = INVAR_ISA,
                                        .shared_bytes = INVAR_ISA_NS::shared_bytes,
                                        .pack_bytes = INVAR_ISA_NS::pack_bytes,
                                        .enqueue = INVAR_ISA_NS::enqueue,
                                        .enqueue_batch = INVAR_ISA_NS::enqueue_batch,
                                        .enqueue_pack = INVAR_ISA_NS::enqueue_pack_floats,
                                        .shared_bytes_batch = INVAR_ISA_NS::shared_bytes_batch};

}  // namespace invar::ops
