// CPU linear attention. Rows of a chunk that come together are one matrix: the keys and queries of
// a position are rows next to each other, so that the state, the keys and the updates of the chunk
// are read once for both. Columns of values are vectors. The sums over earlier rows are products of
// tiles of rows where all rows of a tile see an update, and go row by row within a tile.
#include "kernels/cpu/gemm_microkernel.h"
#include "kernels/cpu/gemm_packing.h"
#include "num/contract/lanes.h"
#include "num/exp/exp.h"
#include "ops/linear_attention/linear_attention.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

using linear_attention::Geometry;
using linear_attention::HeadState;
using linear_attention::kChunkRows;
using linear_attention::Scratch;

// A row-major matrix as the B operand of a tile.
using Matrix = PanelsOfB<F32, 8>;
constexpr int kChunkVectors = kChunkRows / kW < 8 ? kChunkRows / kW : 8;

// Calls f(TileRows<vectors>{}, c) over the columns of a row of values, for tiles of MR rows: wide
// tiles first, since a sum of one vector waits for itself.
template <int MR, int kVectors = tile_vectors(MR, 8), class Fn>
INVAR_INLINE void for_each_column_tile(int64_t columns, Fn f, int64_t c = 0) {
  constexpr int kNarrow = tile_vectors(MR, linear_attention::kColumns / kW);
  for (; c + kVectors * kW <= columns; c += kVectors * kW) f(TileRows<kVectors>{}, c);
  if constexpr (kNarrow < kVectors) for_each_column_tile<MR, kVectors / 2>(columns, f, c);
}
// Calls f(TileRows<MR>{}, row) over rows in tiles.
template <class Fn>
INVAR_INLINE void for_each_row_tile(int64_t rows, Fn f) {
  for (int64_t row = 0; row < rows; row += kMaxRows)
    dispatch_tile_rows(static_cast<int>(num::min_i64(rows - row, kMaxRows)), [&](auto mr) { f(mr, row); });
}

// binary64 numbers that lie side by side.
INVAR_INLINE D load_d(const double* p) {
  if constexpr (kW == 1) return set1_d(*p);
  return from_bits(load_l(reinterpret_cast<const int64_t*>(p)));
}
// linear_attention.3; decays seldom grow. A NaN is some NaN: every product with it is stored.
INVAR_INTERNAL F stored_growth(F x) {
  return canonicalize(num::INVAR_ISA_NS::exp(x));
}
INVAR_INLINE F stored_exp(F x) {
  return any(lt(zero(), x)) ? stored_growth(x) : exp_stored(x);
}

// Rows [t, t + n) of a chunk of one head.
struct Rows {
  const Geometry& g;
  HeadState m;
  Scratch at;
  float* scratch;
  int64_t t, n;
  // These point to the first row; strides are those of the operands.
  const float *q, *k, *v, *decay, *beta;
  float* y;

  INVAR_INLINE bool per_channel(const Rows& p) { return p.g.decays > 1; }
  INVAR_INLINE int64_t streams(const Rows& p) { return p.beta ? 2 : 1; }  // rows of x: k and q, or q
  INVAR_INLINE float* x(const Rows& p, int64_t row) { return p.scratch + p.at.x + row * p.at.x_row; }
  INVAR_INLINE float* h(const Rows& p, int64_t row) { return p.scratch + p.at.h + row * p.g.dv_padded; }
  INVAR_INLINE float* w(const Rows& p, int64_t row) {
    return p.scratch + p.at.weights + row * p.at.weight_row;
  }
  INVAR_INLINE const float* k_row(const Rows& p, int64_t r) { return p.k + r * p.g.key_heads * p.g.d; }
  INVAR_INLINE const float* q_row(const Rows& p, int64_t r) { return p.q + r * p.g.key_heads * p.g.d; }
};

