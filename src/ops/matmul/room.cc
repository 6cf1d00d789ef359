// Shapes, work partition and the 4- and 8-bit layout of matmul.
#include <algorithm>
#include <bit>

#include "kernels/blocks/block_readers.h"
#include "num/contract/schedule.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/nbits.h"
#include "ops/matmul/tiles.h"
#include "weights/packed_rows.h"
#include "weights/tiles/code_tiles.h"

namespace invar::ops::matmul {

namespace {

// Blocks of a format are read where each row of them is a column of B.
bool rows_are_columns(const View& b, int i, const Attributes& attrs) {
  const bool turned = b.packed && b.as<const weights::PackedRows>()->turned;
  return i == 1 && b.rank >= 2 && b.dtype != DType::f64 && (MatmulAttributes(attrs).trans_b != 0) != turned;
}
const RegisteredBlockReader columns_of_b("matmul", rows_are_columns);
const RegisteredBlockReader columns_of_matrices("grouped_matmul",
                                                [](const View& b, int i, const Attributes& attrs) {
                                                  return i >= kFirstMatrix && rows_are_columns(b, 1, attrs);
                                                });

}  // namespace

bool is_columns_in_tiles(const View& b, int i, const Attributes& attrs) {
  if (i != 1 || !b.packed || b.rank != 2 || MatmulExact16Attributes(attrs).trans_b == 0) return false;
  const auto& rows = *b.as<const weights::PackedRows>();
  return !rows.turned && weights::CodeTiles::covers(rows);
}

static int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

Shape shape(const View& a, const View& b, const View& out, bool trans_a, bool trans_b) {
  Shape s{};
  s.trans_a = trans_a, s.trans_b = trans_b;
  s.k = a.dim[a.rank - (trans_a ? 2 : 1)];
  s.m = a.rank < 2 ? 1 : a.dim[a.rank - (trans_a ? 1 : 2)];
  s.n = b.dim[b.rank - (trans_b ? 2 : 1)];
  s.batches = s.matrices_b = 1;
  for (int i = 0; i + 2 < b.rank; ++i) s.matrices_b *= b.dim[i];
  if (s.matrices_b == 1 && !trans_a && out.rank == a.rank) {  // leading dimensions of A are rows
    s.m = row_count(a);
    return s;
  }
  s.rank = out.rank - 2;
  for (int i = 0; i < s.rank; ++i) s.batches *= s.dim[i] = out.dim[i];
  auto strides = [&](const View& v, int64_t matrix, int64_t* stride) {
    for (int i = s.rank - 1; i >= 0; --i) {
      int j = i - (out.rank - v.rank);
      stride[i] = j < 0 || v.dim[j] == 1 ? 0 : matrix;
      if (j >= 0) matrix *= v.dim[j];
    }
  };
  strides(a, s.m * s.k, s.stride_a);
  strides(b, s.k * s.n, s.stride_b);
  return s;
}

// Sizes are tuning (matmul.3); measured on products of 64 ... 4096 rows and columns with L2 caches
// of 512 KiB.
WorkPartition partition(const Shape& s, int panel, int tallest, int (*wide)(int rows)) {
  // Rows of a block: its part of A, 256 deep, fits the L2 cache. For a short K the results dominate
  // the traffic: fewer rows, more columns.
  constexpr int64_t kShort = 32;
  const int64_t most_rows = s.k > kShort ? 192 : 48;
  constexpr int64_t kL1Floats = 6144;  // elements of B panels that stay in the L1 cache beside rows of A
  constexpr int64_t kCopied = int64_t{80} << 10;  // elements of a block of A that may stay in the L2 cache
  constexpr int64_t kUnits = 64;                  // enough for load balance
  WorkPartition c{};
  int64_t blocks = num::contraction_blocks(s.k);
  c.panels = ceil_div(s.n, panel);
  c.row_blocks = s.m == 0 ? 0 : ceil_div(s.m, most_rows);
  c.rows = s.m == 0 ? 0 : ceil_div(ceil_div(s.m, c.row_blocks), tallest) * tallest;
  if (c.rows) c.row_blocks = ceil_div(s.m, c.rows);
  if (c.rows > s.m) c.rows = s.m;
  c.copies_a = s.trans_a || (c.rows > 2 * tallest && blocks > 1);
  int64_t tiles = ceil_div(c.rows, tallest);
  c.tile_panels = tiles ? wide(static_cast<int>(c.rows / tiles)) : 1;
  c.chains = blocks * c.rows * num::kChain <= kCopied ? blocks : 1;
  if (c.chains < 1) c.chains = 1;
  int64_t most = c.chains < blocks || s.k <= kShort ? 32 : 8;  // panels that reuse one packed A
  c.run = std::clamp<int64_t>(c.panels * c.row_blocks * s.batches / kUnits, 1, most);
  c.sum_panels = c.chains < blocks ? std::max<int64_t>(c.run, 16) : 1;
  if (s.k > 0 && blocks == 1) {  // one K block: a tile's rows meet as many panels as stay there
    const int64_t l1_panels = std::min(c.run, kL1Floats / (s.k * panel)), group = wide(1);
    // Whole groups of packed panels, or a divisor of a group: no tile spans two groups
    // (packed_b.h).
    if (l1_panels > 0)
      c.tile_panels =
          std::max(c.tile_panels, l1_panels < group
                                      ? static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(l1_panels)))
                                      : l1_panels / group * group);
  }
  c.run = ceil_div(c.run, c.tile_panels) * c.tile_panels;
  c.runs = ceil_div(c.panels, c.run);
  c.sum_panels = ceil_div(c.sum_panels, c.run) * c.run;
  return c;
}

