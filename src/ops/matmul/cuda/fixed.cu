// Sums of the products of units (fixed_matmul.1).
#include "kernels/cuda/fixed_sums.cuh"
#include "ops/matmul/matmul.h"

namespace invar::ops {

extern const GpuKernel INVAR_ROW_OF(matmul);

namespace INVAR_ISA_NS {
namespace {

// Products of as many units as 64 MiB hold, by the kernel of matmul, then their sums; in
// call.shared as for the magnitude, the products, and the memory of matmul.
struct ProductParts {
  int64_t units;                        // at a time
  size_t largest, products, of_matmul;  // offsets
};
ProductParts product_parts(const matmul::UnitProducts& s) {
  constexpr int64_t kProductBytes = int64_t{64} << 20;
  const auto whole = [](size_t bytes) { return (bytes + 255) / 256 * 256; };
  const int64_t bytes = s.rows * s.columns * 4, fitting = bytes ? kProductBytes / bytes : 1;
  ProductParts p{};
  p.units = fitting < s.units ? fitting : s.units;
  if (p.units < 1) p.units = 1;
  p.largest = static_cast<size_t>(kFixedSumBlocks) * sizeof(uint64_t);
  p.products = whole(p.largest + static_cast<size_t>(s.units) * sizeof(uint32_t));
  p.of_matmul = whole(p.products + static_cast<size_t>(p.units * bytes));
  return p;
}
size_t shared_bytes_fixed(const Call& call) {
  const matmul::UnitProducts s = matmul::unit_products(call);
  const ProductParts p = product_parts(s);
  size_t most = 0;
  for (const int64_t units : {p.units, s.units % p.units}) {
    const matmul::ProductViews u = matmul::product_views(call, 0, units, nullptr);
    const size_t needed =
        INVAR_ROW_OF(matmul).shared_bytes({{u.in, 2}, {&u.out, 1}, &matmul::transposed_a()});
    most = needed > most ? needed : most;
  }
  return p.of_matmul + most;
}
void enqueue_fixed(const Call& call, Stream stream) {
  const matmul::UnitProducts s = matmul::unit_products(call);
  const ProductParts p = product_parts(s);
  auto* const memory = static_cast<std::byte*>(call.shared);
  auto* const sums = reinterpret_cast<uint64_t*>(memory);
  auto* const largest = reinterpret_cast<uint32_t*>(memory + p.largest);
  auto* const products = reinterpret_cast<float*>(memory + p.products);
  uint64_t* const out = call.out[0].as<uint64_t>();
  const int64_t n = s.rows * s.columns;
  launch_for_each(stream, s.units, [=] __device__(int64_t u) { largest[u] = 0; });
  launch_for_each(stream, s.units ? 0 : n, [=] __device__(int64_t i) { out[i] = 0; });
  for (int64_t first = 0; n > 0 && first < s.units; first += p.units) {
    const int64_t units = s.units - first < p.units ? s.units - first : p.units;
    const matmul::ProductViews u = matmul::product_views(call, first, units, products);
    Call product{{u.in, 2}, {&u.out, 1}, &matmul::transposed_a()};
    product.shared = memory + p.of_matmul, product.gpu = call.gpu;
    INVAR_ROW_OF(matmul).enqueue(product, stream);
    enqueue_largest({units, n}, products, largest + first, stream);
    launch_for_each(stream, n, [=] __device__(int64_t i) {
      uint64_t sum = first ? out[i] : 0;
      for (int64_t j = 0; j < units; ++j) sum += fixed_point(products[j * n + i]);
      out[i] = sum;
    });
  }
  enqueue_total(s.units, largest, sums, out + n, stream);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(fixed_matmul);
const GpuKernel INVAR_ROW_OF(fixed_matmul) = {.op = "fixed_matmul",
                                              .isa = INVAR_ISA,
                                              .shared_bytes = INVAR_ISA_NS::shared_bytes_fixed,
                                              .enqueue = INVAR_ISA_NS::enqueue_fixed};

}  // namespace invar::ops
