// Sums of the products of units (fixed_matmul.1): blocks of rows, unit by unit, by the kernel of
// matmul.
#pragma once
#include "kernels/cpu/fixed_sums.h"
#include "ops/matmul/matmul.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// Phase 0: blocks of rows of the products, unit by unit, by the kernel of matmul; the bits of the
// largest of each block and unit into call.shared. Phase 1: the magnitude.
constexpr int64_t kFixedRows = 32;
int64_t fixed_row_blocks(const matmul::UnitProducts& s) {
  return s.columns ? (s.rows + kFixedRows - 1) / kFixedRows : 0;
}
int64_t units_fixed(const Call& call, int phase) {
  return phase ? 1 : fixed_row_blocks(matmul::unit_products(call));
}
size_t shared_bytes_fixed(const Call& call) {
  const matmul::UnitProducts s = matmul::unit_products(call);
  return static_cast<size_t>(fixed_row_blocks(s) * s.units) * sizeof(uint32_t);
}
// The rows of a block of transpose(a[u]), their product with b[u], and the memory of matmul.
struct FixedBlockScratch {
  int64_t rows, product;  // bytes
};
FixedBlockScratch fixed_block_scratch(const matmul::UnitProducts& s) {
  const auto whole = [](int64_t floats) { return (floats * 4 + 63) / 64 * 64; };
  return {whole(kFixedRows * s.length), whole(kFixedRows * s.columns)};
}
struct FixedBlockCall {
  View in[2], out;
  Call call;
};
void set_fixed_block(FixedBlockCall& block, const Call& call, const matmul::UnitProducts& s, int64_t u,
                     int64_t rows, float* of_a, float* product) {
  block.in[0].data = of_a, block.in[0].rank = 2, block.in[0].dim[0] = rows, block.in[0].dim[1] = s.length;
  block.in[1] = call.in[1], block.in[1].rank = 2;
  block.in[1].data = call.in[1].as<float>() + u * s.length * s.columns;
  block.in[1].dim[0] = s.length, block.in[1].dim[1] = s.columns;
  block.out.data = product, block.out.rank = 2, block.out.dim[0] = rows, block.out.dim[1] = s.columns;
  block.call.in = {block.in, 2}, block.call.out = {&block.out, 1}, block.call.attrs = nullptr;
}
}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW_OF(matmul);

namespace INVAR_ISA_NS {
namespace {

size_t scratch_bytes_fixed(const Call& call) {
  const matmul::UnitProducts s = matmul::unit_products(call);
  const FixedBlockScratch bytes = fixed_block_scratch(s);
  size_t most = 0;
  for (const int64_t rows : {kFixedRows, s.rows % kFixedRows}) {
    FixedBlockCall block{};
    set_fixed_block(block, call, s, 0, rows, nullptr, nullptr);
    const size_t needed = INVAR_ROW_OF(matmul).scratch_bytes(block.call);
    most = needed > most ? needed : most;
  }
  return static_cast<size_t>(bytes.rows + bytes.product) + most;
}
void run_fixed_block(const Call& call, const matmul::UnitProducts& s, int64_t index, std::byte* scratch) {
  const FixedBlockScratch bytes = fixed_block_scratch(s);
  auto* of_a = reinterpret_cast<float*>(scratch);
  auto* product = reinterpret_cast<float*>(scratch + bytes.rows);
  const int64_t first = index * kFixedRows, rows = s.rows - first < kFixedRows ? s.rows - first : kFixedRows;
  const int64_t n = rows * s.columns;
  int64_t* out = call.out[0].as<int64_t>() + first * s.columns;
  auto* largest = static_cast<uint32_t*>(call.shared) + index * s.units;
  for (int64_t i = 0; i < n; ++i) out[i] = 0;
  for (int64_t u = 0; u < s.units; ++u) {
    const float* a = call.in[0].as<const float>() + u * s.length * s.rows + first;
    for (int64_t t = 0; t < s.length; ++t)
      for (int64_t i = 0; i < rows; ++i) of_a[i * s.length + t] = a[t * s.rows + i];
    FixedBlockCall block{};
    set_fixed_block(block, call, s, u, rows, of_a, product);
    INVAR_ROW_OF(matmul).run(block.call, 0, 0, INVAR_ROW_OF(matmul).units(block.call, 0),
                             scratch + bytes.rows + bytes.product);
    largest[u] = largest_bits(product, n);
    add_fixed(out, product, n);
  }
}
void run_fixed(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const matmul::UnitProducts s = matmul::unit_products(call);
  if (phase == 0) {
    for (int64_t i = begin; i < end; ++i) run_fixed_block(call, s, i, static_cast<std::byte*>(scratch));
    return;
  }
  if (begin == end) return;
  call.out[0].as<uint64_t>()[s.rows * s.columns] =
      sum_of_magnitudes(static_cast<const uint32_t*>(call.shared), s.units, fixed_row_blocks(s), 1, s.units);
}

}  // namespace
}  // namespace INVAR_ISA_NS
}  // namespace invar::ops