Shape shape(const Call& c) {
  const MatmulAttributes a(c);
  return shape(c.in[0], c.in[1], c.out[0], a.trans_a != 0, a.trans_b != 0);
}

GroupedShape grouped_shape(const Call& c) {
  const View &a = c.in[0], &b = c.in[kFirstMatrix];
  GroupedShape s{};
  s.trans_b = GroupedMatmulAttributes(c).trans_b != 0, s.stacked = b.rank == 3;
  s.groups = s.stacked ? b.dim[0] : static_cast<int64_t>(c.in.size()) - kFirstMatrix;
  s.k = last_dim(a), s.n = last_dim(c.out[0]), s.rows = row_count(c.out[0]);
  s.share = a.dim[a.rank - 2] == 1 ? c.out[0].dim[a.rank - 2] : 1;
  return s;
}

Nbits nbits(const View& b, const Attributes& attrs) {
  Nbits l{};
  const MatmulNbitsAttributes a(attrs);
  l.bits = a.bits, l.block = a.block, l.trans_b = a.trans_b != 0, l.zero = a.zero;
  l.is_signed = b.dtype == DType::i8;
  l.n = b.dim[l.trans_b ? 0 : 1];
  l.column = l.trans_b && l.n > 0 ? b.elements() / l.n : 0;
  l.k = l.trans_b ? l.column * (l.bits == 4 ? 2 : 1) : b.dim[0];
  return l;
}

Nbits nbits(const Call& c) {
  Nbits l = nbits(c.in[1], *c.attrs);
  l.k = last_dim(c.in[0]);
  l.blocks = l.block == 0 ? 1 : ceil_div(l.k, l.block);
  return l;
}

int64_t scale_index(const Nbits& l, const View& scales, int64_t j, int64_t group) {
  return scale_index(l, scales.elements() == 1, j, group);
}
int zero_point(const Nbits& l, const View& zeros, int64_t j, int64_t group) {
  return zero_point(l, zeros.as<const uint8_t>(), zeros.elements() == 1, j, group);
}

int64_t zero_groups(const Nbits& l, const View& zeros) {
  return l.bits == 4 ? 2 * zeros.dim[1] : l.blocks;
}

Nbits nbits_of(const View& v, int operand, const Attributes& attrs) {
  Nbits l{};
  const MatmulNbitsAttributes a(attrs);
  l.bits = a.bits, l.trans_b = a.trans_b != 0;
  l.is_signed = v.dtype == DType::i8;
  l.n = v.dim[v.rank < 2 || l.trans_b ? 0 : 1];
  l.blocks = v.rank < 2 ? 1 : v.dim[l.trans_b ? 1 : 0];
  if (operand == 3 && l.bits == 4) l.blocks *= 2;
  return l;
}

size_t small_bytes(const View& v, int operand, const Attributes& attrs, int panel) {
  if (v.elements() == 1) return 0;
  const Nbits l = nbits_of(v, operand, attrs);
  return static_cast<size_t>(ceil_div(l.n, panel) * panel * l.blocks) * size_of(v.dtype);
}

void pack_small(const View& v, int operand, const Attributes& attrs, int panel, void* packed) {
  const Nbits l = nbits_of(v, operand, attrs);
  auto copy = [&](auto* to, auto get) {
    for (int64_t first = 0; first < l.n; first += panel)
      for (int64_t group = 0; group < l.blocks; ++group)
        for (int64_t j = first; j < first + panel; ++j) *to++ = j < l.n ? get(j, group) : 0;
  };
  auto as_it_is = [&]<class T>(T* to) {
    copy(to, [&](int64_t j, int64_t group) { return v.as<const T>()[scale_index(l, v, j, group)]; });
  };
  if (operand == 3)
    copy(static_cast<uint8_t*>(packed),
         [&](int64_t j, int64_t group) { return static_cast<uint8_t>(zero_point(l, v, j, group)); });
  else if (size_of(v.dtype) == 2)
    as_it_is(static_cast<uint16_t*>(packed));
  else
    as_it_is(static_cast<float*>(packed));
}

UnitProducts unit_products(const Call& call) {
  const View &a = call.in[0], &b = call.in[1];
  return {a.dim[0], a.dim[1], a.dim[2], b.dim[2]};
}

const Attributes& transposed_a() {
  static const Attributes attributes{{"trans_a", int64_t{1}}};
  return attributes;
}

ProductViews product_views(const Call& call, int64_t first, int64_t units, float* out) {
  const UnitProducts s = unit_products(call);
  ProductViews p{{call.in[0], call.in[1]}, {}};
  for (View& v : p.in) {
    v.data = v.as<float>() + first * v.dim[1] * v.dim[2];
    v.dim[0] = units;
  }
  p.out.data = out, p.out.rank = 3;
  p.out.dim[0] = units, p.out.dim[1] = s.rows, p.out.dim[2] = s.columns;
  return p;
}

}  // namespace invar::ops::matmul
