// matmul by oneDNN where it measured faster (avx2, Zen 3; docs/decisions.md): f32, 32 to 192 rows,
// K up to 384, and a B of up to 1 MiB that is not constant, which either row packs on every call
// (oneDNN for every block). The reproducible row runs everything else.
#include "kernels/vendor/onednn.h"

#include <algorithm>

#include "ops/matmul/matmul.h"

namespace invar::ops {
namespace {

constexpr int64_t kFewRows = 32, kManyRows = 192, kDeepest = 384, kMostOfB = 256 << 10;
// Units are blocks of outputs of about this many rows and columns, independent of the thread count.
constexpr int64_t kRows = 64, kColumns = 192;

const CpuKernel& own() {
  static const CpuKernel& row = *find_cpu_kernel("matmul");
  return row;
}

bool is_for_library(const Call& c, const matmul::Shape& s) {
  return c.in[0].dtype == DType::f32 && c.in[1].dtype == DType::f32 && !c.in[1].packed && s.m >= kFewRows &&
         s.m <= kManyRows && s.n > 0 && s.k > 0 && s.k <= kDeepest && s.n <= kMostOfB / s.k;
}

struct Blocks {
  int64_t rows, columns, down, across;  // of a block; how many
};
Blocks blocks(const matmul::Shape& s) {
  const auto parts = [](int64_t n, int64_t of) { return (n + of - 1) / of; };
  const int64_t down = parts(s.m, kRows), across = parts(s.n, kColumns);
  return {parts(s.m, down), parts(s.n, across), down, across};
}

int64_t units(const Call& c, int phase) {
  const matmul::Shape s = matmul::shape(c);
  if (!is_for_library(c, s)) return own().units(c, phase);
  const Blocks b = blocks(s);
  return s.batches * b.down * b.across;
}

size_t scratch_bytes(const Call& c) {
  return is_for_library(c, matmul::shape(c)) ? 0 : own().scratch_bytes(c);
}

void run(const Call& c, int phase, int64_t begin, int64_t end, void* scratch) {
  const matmul::Shape s = matmul::shape(c);
  if (!is_for_library(c, s)) return own().run(c, phase, begin, end, scratch);
  const Blocks blocks_ = blocks(s);
  const auto* const a = c.in[0].as<const float>();
  const auto* const b = c.in[1].as<const float>();
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t batch = unit / (blocks_.down * blocks_.across),
                  block = unit % (blocks_.down * blocks_.across);
    const int64_t i = block / blocks_.across * blocks_.rows, j = block % blocks_.across * blocks_.columns;
    const matmul::Offsets at = matmul::offsets(s, batch);
    onednn::Product p;
    p.trans_a = s.trans_a ? 'T' : 'N', p.trans_b = s.trans_b ? 'T' : 'N';
    p.m = std::min(blocks_.rows, s.m - i), p.n = std::min(blocks_.columns, s.n - j), p.k = s.k;
    if (p.m <= 0 || p.n <= 0) continue;
    p.a = a + at.a + (s.trans_a ? i : i * s.k), p.lda = s.trans_a ? s.m : s.k;
    p.b = b + at.b + (s.trans_b ? j * s.k : j), p.ldb = s.trans_b ? s.k : s.n;
    p.c = c.out[0].as<float>() + (batch * s.m + i) * s.n + j, p.ldc = s.n;
    onednn::product(p);
  }
}

bool serves(std::span<const OperandInfo> operands) {
  return operands.size() == 2 && operands[0].dtype == DType::f32 && operands[1].dtype == DType::f32 &&
         !operands[1].constant;
}

const CpuKernel kRow = {
    .op = "matmul", .isa = "onednn", .units = units, .run = run, .scratch_bytes = scratch_bytes};

}  // namespace

extern const VendorRow library_matmul_onednn;
const VendorRow library_matmul_onednn = {&kRow, &onednn::library, OperationSet::deterministic, serves};

}  // namespace invar::ops
