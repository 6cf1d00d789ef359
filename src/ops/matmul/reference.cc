// spec: matmul.1 - matmul.5, grouped_matmul.1 - 3, fixed_matmul.1, matmul_integer.1 - 2,
// matmul_nbits.1 - 3, matmul_exact16.1 - 3, grouped_matmul_exact16.1 - 3,
// matmul_nbits_exact16.1 - 5; the sums: spec/contraction.md, spec/exact16.md.
#include "num/contract/reference.h"
#include "kernels/batch_independence.h"
#include "kernels/check.h"
#include "kernels/reference.h"
#include "num/binary64.h"
#include "num/exact16/reference.h"
#include "num/fixed/reference.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/nbits.h"

namespace invar::ops {

static void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &a = call.in[0], &b = call.in[1], &out = call.out[0];
  const matmul::Shape s = matmul::shape(call);
  for (int64_t unit = begin; unit < end; ++unit) {  // an element: whoever disputes one computes it alone
    const int64_t row = unit / s.n, j = unit % s.n, i = row % s.m;
    const matmul::Offsets at = matmul::offsets(s, row / s.m);
    auto place_a = [&](int64_t k) { return at.a + (s.trans_a ? k * s.m + i : i * s.k + k); };
    auto place_b = [&](int64_t k) { return at.b + (s.trans_b ? j * s.k + k : k * s.n + j); };
    if (a.dtype == DType::f64) {  // matmul.5
      const double y = num::reference::contract<double>(
          s.k, [&](int64_t k) { return a.as<double>()[place_a(k)]; },
          [&](int64_t k) { return b.as<double>()[place_b(k)]; });
      out.as<double>()[unit] = num::canonicalize64(y);
      continue;
    }
    auto left = [&](int64_t k) { return value(a, place_a(k)); };
    auto right = [&](int64_t k) { return value(b, place_b(k)); };
    store_canonical(out, unit, num::reference::contract(s.k, left, right));
  }
}

static int64_t units(const Call& call, int) {
  return call.out[0].elements();
}

// Checks the shapes that matmul.1 allows.
static const char* check_shapes(const Call& c) {
  const View &a = c.in[0], &b = c.in[1], &out = c.out[0];
  const MatmulAttributes attrs(c);
  const bool trans_a = attrs.trans_a != 0, trans_b = attrs.trans_b != 0;
  const char* shapes =
      "[..., M, K] times [..., K, N], the last two dimensions exchanged with trans_a, trans_b";
  if (a.rank < (trans_a ? 2 : 1) || b.rank < 2 || (a.rank < 2 && b.rank > 2)) return shapes;
  if (a.dim[a.rank - (trans_a ? 2 : 1)] != b.dim[b.rank - (trans_b ? 1 : 2)]) return shapes;
  const char* result = "a result [..., M, N] whose leading dimensions both operands broadcast to";
  if (out.rank != (a.rank < 2 || a.rank > b.rank ? a.rank : b.rank) ||
      last_dim(out) != b.dim[b.rank - (trans_b ? 2 : 1)])
    return result;
  if (a.rank >= 2 && out.dim[out.rank - 2] != a.dim[a.rank - (trans_a ? 1 : 2)]) return result;
  for (int i = 3; i <= out.rank; ++i) {
    const int64_t da = i <= a.rank ? a.dim[a.rank - i] : 1, db = i <= b.rank ? b.dim[b.rank - i] : 1;
    if ((da != db && da != 1 && db != 1) || out.dim[out.rank - i] != (da == 1 ? db : da)) return result;
  }
  return nullptr;
}

static const char* check(const Call& c) {
  if (!has_operands(c, 2, 1)) return "two operands and one result";
  const bool wide =
      c.in[0].dtype == DType::f64 && c.in[1].dtype == DType::f64 && c.out[0].dtype == DType::f64;
  if (!wide && (!is_f32(c.in[0]) || !is_weight(c.in[1]) || !is_f32(c.out[0])))
    return "f32 (the second operand may be bf16 or f16), or f64";
  return check_shapes(c);
}

