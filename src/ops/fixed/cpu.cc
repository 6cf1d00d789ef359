// CPU fixed-point sums: columns of units, and the largest magnitudes of parts of units.
#include "kernels/cpu/vector_io.h"
#include "ops/fixed/fixed.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// fixed.2. The product is exact, and what it exceeds 2^23 by is whole already.
INVAR_INLINE L fixed_point(F x) {
  const M counts = lt(abs(x), set1(kFixedLimit));
  return truncate_wide(round_even(mul(select(counts, x, zero()), set1(kFixedScale))));
}

// sum[i] += the fixed point of x[i].
INVAR_INLINE void add_fixed(int64_t* sum, const float* x, int64_t n) {
  int64_t i = 0;
  for (; i + kW <= n; i += kW) store_l(sum + i, add(load_l(sum + i), fixed_point(load(x + i))));
  if (i == n) return;
  alignas(64) int64_t last[kW];
  store_l(last, fixed_point(load_part(x + i, static_cast<int>(n - i))));
  for (int64_t j = i; j < n; ++j)
    sum[j] = static_cast<int64_t>(static_cast<uint64_t>(sum[j]) + static_cast<uint64_t>(last[j - i]));
}

constexpr int64_t kColumns = 512;  // their sums stay in the L1 cache while units are added
int64_t sum_units(const Call& call, int) {
  return (call.out[0].elements() + kColumns - 1) / kColumns;
}
void run_sum(const Call& call, int, int64_t begin, int64_t end, void*) {
  const FixedUnits s = fixed_units(call);
  for (int64_t block = begin; block < end; ++block) {
    const int64_t from = block * kColumns, n = s.n - from < kColumns ? s.n - from : kColumns;
    const float* x = call.in[0].as<const float>() + from;
    int64_t* out = call.out[0].as<int64_t>() + from;
    alignas(64) int64_t sum[kColumns] = {};
    for (int64_t u = 0; u < s.units; ++u, x += s.n) add_fixed(sum, x, n);
    for (int64_t i = 0; i < n; ++i) out[i] = sum[i];
  }
}

// Phase 0: the bits of the largest |x| of each part of a unit, into call.shared. Phase 1: the sum.
constexpr int64_t kPart = 16384;
int64_t parts(const FixedUnits& s) {
  return (s.n + kPart - 1) / kPart;
}
size_t magnitude_shared(const Call& call) {
  const FixedUnits s = fixed_units(call);
  return static_cast<size_t>(s.units * parts(s)) * sizeof(uint32_t);
}
int64_t magnitude_units(const Call& call, int phase) {
  const FixedUnits s = fixed_units(call);
  return phase ? 1 : s.units * parts(s);
}
// The bits of numbers without their sign order as their magnitudes, with NaN above all.
INVAR_INLINE uint32_t largest_bits(const float* x, int64_t n) {
  I most = set1_i(0);
  for (int64_t i = 0; i < n; i += kW) {
    const int64_t left = n - i;
    const I v = bits(abs(load_part(x + i, left < kW ? static_cast<int>(left) : kW)));
    most = select(gt(v, most), v, most);
  }
  alignas(64) int32_t lane[kW];
  store_i(lane, most);
  int32_t result = 0;
  for (int32_t v : lane) result = v > result ? v : result;
  return static_cast<uint32_t>(result);
}
void run_magnitude(const Call& call, int phase, int64_t begin, int64_t end, void*) {
  const FixedUnits s = fixed_units(call);
  const int64_t count = parts(s);
  auto* largest = static_cast<uint32_t*>(call.shared);
  if (phase == 0) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = i % count * kPart, n = s.n - from < kPart ? s.n - from : kPart;
      largest[i] = largest_bits(call.in[0].as<const float>() + i / count * s.n + from, n);
    }
    return;
  }
  if (begin == end) return;
  uint64_t sum = 0;
  for (int64_t u = 0; u < s.units; ++u) {
    uint32_t most = 0;
    for (int64_t i = u * count; i < (u + 1) * count; ++i) most = largest[i] > most ? largest[i] : most;
    sum += static_cast<uint64_t>(fixed_magnitude_of(most));
  }
  call.out[0].as<uint64_t>()[0] = sum;
}