// d(t, i) for the rows i of a vector (linear_attention.3); rows after t count as t.
INVAR_INLINE F decay_since(const double* logs, int64_t t, int64_t i, const float* index) {
  const F x = to_float(sub(set1_d(logs[t]), load_d(logs + i)));
  return stored_exp(select(lt(set1(static_cast<float>(t)), load(index + i)), zero(), x));
}

// Keys and decays of the rows join the chunk.
void append_rows(const Rows& p) {
  const int64_t ld = p.g.key_heads * p.g.d;
  if (p.n >= kW && p.t + (p.n + kW - 1) / kW * kW <= kChunkRows)
    pack_transposed<PackWidened<F32>>(p.k, ld, p.g.d, p.n, p.m.keys + p.t, kChunkRows);
  else
    for (int64_t r = 0; r < p.n; ++r)
      for (int64_t j = 0; j < p.g.d; ++j) p.m.keys[j * kChunkRows + p.t + r] = p.k[r * ld + j];
  for (int64_t r = 0; r < p.n; ++r) {
    const float* const g = p.decay + r * p.g.value_heads * p.g.decays;
    for (int64_t j = 0; j < p.g.decays; ++j) {
      double* const log = p.m.decay + j * kChunkRows + p.t + r;
      *log = (p.t + r ? log[-1] : 0.0) + static_cast<double>(g[j]);
    }
  }
}

// Rows of x as the state is contracted with them, and A_t of the rows where it is one number.
void load_rows(const Rows& p, float* a) {
  const int64_t streams = p.streams(p), d = p.g.d;
  if (!p.per_channel(p))
    for (int64_t r = 0; r < p.n; ++r) a[r] = static_cast<float>(p.m.decay[p.t + r]);
  for (int64_t r = 0; r < p.n; ++r) {
    const float *const q = p.q_row(p, r), *const k = p.k_row(p, r);
    float *const x_q = p.x(p, r * streams + streams - 1), *const x_k = p.x(p, r * streams);
    if (!p.per_channel(p)) {
      for (int64_t j = 0; j < d; ++j) x_q[j] = q[j];
      for (int64_t j = 0; j < d && streams > 1; ++j) x_k[j] = k[j];
      continue;
    }
    for (int64_t j = 0; j < d; ++j) a[j] = static_cast<float>(p.m.decay[j * kChunkRows + p.t + r]);
    strip_exact(
        a, d, [&](int64_t j, int lanes) __attribute__((always_inline)) {
          return stored_exp(load_part(a + j, lanes));
        });
    strip(
        x_q, d, [&](int64_t j, int lanes) __attribute__((always_inline)) {
          return mul(load_part(a + j, lanes), load_part(q + j, lanes));
        });
    if (streams > 1)
      strip(
          x_k, d, [&](int64_t j, int lanes) __attribute__((always_inline)) {
            return mul(load_part(a + j, lanes), load_part(k + j, lanes));
          });
  }
  if (!p.per_channel(p))
    strip_exact(
        a, p.n, [&](int64_t r, int lanes) __attribute__((always_inline)) {
          return stored_exp(load_part(a + r, lanes));
        });
}

// A tile of contractions of rows with columns of b, each vector to put(row, vector, y).
template <int MR, int NV, class Put>
INVAR_INLINE void contract_tile(const float* rows, int64_t ld, const Matrix& b, int64_t k, Put put) {
  F y[MR * NV];
  num::INVAR_ISA_NS::contract(
      k,
      [&](int64_t from, int64_t to, F(&c)[MR * NV])
          __attribute__((always_inline)) { microkernel<MR, NV>(rows, ld, b, from, to, c); },
      y);
#pragma GCC unroll 32
  for (int i = 0; i < MR * NV; ++i) put(i / NV, i % NV, y[i]);
}