// Batched rows of A, and batched matrices of B where B has a batch dimension.
static bool batch_independent(const Call& c, uint64_t batched) {
  const View &a = c.in[0], &b = c.in[1], &out = c.out[0];
  if (batched > 3) return false;
  const bool rows = a.rank == out.rank && (a.rank > 2 || (a.rank == 2 && !MatmulAttributes(c).trans_a));
  const bool one_a = a.rank < out.rank || (a.rank > 2 && a.dim[0] == 1);
  const bool one_b = b.rank <= 2 || b.rank < out.rank || b.dim[0] == 1;
  return (batched & 1 ? rows : one_a) && (batched & 2 ? b.rank > 2 && b.rank == out.rank : one_b);
}

static void run_grouped(const Call& call, int, int64_t begin, int64_t end, void*) {
  const matmul::GroupedShape s = matmul::grouped_shape(call);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t g = matmul::matrix_index(call.in[1].as<const int64_t>()[row], s.groups);
    const View& b = call.in[matmul::kFirstMatrix + (s.stacked || g < 0 ? 0 : g)];
    const int64_t matrix = s.stacked ? g * s.k * s.n : 0;
    for (int64_t j = 0; j < s.n; ++j) {
      const float y = num::reference::contract(
          s.k, [&](int64_t k) { return value(call.in[0], row / s.share * s.k + k); },
          [&](int64_t k) { return g < 0 ? 0 : value(b, matrix + (s.trans_b ? j * s.k + k : k * s.n + j)); });
      store_canonical(call.out[0], row * s.n + j, g < 0 ? canonical_nan(NAN) : y);
    }
  }
}

static const char* check_grouped(const Call& c) {
  if (c.in.size() < 3 || c.in.size() > 2 + matmul::kMostMatrices || c.out.size() != 1)
    return "rows, indices, 1 to 512 matrices, and one result";
  const View &a = c.in[0], &index = c.in[1], &b = c.in[matmul::kFirstMatrix], &out = c.out[0];
  const bool trans_b = GroupedMatmulAttributes(c).trans_b != 0;
  if (!is_f32(a) || !is_f32(out) || index.dtype != DType::i64 || !is_weight(b))
    return "f32 rows, i64 indices, and matrices of f32, bf16 or f16";
  if (b.rank != 2 && !(b.rank == 3 && c.in.size() == 3)) return "matrices of rank 2, or one stack of rank 3";
  if (b.rank == 3 && b.dim[0] == 0) return "at least one matrix";
  for (const View& other : c.in.subspan(matmul::kFirstMatrix))
    if (other.dtype != b.dtype || !same_shape(other, b)) return "matrices of one shape and type";
  const int64_t k = b.dim[b.rank - (trans_b ? 1 : 2)], n = b.dim[b.rank - (trans_b ? 2 : 1)];
  if (a.rank < 2 || a.rank != out.rank || index.rank != out.rank - 1 ||
      !same_leading(index, out, index.rank) || !same_leading(a, out, a.rank - 2) ||
      (a.dim[a.rank - 2] != 1 && a.dim[a.rank - 2] != out.dim[a.rank - 2]))
    return "a [..., S, K] or [..., 1, K], indices [..., S] and a result [..., S, N]";
  if (last_dim(a) != k || last_dim(out) != n)
    return "matrices [K, N], or [N, K] with trans_b, of a's K and the result's N";
  return nullptr;
}

static bool find_out_of_bounds_grouped(const Call& c, OutOfBounds& found) {
  const int64_t groups = matmul::grouped_shape(c).groups;
  for (int64_t i = 0; i < c.in[1].elements(); ++i)
    if (const int64_t g = c.in[1].as<const int64_t>()[i]; matmul::matrix_index(g, groups) < 0) {
      found = {1, i, g, groups};
      return true;
    }
  return false;
}

static bool batch_independent_grouped(const Call& c, uint64_t batched) {
  return batched == 3 && (c.out[0].rank > 2 || c.in[0].dim[0] == c.out[0].dim[0]);
}

