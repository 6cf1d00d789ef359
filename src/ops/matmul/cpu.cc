// Tiles of rows x columns held in registers over one chain of k; between chains the sums of a block of outputs lie in
// scratch (join_block). The chains of a panel, 256 x kPanel, stay in the first cache for all rows of the block. b is read
// where it lies if it was packed at load, else copied chain by chain. Free by matmul.3.
#include "ops/matmul/matmul.h"
#include "ops/matmul/pack.h"
#include "ops/tiles.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

using matmul::Cut;
using matmul::Shape;

constexpr int kWidenRows = 4 * kMaxRows;  // from here on a packed chain is widened once, not by every tile

int wide(int rows) {  // panels of a tile
  int v = tile_vectors(rows, 8);
  return v > kPer ? v / kPer : 1;
}

Shape shape(const Call& c) {
  return matmul::shape(c.in[0], c.in[1], c.out[0], attr_i(c, "trans_a", 0) != 0,
                       attr_i(c, "trans_b", 0) != 0);
}
Cut cut(const Shape& s) {
  return matmul::cut(s, kPanel, kMaxRows, wide);
}

int64_t units(const Call& c, int) {
  Shape s = shape(c);
  return s.batches * cut(s).units();
}

// Scratch: rows of a, a chain of b, and the sums between chains.
struct Work {
  float *a, *b, *sums;
  int64_t level;  // floats of one of the kept sums
};
Work work(const Cut& c, void* scratch) {
  int64_t kept = c.chains * kRow;
  Work w;
  w.a = static_cast<float*>(scratch);
  w.b = w.a + (c.copies_a ? (c.rows * kept + 15) / 16 * 16 : 0);
  w.sums = w.b + c.together * kPanel * kChain;
  w.level = c.run * c.rows * kPanel;
  return w;
}
size_t scratch_bytes(const Call& call) {
  Cut c = cut(shape(call));
  Work w = work(c, nullptr);
  return static_cast<size_t>(w.sums - static_cast<float*>(nullptr) + num::kSumsKept * w.level) *
         sizeof(float);
}

struct Unit {
  const float* a;
  int64_t lda, a_matrix;  // of a as it lies
  float* out;
  int64_t rows, first, panels;
};