// h of linear_attention.4.
void from_state(const Rows& p, const float* a) {
  const int64_t streams = p.streams(p), columns = p.g.dv_padded;
  for_each_row_tile(p.n * streams, [&](auto mr, int64_t row) {
    constexpr int MR = decltype(mr)::value;
    for_each_column_tile<MR>(columns, [&](auto nv, int64_t c) {
      contract_tile<MR, decltype(nv)::value>(
          p.x(p, row), p.at.x_row, Matrix{p.m.s + c, columns, 0},
          p.g.d, [&](int i, int v, F y) __attribute__((always_inline)) {
            if (!p.per_channel(p)) y = mul(set1(a[(row + i) / streams]), y);
            store(p.h(p, row + i) + c + v * kW, y);
          });
    });
  });
}

// w of linear_attention.4 with a decay of the head: products of rows and keys, then decays.
void weights_of_head(const Rows& p, const float* index) {
  const int64_t streams = p.streams(p);
  for_each_row_tile(p.n * streams, [&](auto mr, int64_t row) {
    constexpr int MR = decltype(mr)::value, NV = tile_vectors(MR, kChunkVectors);
    const int64_t last = p.t + (row + MR - 1) / streams;
    for (int64_t i = 0; i <= last; i += NV * kW)
      contract_tile<MR, NV>(
          p.x(p, row), p.at.x_row, Matrix{p.m.keys + i, kChunkRows, 0},
          p.g.d, [&](int j, int v, F y) __attribute__((always_inline)) {
            store(p.w(p, row + j) + i + v * kW, y);
          });
  });
  for (int64_t r = 0; r < p.n; ++r)
    for (int64_t i = 0; i <= p.t + r; i += kW) {
      const F d = decay_since(p.m.decay, p.t + r, i, index);
      for (int64_t s = 0; s < streams; ++s) {
        float* const w = p.w(p, r * streams + s) + i;
        store_canonical(w, mul(load(w), d));
      }
    }
}

// The same with decays of channels, for N vectors of rows i.
template <int N, bool kBoth>
INVAR_INLINE void weights_of_channels(const Rows& p, int64_t r, int64_t i, const float* index) {
  const float *const q = p.q_row(p, r), *const k = p.k_row(p, r);
  constexpr int kStreams = kBoth ? 2 : 1;
  F y[N * kStreams];
  num::INVAR_ISA_NS::contract(
      p.g.d,
      [&](int64_t from, int64_t to, F(&c)[N * kStreams]) __attribute__((always_inline)) {
        for (F& sum : c) sum = zero();
        for (int64_t j = from; j < to; ++j)
#pragma GCC unroll 4
          for (int v = 0; v < N; ++v) {
            const F d = decay_since(p.m.decay + j * kChunkRows, p.t + r, i + v * kW, index);
            const F m = canonicalize(mul(load(p.m.keys + j * kChunkRows + i + v * kW), d));
            if constexpr (kBoth) c[v * 2] = fma(m, set1(k[j]), c[v * 2]);               // contraction.2
            c[(v + 1) * kStreams - 1] = fma(m, set1(q[j]), c[(v + 1) * kStreams - 1]);  // contraction.2
          }
      },
      y);
  for (int s = 0; s < N * kStreams; ++s)
    store_canonical(p.w(p, r * kStreams + s % kStreams) + i + s / kStreams * kW, y[s]);
}
template <bool kBoth>
void weights_of_channels(const Rows& p, const float* index) {
  for (int64_t r = 0; r < p.n; ++r) {
    int64_t i = 0;
    for (; i + kW <= p.t + r; i += 2 * kW) weights_of_channels<2, kBoth>(p, r, i, index);
    for (; i <= p.t + r; i += kW) weights_of_channels<1, kBoth>(p, r, i, index);
  }
}