static bool is_byte(const View& v) {
  return v.dtype == DType::i8 || v.dtype == DType::u8;
}

static int64_t byte(const View& v, int64_t i) {
  return v.dtype == DType::i8 ? v.as<const int8_t>()[i] : v.as<const uint8_t>()[i];
}

static void run_integer(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &a = call.in[0], &b = call.in[1], &out = call.out[0];
  const matmul::Shape s = matmul::shape(call);
  const int64_t m = a.rank < 2 ? 1 : a.dim[a.rank - 2];
  auto zero = [&](size_t operand, int64_t i) {
    if (call.in.size() <= operand) return int64_t{0};
    return byte(call.in[operand], call.in[operand].elements() == 1 ? 0 : i);
  };
  for (int64_t row = begin; row < end; ++row) {
    const int64_t i = row % s.m;
    const matmul::Offsets at = matmul::offsets(s, row / s.m);
    for (int64_t j = 0; j < s.n; ++j) {
      uint64_t sum = 0;
      for (int64_t k = 0; k < s.k; ++k)
        sum += static_cast<uint64_t>((byte(a, at.a + i * s.k + k) - zero(2, i % m)) *
                                     (byte(b, at.b + k * s.n + j) - zero(3, j)));
      out.as<int32_t>()[row * s.n + j] = static_cast<int32_t>(static_cast<uint32_t>(sum));
    }
  }
}

static const char* check_integer(const Call& c) {
  if (c.in.size() < 2 || c.in.size() > 4 || c.out.size() != 1) return "two to four operands and one result";
  const View &a = c.in[0], &b = c.in[1];
  if (!is_byte(a) || !is_byte(b) || c.out[0].dtype != DType::i32) return "i8 or u8 and a result of i32";
  const MatmulAttributes attrs(c);
  if (attrs.trans_a || attrs.trans_b) return "operands that are not transposed";
  if (const char* wrong = check_shapes(c)) return wrong;
  for (size_t i = 2; i < c.in.size(); ++i) {
    const View &z = c.in[i], &of = c.in[i - 2];
    const int64_t n = i == 3 ? last_dim(b) : a.rank < 2 ? 1 : a.dim[a.rank - 2];
    if (z.dtype != of.dtype || z.rank > 1 || (z.elements() != 1 && z.dim[0] != n))
      return "zero points of the operands' types, one for all or one for each row of a and column of b";
  }
  return nullptr;
}

static bool batch_independent_integer(const Call& c, uint64_t batched) {
  return batch_independent(c, batched) && (c.in.size() < 3 || c.in[2].elements() == 1 || c.out[0].rank > 2);
}

static void run_nbits(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &a = call.in[0], &b = call.in[1], &scales = call.in[2];
  const matmul::Nbits l = matmul::nbits(call);
  auto weight = [&](int64_t j, int64_t k) {  // matmul_nbits.2
    const int64_t group = l.block ? k / l.block : 0;
    const int z = call.in.size() > 3 ? matmul::zero_point(l, call.in[3], j, group) : matmul::zero_point(l);
    return num::canonicalize(static_cast<float>(matmul::integer(l, b, j, k) - z) *
                             value(scales, matmul::scale_index(l, scales, j, group)));
  };
  for (int64_t row = begin; row < end; ++row)
    for (int64_t j = 0; j < l.n; ++j)
      store_canonical(call.out[0], row * l.n + j,
                      num::reference::contract(
                          l.k, [&](int64_t k) { return value(a, row * l.k + k); },
                          [&](int64_t k) { return weight(j, k); }));
}

static void run_exact16(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &a = call.in[0], &b = call.in[1];
  const matmul::Shape s = matmul::shape(call);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t row = unit / s.n, j = unit % s.n;
    const matmul::Offsets at = matmul::offsets(s, row / s.m);
    auto left = [&](int64_t k) { return value(a, at.a + row % s.m * s.k + k); };
    auto right = [&](int64_t k) { return value(b, at.b + (s.trans_b ? j * s.k + k : k * s.n + j)); };
    call.out[0].as<float>()[unit] = num::reference::exact16_product(s.k, left, right);
  }
}