template <class W>
void product(const Shape& s, const Cut& c, const View& b, const typename W::T* matrix, const Unit& u,
             const Work& w, bool a_is_there) {
  using P = Packed<W>;
  const int64_t blocks = num::contraction_blocks(s.k);
  const bool widens = b.packed && size_of(b.dtype) != 4 && u.rows >= kWidenRows;
  // Few rows read a row-major b in place.
  const bool direct = !b.packed && !s.trans_b && size_of(b.dtype) == 4 && u.rows <= 2 * kMaxRows;
  for (int64_t from = 0; from < blocks; from += c.chains) {
    const int64_t to = num::min_i64(from + c.chains, blocks);
    for (int64_t kb = from; c.copies_a && !a_is_there && kb < to; ++kb) {
      num::Range r = num::block_range(kb, s.k);
      float* copy = w.a + (kb - from) * c.rows * kRow;
      if (s.trans_a)
        copy_turned<Widen<F32>>(u.a + r.begin * u.lda, u.lda, u.rows, r.end - r.begin, copy, kRow);
      else
        copy_rows<Widen<F32>>(u.a + r.begin, u.lda, u.rows, r.end - r.begin, copy, kRow);
    }
    for (int64_t panel = 0; panel < u.panels; panel += c.together) {
      const int64_t count = num::min_i64(c.together, u.panels - panel), column = (u.first + panel) * kPanel;
      for (int64_t kb = from; kb < to; ++kb) {
        const num::Range r = num::block_range(kb, s.k);
        const int64_t k = r.end - r.begin;
        const Place place{num::block_place(kb, s.k),
                          w.sums + (c.chains < blocks ? panel : 0) * c.rows * kPanel,
                          c.rows,
                          w.level,
                          u.out + column,
                          s.n,
                          s.n - column};
        // Next comes the next block of k of these panels, else the first of the next panels.
        const bool deeper = kb + 1 < to;
        const int64_t next_k = (deeper ? kb + 1 : from) * kChain;
        const int64_t next_panel = panel + (deeper ? 0 : c.together);
        Ahead next;
        if (next_panel < u.panels) {
          const int64_t j = (u.first + next_panel) * kPanel,
                        size = static_cast<int64_t>(sizeof(typename W::T));
          const int64_t depth = num::min_i64(kChain, s.k - next_k);
          if (b.packed)
            next = {reinterpret_cast<const char*>(matrix + j * s.k + next_k * kPanel), c.together,
                    depth * kPanel * size, kPanel * s.k * size};
          else if (s.trans_b)
            next = {reinterpret_cast<const char*>(matrix + j * s.k + next_k), c.together * kPanel,
                    depth * size, s.k * size};
          else
            next = {reinterpret_cast<const char*>(matrix + next_k * s.n + j), depth,
                    c.together * kPanel * size, s.n * size};
        }
        auto go = [&](auto columns) {
          using Format = typename decltype(columns)::Format;
          if (c.copies_a)
            down<Format, true>(w.a + (kb - from) * c.rows * kRow, kRow, columns, count, k, u.rows, place,
                               next);
          else
            down<Format, false>(u.a + r.begin, u.lda, columns, count, k, u.rows, place, next);
        };
        const typename W::T* packed = matrix + ((u.first + panel) * s.k + r.begin) * kPanel;
        if (b.packed && !widens) {
          go(Columns<typename P::Read, kPer>{packed, kPanel, s.k * kPanel});
        } else if (direct && column + count * kPanel <= s.n) {
          go(Columns<F32, kPer>{reinterpret_cast<const float*>(matrix) + r.begin * s.n + column, s.n,
                                kPanel});
        } else {
          for (int64_t p = 0; p < count; ++p) {
            float* chain = w.b + p * kPanel * kChain;
            const int64_t j = column + p * kPanel;
            if (widens)
              widen<typename P::Read>(packed + p * s.k * kPanel, k * kPanel, chain);
            else
              copy_panel<Widen<W>>(s.trans_b ? matrix + j * s.k + r.begin : matrix + r.begin * s.n + j,
                                   s.trans_b ? s.k : s.n, s.trans_b, k, num::min_i64(kPanel, s.n - j), chain);
          }
          go(Columns<F32, kPer>{w.b, kPanel, kPanel * kChain});
        }
      }
    }
  }
}

void run(const Call& call, int, int64_t begin, int64_t end, void* scratch) {
  const Shape s = shape(call);
  const Cut c = cut(s);
  const Work w = work(c, scratch);
  const View& b = call.in[1];
  int64_t copied = -1;  // the block of rows whose a is in scratch
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t row_block = unit / c.runs, batch = row_block / c.row_blocks,
                  row = row_block % c.row_blocks * c.rows;
    const matmul::Offsets at = matmul::offsets(s, batch);
    Unit u;
    u.lda = s.trans_a ? s.m : s.k;
    u.a = call.in[0].as<const float>() + at.a + (s.trans_a ? row : row * s.k);
    u.out = call.out[0].as<float>() + (batch * s.m + row) * s.n;
    u.rows = num::min_i64(c.rows, s.m - row);
    u.first = unit % c.runs * c.run;
    u.panels = num::min_i64(c.run, c.panels - u.first);
    if (s.k == 0) {  // matmul.4
      for (int64_t r = 0; r < u.rows; ++r)
        for (int64_t j = u.first * kPanel; j < num::min_i64(s.n, (u.first + u.panels) * kPanel); ++j)
          u.out[r * s.n + j] = 0;
      continue;
    }
    with_format(b.dtype, [&](auto format) {
      using W = decltype(format);
      const auto* matrix =
          b.as<const typename W::T>() + (b.packed ? at.b_matrix * c.panels * kPanel * s.k : at.b);
      product<W>(s, c, b, matrix, u, w, copied == row_block);
    });
    if (c.chains >= num::contraction_blocks(s.k)) copied = row_block;
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW;
const Kernel INVAR_ROW = {.op = "matmul",
                          .isa = INVAR_ISA,
                          .units = INVAR_ISA_NS::units,
                          .run = INVAR_ISA_NS::run,
                          .scratch_bytes = INVAR_ISA_NS::scratch_bytes,
                          .pack_bytes = INVAR_ISA_NS::pack_bytes,
                          .pack = INVAR_ISA_NS::pack};

}  // namespace invar::ops