// h of MR rows of x from `row` on, with the updates of rows before `end` (linear_attention.5).
template <int MR>
void add_updates(const Rows& p, int64_t row, int64_t end) {
  const int64_t columns = p.g.dv_padded;
  for_each_column_tile<MR>(columns, [&](auto nv, int64_t c) {
    constexpr int NV = decltype(nv)::value;
    F sum[MR * NV];
#pragma GCC unroll 32
    for (int i = 0; i < MR * NV; ++i) sum[i] = load(p.h(p, row + i / NV) + c + i % NV * kW);
    microkernel_accumulate<MR, NV>(p.w(p, row), p.at.weight_row, Matrix{p.m.u + c, columns, 0}, 0, end, sum);
#pragma GCC unroll 32
    for (int i = 0; i < MR * NV; ++i) store(p.h(p, row + i / NV) + c + i % NV * kW, sum[i]);
  });
}

// The sum of a row of x with the updates of rows [begin, end), by columns to put(column, sum).
template <class Put>
INVAR_INLINE void finish_sum(const Rows& p, int64_t row, int64_t begin, int64_t end, Put put) {
  const int64_t columns = p.g.dv_padded;
  for_each_column_tile<1>(
      columns, [&](auto nv, int64_t c) __attribute__((always_inline)) {
        constexpr int NV = decltype(nv)::value;
        F sum[NV];
        for (int v = 0; v < NV; ++v) sum[v] = load(p.h(p, row) + c + v * kW);
        microkernel_accumulate<1, NV>(p.w(p, row), p.at.weight_row, Matrix{p.m.u + c, columns, 0}, begin, end,
                                      sum);
        for (int v = 0; v < NV; ++v) put(c + v * kW, sum[v]);
      });
}

// Updates and results of the rows: linear_attention.5 and linear_attention.6.
void substitute(const Rows& p) {
  const int64_t streams = p.streams(p), dv = p.g.dv, block = kMaxRows / streams, ld = p.g.value_heads * dv;
  for (int64_t first = 0; first < p.n; first += block) {
    const int64_t end = num::min_i64(first + block, p.n), begin = p.t + first;
    if (begin)
      dispatch_tile_rows(static_cast<int>((end - first) * streams),
                         [&](auto mr) { add_updates<decltype(mr)::value>(p, first * streams, begin); });
    for (int64_t r = first; r < end; ++r) {
      float* const u = p.m.u + (p.t + r) * p.g.dv_padded;
      const float* const v = p.v + r * ld;
      const auto value = [&](int64_t c) __attribute__((always_inline)) {
        const int lanes = valid_lanes(dv - c);
        return lanes ? load_part(v + c, lanes) : zero();
      };
      if (p.beta) {
        const F beta = set1(p.beta[r * p.g.value_heads]);
        finish_sum(
            p, r * streams, begin, p.t + r, [&](int64_t c, F sum) __attribute__((always_inline)) {
              store_canonical(u + c, mul(beta, sub(value(c), sum)));
            });
      } else {
        for (int64_t c = 0; c < p.g.dv_padded; c += kW) store(u + c, value(c));
      }
      finish_sum(
          p, (r + 1) * streams - 1, begin, p.t + r + 1, [&](int64_t c, F sum) __attribute__((always_inline)) {
            const int lanes = valid_lanes(dv - c);
            if (lanes) store_part(p.y + r * ld + c, canonicalize(mul(sum, set1(p.g.scale))), lanes);
          });
    }
  }
}