static void run_grouped_exact16(const Call& call, int, int64_t begin, int64_t end, void*) {
  const matmul::GroupedShape s = matmul::grouped_shape(call);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t g = matmul::matrix_index(call.in[1].as<const int64_t>()[row], s.groups);
    const View& b = call.in[matmul::kFirstMatrix + (s.stacked || g < 0 ? 0 : g)];
    const int64_t matrix = s.stacked ? g * s.k * s.n : 0;
    for (int64_t j = 0; j < s.n; ++j)
      call.out[0].as<float>()[row * s.n + j] =
          g < 0 ? num::f32_from_bits(0x7fc00000)
                : num::reference::exact16_product(
                      s.k, [&](int64_t k) { return value(call.in[0], row / s.share * s.k + k); },
                      [&](int64_t k) { return value(b, matrix + (s.trans_b ? j * s.k + k : k * s.n + j)); });
  }
}

static const char* check_grouped_exact16(const Call& c) {
  if (const char* wrong = check_grouped(c)) return wrong;
  return last_dim(c.in[0]) <= num::kExact16LongestRow ? nullptr : "rows of at most 2^22 elements";
}

static const char* check_exact16(const Call& c) {
  if (!has_operands(c, 2, 1)) return "two operands and one result";
  if (!is_f32(c.in[0]) || !is_weight(c.in[1]) || !is_f32(c.out[0]))
    return "f32 (the second operand may be bf16 or f16)";
  if (MatmulAttributes(c).trans_a) return "a first operand that is not transposed";
  if (const char* wrong = check_shapes(c)) return wrong;
  return last_dim(c.in[0]) <= num::kExact16LongestRow ? nullptr : "rows of at most 2^22 elements";
}

// v must have one value per column and group: [N, groups] with trans_b, else [groups, N], or [N]
// for one group.
static bool per_group(const View& v, int64_t n, int64_t groups, bool trans_b) {
  if (v.rank < 2) return v.elements() == 1 || (groups == 1 && v.dim[0] == n);
  return v.rank == 2 && v.dim[trans_b ? 0 : 1] == n && v.dim[trans_b ? 1 : 0] == groups;
}

static const char* check_nbits(const Call& c) {
  if (!has_operands(c, 3, 1) && !has_operands(c, 4, 1)) return "three or four operands and one result";
  const View &a = c.in[0], &b = c.in[1], &scales = c.in[2], &out = c.out[0];
  const MatmulNbitsAttributes attrs(c);
  const int64_t bits = attrs.bits, block = attrs.block, zero = attrs.zero;
  const bool trans_b = attrs.trans_b != 0;
  if (bits != 4 && bits != 8) return "4 or 8 bits";
  if (block < 0 || block % 16) return "a block that is a multiple of 16";
  if (!is_f32(a) || !is_f32(out) || !is_weight(scales)) return "f32; scales of f32, bf16 or f16";
  if (b.dtype != DType::u8 && (b.dtype != DType::i8 || bits == 4))
    return "integers of u8, or of i8 where they have 8 bits";
  if (zero < (b.dtype == DType::i8 ? -128 : 0) || zero > (bits == 4 ? 15 : b.dtype == DType::i8 ? 127 : 255))
    return "a zero point within the integers' range";
  if (bits == 4 && (block == 0 || !trans_b)) return "blocks and trans_b = 1 for 4 bits";
  if (a.rank < 1 || a.rank != out.rank || !same_leading(a, out, a.rank - 1))
    return "a [..., K] and a result [..., N]";
  const int64_t k = last_dim(a), n = last_dim(out), groups = block == 0 ? 1 : k / block + (k % block != 0);
  // Bytes of a group of one column.
  const int64_t bytes = bits == 4 ? block / 2 : block;
  const bool whole = bits == 8 && b.rank == 2 && b.dim[trans_b ? 1 : 0] == k && b.dim[trans_b ? 0 : 1] == n;
  const bool padded =
      trans_b && block && b.dim[0] == n &&
      (b.rank == 3 ? b.dim[1] == groups && b.dim[2] == bytes
                   : b.rank == 2 && bits == 4 && b.dim[1] / bytes == groups && b.dim[1] % bytes == 0);
  if (!whole && !padded)
    return "b of 8 bits [K, N] or [N, K], or [N, blocks, block]; of 4 bits [N, blocks, block / 2] or [N, "
           "blocks * block / 2]";
  if (!per_group(scales, n, groups, trans_b)) return "a scale for each column and block, or one for all";
  if (c.in.size() < 4) return nullptr;
  const View& z = c.in[3];
  if (z.dtype != b.dtype) return "zero points of b's type";
  if (bits == 4 ? z.rank != 2 || z.dim[0] != n || z.dim[1] != (groups + 1) / 2
                : !per_group(z, n, groups, trans_b))
    return "a zero point for each scale, of 4 bits [N, ceil(blocks / 2)]";
  return nullptr;
}