// Phase 0: blocks of rows of the products, unit by unit, by the kernel of matmul; the bits of the
// largest of each block and unit into call.shared. Phase 1: the magnitude.
constexpr int64_t kRows = 32;
int64_t row_blocks(const FixedProducts& s) {
  return s.columns ? (s.rows + kRows - 1) / kRows : 0;
}
int64_t matmul_units(const Call& call, int phase) {
  return phase ? 1 : row_blocks(fixed_products(call));
}
size_t matmul_shared(const Call& call) {
  const FixedProducts s = fixed_products(call);
  return static_cast<size_t>(row_blocks(s) * s.units) * sizeof(uint32_t);
}
// The rows of a block of transpose(a[u]), their product with b[u], and the memory of matmul.
struct BlockScratch {
  int64_t rows, product;  // bytes
};
BlockScratch block_scratch(const FixedProducts& s) {
  const auto whole = [](int64_t floats) { return (floats * 4 + 63) / 64 * 64; };
  return {whole(kRows * s.length), whole(kRows * s.columns)};
}
struct BlockCall {
  View in[2], out;
  Call call;
};
void set_block(BlockCall& block, const Call& call, const FixedProducts& s, int64_t u, int64_t rows,
               float* of_a, float* product) {
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

size_t matmul_scratch(const Call& call) {
  const FixedProducts s = fixed_products(call);
  const BlockScratch bytes = block_scratch(s);
  size_t most = 0;
  for (const int64_t rows : {kRows, s.rows % kRows}) {
    BlockCall block{};
    set_block(block, call, s, 0, rows, nullptr, nullptr);
    const size_t needed = INVAR_ROW_OF(matmul).scratch_bytes(block.call);
    most = needed > most ? needed : most;
  }
  return static_cast<size_t>(bytes.rows + bytes.product) + most;
}
void run_block(const Call& call, const FixedProducts& s, int64_t index, std::byte* scratch) {
  const BlockScratch bytes = block_scratch(s);
  auto* of_a = reinterpret_cast<float*>(scratch);
  auto* product = reinterpret_cast<float*>(scratch + bytes.rows);
  const int64_t first = index * kRows, rows = s.rows - first < kRows ? s.rows - first : kRows;
  const int64_t n = rows * s.columns;
  int64_t* out = call.out[0].as<int64_t>() + first * s.columns;
  auto* largest = static_cast<uint32_t*>(call.shared) + index * s.units;
  for (int64_t i = 0; i < n; ++i) out[i] = 0;
  for (int64_t u = 0; u < s.units; ++u) {
    const float* a = call.in[0].as<const float>() + u * s.length * s.rows + first;
    for (int64_t t = 0; t < s.length; ++t)
      for (int64_t i = 0; i < rows; ++i) of_a[i * s.length + t] = a[t * s.rows + i];
    BlockCall block{};
    set_block(block, call, s, u, rows, of_a, product);
    INVAR_ROW_OF(matmul).run(block.call, 0, 0, INVAR_ROW_OF(matmul).units(block.call, 0),
                             scratch + bytes.rows + bytes.product);
    largest[u] = largest_bits(product, n);
    add_fixed(out, product, n);
  }
}
void run_matmul(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const FixedProducts s = fixed_products(call);
  if (phase == 0) {
    for (int64_t i = begin; i < end; ++i) run_block(call, s, i, static_cast<std::byte*>(scratch));
    return;
  }
  if (begin == end) return;
  const int64_t blocks = row_blocks(s);
  const auto* largest = static_cast<const uint32_t*>(call.shared);
  uint64_t sum = 0;
  for (int64_t u = 0; u < s.units; ++u) {
    uint32_t most = 0;
    for (int64_t i = 0; i < blocks; ++i)
      most = largest[i * s.units + u] > most ? largest[i * s.units + u] : most;
    sum += static_cast<uint64_t>(fixed_magnitude_of(most));
  }
  call.out[0].as<uint64_t>()[s.rows * s.columns] = sum;
}

void value_region(const Call& call, const Region& r) {
  const bool valid = fixed_is_valid(call.in[1].as<const int64_t>()[0]);
  for (int64_t row = 0; row < r.rows; ++row) {
    const int64_t* x = call.in[0].as<const int64_t>() + r.at + row * r.pitch;
    strip_exact(
        call.out[0].as<float>() + r.at + row * r.pitch,
        r.n, [&](int64_t i, int count) __attribute__((always_inline)) {
          if (!valid) return from_bits(set1_i(0x7fc00000));
          if (count == kW) return mul(to_float(load_l(x + i)), set1(0x1p-49f));  // exact
          alignas(64) int64_t part[kW] = {};
          for (int j = 0; j < count && j < kW; ++j) part[j] = x[i + j];
          return mul(to_float(load_l(part)), set1(0x1p-49f));
        });
  }
}
void run_value(const Call& call, int, int64_t begin, int64_t end, void*) {
  for_each_chunk(call, begin, end, [&](const Region& r) { value_region(call, r); });
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW_OF(fixed_sum), INVAR_ROW_OF(fixed_magnitude), INVAR_ROW_OF(fixed_value),
    INVAR_ROW_OF(fixed_matmul);
const CpuKernel INVAR_ROW_OF(fixed_sum) = {
    .op = "fixed_sum", .isa = INVAR_ISA, .units = INVAR_ISA_NS::sum_units, .run = INVAR_ISA_NS::run_sum};
const CpuKernel INVAR_ROW_OF(fixed_magnitude) = {.op = "fixed_magnitude",
                                                 .isa = INVAR_ISA,
                                                 .phases = 2,
                                                 .units = INVAR_ISA_NS::magnitude_units,
                                                 .run = INVAR_ISA_NS::run_magnitude,
                                                 .shared_bytes = INVAR_ISA_NS::magnitude_shared};
const CpuKernel INVAR_ROW_OF(fixed_matmul) = {.op = "fixed_matmul",
                                              .isa = INVAR_ISA,
                                              .phases = 2,
                                              .units = INVAR_ISA_NS::matmul_units,
                                              .run = INVAR_ISA_NS::run_matmul,
                                              .scratch_bytes = INVAR_ISA_NS::matmul_scratch,
                                              .shared_bytes = INVAR_ISA_NS::matmul_shared};
const CpuKernel INVAR_ROW_OF(fixed_value) = {.op = "fixed_value",
                                             .isa = INVAR_ISA,
                                             .units = chunk_units,
                                             .run = INVAR_ISA_NS::run_value,
                                             .epilogue = true};

}  // namespace invar::ops