// linear_attention.7
void close_chunk(const Rows& p, const float* index, float* a) {
  constexpr int64_t kLast = kChunkRows - 1;
  const int64_t columns = p.g.dv_padded, ld = p.at.weight_row;
  float* const m = p.scratch + p.at.keys;
  alignas(64) float d[kChunkRows];
  for (int64_t j = 0; j < p.g.decays; ++j) a[j] = static_cast<float>(p.m.decay[j * kChunkRows + kLast]);
  strip_exact(
      a, p.g.decays, [&](int64_t j, int lanes) __attribute__((always_inline)) {
        return stored_exp(load_part(a + j, lanes));
      });
  for (int64_t j = 0; j < p.g.d; ++j) {
    const double* const logs = p.m.decay + (p.per_channel(p) ? j : 0) * kChunkRows;
    for (int64_t i = 0; (j == 0 || p.per_channel(p)) && i < kChunkRows; i += kW)
      store(d + i, decay_since(logs, kLast, i, index));
    for (int64_t i = 0; i < kChunkRows; i += kW)
      store_canonical(m + j * ld + i, mul(load(p.m.keys + j * kChunkRows + i), load(d + i)));
  }
  for_each_row_tile(p.g.d, [&](auto mr, int64_t j) {
    constexpr int MR = decltype(mr)::value;
    for_each_column_tile<MR>(columns, [&](auto nv, int64_t c) {
      constexpr int NV = decltype(nv)::value;
      float* const s = p.m.s + j * columns + c;
      F sum[MR * NV];
#pragma GCC unroll 32
      for (int i = 0; i < MR * NV; ++i)
        sum[i] = mul(set1(a[p.per_channel(p) ? j + i / NV : 0]), load(s + i / NV * columns + i % NV * kW));
      microkernel_accumulate<MR, NV>(m + j * ld, ld, Matrix{p.m.u + c, columns, 0}, 0, p.t + p.n, sum);
#pragma GCC unroll 32
      for (int i = 0; i < MR * NV; ++i) store_canonical(s + i / NV * columns + i % NV * kW, sum[i]);
    });
  });
}

void run_rows(const Rows& p, const float* index) {
  float* const a = p.scratch + p.at.decay;
  append_rows(p);
  load_rows(p, a);
  from_state(p, a);
  if (!p.per_channel(p))
    weights_of_head(p, index);
  else if (p.beta)
    weights_of_channels<true>(p, index);
  else
    weights_of_channels<false>(p, index);
  substitute(p);
  if (p.t + p.n == kChunkRows) close_chunk(p, index, a);
}

void run_linear_attention(const Call& call, int, int64_t begin, int64_t end, void* scratch) {
  const Geometry g = linear_attention::geometry(call);
  alignas(64) float index[kChunkRows];
  for (int64_t i = 0; i < kChunkRows; ++i) index[i] = static_cast<float>(i);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t batch = unit / g.value_heads, head = unit % g.value_heads, key = head / g.group;
    const HeadState m = linear_attention::head_state(g, call, batch, head);
    int64_t past = call.sequences[batch].past;
    if (past == 0)
      for (int64_t i = 0; i < g.d * g.dv_padded; i += kW) store(m.s + i, zero());
    for (int64_t i = 0, n; i < g.seq; i += n, past += n) {
      const int64_t t = past % kChunkRows, row = batch * g.seq + i;
      n = num::min_i64(kChunkRows - t, g.seq - i);
      run_rows({g, m, linear_attention::scratch_of(g), static_cast<float*>(scratch), t, n,
                call.in[0].as<const float>() + (row * g.key_heads + key) * g.d,
                call.in[1].as<const float>() + (row * g.key_heads + key) * g.d,
                call.in[2].as<const float>() + (row * g.value_heads + head) * g.dv,
                call.in[3].as<const float>() + (row * g.value_heads + head) * g.decays,
                g.beta ? g.beta->as<const float>() + row * g.value_heads + head : nullptr,
                call.out[0].as<float>() + (row * g.value_heads + head) * g.dv},
               index);
    }
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_LINEAR_ATTENTION_ROW(name)                                                  \
  extern const CpuKernel INVAR_ROW_OF(name);                                              \
  const CpuKernel INVAR_ROW_OF(name) = {.op = #name,                                      \
                                        .isa = INVAR_ISA,                                 \
                                        .units = linear_attention::units,                 \
                                        .run = INVAR_ISA_NS::run_linear_attention,        \
                                        .scratch_bytes = linear_attention::scratch_bytes, \
                                        .state_bytes = linear_attention::state_bytes};
INVAR_LINEAR_ATTENTION_ROW(gated_delta_rule)
INVAR_LINEAR_ATTENTION_ROW(gated_linear_attention)
#undef INVAR_LINEAR_ATTENTION_ROW

}  // namespace invar::ops