static bool batch_independent_nbits(const Call& c, uint64_t batched) {
  return batched == 1 && c.in[0].rank > 1;
}

static void run_nbits_exact16(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &b = call.in[1], &scales = call.in[2];
  const matmul::Nbits l = matmul::nbits(call);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t row = unit / l.n, j = unit % l.n;
    auto left = [&](int64_t k) { return value(call.in[0], row * l.k + k); };
    auto scale = [&](int64_t g) { return value(scales, matmul::scale_index(l, scales, j, g)); };
    const int32_t ea = num::reference::exact16_row_scale(l.k, left);
    const int32_t es = num::exact16_scale_of_scales(num::reference::exact16_row_scale(l.blocks, scale));
    const bool integers = ea != num::kExact16NoIntegers && es != num::kExact16NoIntegers;
    int64_t sum = 0;
    for (int64_t k = 0; integers && k < l.k; ++k) {
      const int64_t g = l.block ? k / l.block : 0;
      const int z = call.in.size() > 3 ? matmul::zero_point(l, call.in[3], j, g) : matmul::zero_point(l);
      sum += num::reference::exact16_integer(scale(g), es) * num::reference::exact16_integer(left(k), ea) *
             (matmul::integer(l, b, j, k) - z);
    }
    call.out[0].as<float>()[unit] = num::reference::exact16_result(sum, ea, es);
  }
}

static const char* check_nbits_exact16(const Call& c) {
  if (const char* wrong = check_nbits(c)) return wrong;
  return last_dim(c.in[0]) <= num::kExact16LongestRow ? nullptr : "rows of at most 2^22 elements";
}

// fixed_matmul.1: element i of the product of unit u.
static float unit_product(const Call& call, const matmul::UnitProducts& s, int64_t u, int64_t i) {
  const float* a = call.in[0].as<const float>() + u * s.length * s.rows + i / s.columns;
  const float* b = call.in[1].as<const float>() + u * s.length * s.columns + i % s.columns;
  return num::canonicalize(num::reference::contract(
      s.length, [&](int64_t t) { return a[t * s.rows]; }, [&](int64_t t) { return b[t * s.columns]; }));
}
static void run_fixed(const Call& call, int, int64_t begin, int64_t end, void*) {
  const matmul::UnitProducts s = matmul::unit_products(call);
  const int64_t n = s.rows * s.columns;
  for (int64_t i = begin; i < end; ++i) {
    uint64_t sum = 0;
    for (int64_t u = 0; u < s.units; ++u) {
      if (i < n)
        sum += static_cast<uint64_t>(num::reference::fixed_point(unit_product(call, s, u, i)));
      else
        sum += num::reference::fixed_magnitude(n, [&](int64_t j) { return unit_product(call, s, u, j); });
    }
    call.out[0].as<uint64_t>()[i] = sum;
  }
}

static const char* check_fixed(const Call& c) {
  if (!has_operands(c, 2, 1)) return "two operands and one result";
  const View &a = c.in[0], &b = c.in[1], &out = c.out[0];
  if (!is_f32(a) || !is_f32(b) || out.dtype != DType::i64) return "f32, and a result of i64";
  if (a.rank != 3 || b.rank != 3 || !same_leading(a, b, 2)) return "[units, T, M] and [units, T, N]";
  if (a.dim[0] >= int64_t{1} << 33) return "fewer than 2^33 units";
  return out.rank == 1 && out.dim[0] == a.dim[2] * b.dim[2] + 1 ? nullptr : "a result of M * N + 1 elements";
}
extern const OpContract contract_matmul;
extern const CpuKernel row_matmul_reference;
const OpContract contract_matmul = {.op = "matmul", .check = check, .batch_independent = batch_independent};
const CpuKernel row_matmul_reference = {.op = "matmul", .isa = "reference", .units = units, .run = run};
extern const OpContract contract_grouped_matmul;
extern const CpuKernel row_grouped_matmul_reference;
const OpContract contract_grouped_matmul = {.op = "grouped_matmul",
                                            .check = check_grouped,
                                            .find_out_of_bounds = find_out_of_bounds_grouped,
                                            .batch_independent = batch_independent_grouped};
const CpuKernel row_grouped_matmul_reference = {
    .op = "grouped_matmul", .isa = "reference", .units = row_units, .run = run_grouped};
extern const OpContract contract_matmul_integer;
extern const CpuKernel row_matmul_integer_reference;
const OpContract contract_matmul_integer = {
    .op = "matmul_integer", .check = check_integer, .batch_independent = batch_independent_integer};
const CpuKernel row_matmul_integer_reference = {
    .op = "matmul_integer", .isa = "reference", .units = row_units, .run = run_integer};
extern const OpContract contract_matmul_exact16;
extern const CpuKernel row_matmul_exact16_reference;
const OpContract contract_matmul_exact16 = {
    .op = "matmul_exact16", .check = check_exact16, .batch_independent = batch_independent};
const CpuKernel row_matmul_exact16_reference = {
    .op = "matmul_exact16", .isa = "reference", .units = units, .run = run_exact16};
extern const OpContract contract_matmul_nbits;
extern const CpuKernel row_matmul_nbits_reference;
const OpContract contract_matmul_nbits = {
    .op = "matmul_nbits", .check = check_nbits, .batch_independent = batch_independent_nbits};
const CpuKernel row_matmul_nbits_reference = {
    .op = "matmul_nbits", .isa = "reference", .units = row_units, .run = run_nbits};
extern const OpContract contract_grouped_matmul_exact16;
extern const CpuKernel row_grouped_matmul_exact16_reference;
const OpContract contract_grouped_matmul_exact16 = {.op = "grouped_matmul_exact16",
                                                    .check = check_grouped_exact16,
                                                    .find_out_of_bounds = find_out_of_bounds_grouped,
                                                    .batch_independent = batch_independent_grouped};
const CpuKernel row_grouped_matmul_exact16_reference = {
    .op = "grouped_matmul_exact16", .isa = "reference", .units = row_units, .run = run_grouped_exact16};
extern const OpContract contract_matmul_nbits_exact16;
extern const CpuKernel row_matmul_nbits_exact16_reference;
const OpContract contract_matmul_nbits_exact16 = {
    .op = "matmul_nbits_exact16", .check = check_nbits_exact16, .batch_independent = batch_independent_nbits};
const CpuKernel row_matmul_nbits_exact16_reference = {
    .op = "matmul_nbits_exact16", .isa = "reference", .units = units, .run = run_nbits_exact16};
extern const OpContract contract_fixed_matmul;
extern const CpuKernel row_fixed_matmul_reference;
const OpContract contract_fixed_matmul = {.op = "fixed_matmul", .check = check_fixed};
const CpuKernel row_fixed_matmul_reference = {
    .op = "fixed_matmul", .isa = "reference", .units = units, .run = run_fixed};

}  // namespace invar::ops
