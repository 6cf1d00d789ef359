// grouped_matmul_exact16: rows are sorted by the matrices that they choose and rounded into tiles
// of one matrix each; a kernel for the device and the shape multiplies them. A matrix is held as
// matmul_exact16 holds its b, rounded once if it is constant.
#include "kernels/cuda/hopper.cuh"
#include "ops/matmul/cuda/exact16/grouped/hopper.h"
#include "ops/matmul/cuda/exact16/grouped/other_gpus.cuh"
#include "ops/matmul/cuda/exact16/grouped/select.h"
#include "ops/matmul/cuda/exact16/grouped/sorted_rows.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

using matmul::GroupedShape;
using Calls = std::span<const Call* const>;

struct MatrixShape {
  int64_t count, k, n;
  bool trans_b;
};
MatrixShape matrices(const View& b, const Attributes& attrs) {
  const bool trans = GroupedMatmulAttributes(attrs).trans_b != 0;
  return {b.rank == 3 ? b.dim[0] : 1, b.dim[b.rank - (trans ? 1 : 2)], b.dim[b.rank - (trans ? 2 : 1)],
          trans};
}
int64_t matrix_bytes(int64_t n, int64_t k) {
  return static_cast<int64_t>(planes_bytes(1, n, k, kBlockRows));
}
void enqueue_matrices(const View& b, const Attributes& attrs, void* memory, Stream stream) {
  const MatrixShape m = matrices(b, attrs);
  View one = b;
  one.rank = 2, one.dim[0] = b.dim[b.rank - 2], one.dim[1] = b.dim[b.rank - 1];
  const int64_t bytes = one.elements() * static_cast<int64_t>(size_of(b.dtype));
  for (int64_t g = 0; g < m.count; ++g) {
    one.data = b.as<char>() + g * bytes;
    enqueue_weights(one, m.trans_b, static_cast<char*>(memory) + g * matrix_bytes(m.n, m.k), stream);
  }
}

GroupedChoice choice(const GroupedShape& s) {
  return select_grouped(s.rows, s.groups, s.k, has_hopper(), has_mma(), variant());
}

// Whether products can be those of one kernel: they differ in N and their matrices alone.
bool is_joined(Calls calls) {
  const Call& one = *calls[0];
  const GroupedShape s = matmul::grouped_shape(one);
  const auto count = static_cast<int64_t>(calls.size());
  if (count > kMostGroupedProducts || count * s.groups > kMostMatrices || s.rows == 0 || s.k == 0)
    return false;
  return std::all_of(calls.begin(), calls.end(), [&](const Call* c) {
    const GroupedShape t = matmul::grouped_shape(*c);
    return c->in[0].data == one.in[0].data && c->in[1].data == one.in[1].data && t.n > 0 &&
           t.rows == s.rows && t.share == s.share && t.k == s.k && t.groups == s.groups &&
           t.stacked == s.stacked;
  });
}

size_t aligned_bytes(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}
int64_t most_tiles(const GroupedShape& s, int height) {
  return ceil_div(s.rows, height) + std::min(s.groups, s.rows);
}
int64_t unpacked_matrices(const Call& call) {
  int64_t count = 0;
  for (const View& b : call.in.subspan(kFirstMatrix))
    if (!b.packed) count += matrices(b, *call.attrs).count;
  return count;
}
// Takes parts of a call's shared memory; without memory, only counts.
struct SharedParts {
  char* at;
  template <class T>
  T* take(size_t count) {
    char* const p = at;
    at += aligned_bytes(count * sizeof(T));
    return reinterpret_cast<T*>(p);
  }
};
// What calls that are joined are given, and where the matrices that are not packed go.
GroupedExact grouped_product(Calls calls, const GroupedChoice& chosen, SharedParts& parts) {
  const Call& one = *calls[0];
  const GroupedShape s = matmul::grouped_shape(one);
  GroupedExact in{};
  in.rows = s.rows, in.share = s.share, in.groups = s.groups, in.k = s.k;
  in.index = one.in[1].as<const int64_t>(), in.fault = one.gpu.fault;
  in.products = static_cast<int>(calls.size()), in.chunks = static_cast<int>(ceil_div(s.k, kBlockK));
  for (int p = 0, columns = 0, pairs = 0; p < in.products; ++p) {
    const View& out = calls[static_cast<size_t>(p)]->out[0];
    checked(in.n, p) = last_dim(out), in.out[p] = out.as<float>();
    const auto own = static_cast<int>(ceil_div(in.n[p], kBlockRows));
    in.column_end[p] = columns += own, in.pair_end[p] = pairs += (own + 1) / 2;
  }
  const int64_t tiles = most_tiles(s, chosen.height), slots = tiles * chosen.height;
  in.matrices = parts.take<const uint8_t*>(static_cast<size_t>(matrices_listed(s)));
  if (!counts_fit_block(s)) {
    in.rows_of_matrix = parts.take<unsigned>(static_cast<size_t>(s.groups));
    in.first_tile = parts.take<int>(static_cast<size_t>(s.groups + 1));
  }
  in.work = parts.take<GroupedWork>(1);
  in.tiles = parts.take<GroupedTile>(static_cast<size_t>(tiles));
  in.row = parts.take<int32_t>(static_cast<size_t>(slots));
  in.slot = parts.take<int32_t>(static_cast<size_t>(s.rows));
  in.a =
      planes(parts.take<uint8_t>(planes_bytes(1, slots, s.k, chosen.height)), 1, slots, s.k, chosen.height);
  in.most_grid = multiprocessors();
  if (chosen.route == GroupedExactRoute::gemv) {
    const auto blocks = static_cast<size_t>(in.most_grid);
    in.counters = parts.take<uint32_t>(blocks);
    in.sums = parts.take<int64_t>(blocks * 2 * static_cast<size_t>(chosen.height / 2 * 128));
  }
  return in;
}

size_t shared_bytes_joined(Calls calls) {
  SharedParts parts{};
  const GroupedShape s = matmul::grouped_shape(*calls[0]);
  if (s.rows == 0 || s.n == 0 || s.k == 0) return 0;
  grouped_product(calls, choice(s), parts);
  for (const Call* c : calls) parts.at += unpacked_matrices(*c) * matrix_bytes(last_dim(c->out[0]), s.k);
  return static_cast<size_t>(parts.at - static_cast<char*>(nullptr));
}
size_t shared_bytes_grouped_exact16(const Call& call) {
  const Call* const one = &call;
  return shared_bytes_joined({&one, 1});
}
size_t shared_bytes_batch_grouped_exact16(Calls calls) {
  if (is_joined(calls)) return shared_bytes_joined(calls);
  size_t most = 0;
  for (const Call* c : calls) most = std::max(most, shared_bytes_grouped_exact16(*c));
  return most;
}

// Rounds the matrices that are not packed, to `own`; where all are.
MatrixTable table_of(Calls calls, const GroupedShape& s, char* own, Stream stream) {
  MatrixTable table = empty_table(s);
  for (const Call* call : calls) {
    const int64_t bytes = matrix_bytes(last_dim(call->out[0]), s.k);
    for (const View& b : call->in.subspan(kFirstMatrix)) {
      table.add(b.packed ? b.data : own, bytes);
      if (!b.packed)
        enqueue_matrices(b, *call->attrs, own, stream), own += matrices(b, *call->attrs).count * bytes;
    }
  }
  return table;
}

// Rows of no elements: 0, or NaN without a matrix.
void enqueue_empty(const Call& call, const GroupedShape& s, Stream stream) {
  auto* const out = call.out[0].as<float>();
  const auto* const index = call.in[1].as<const int64_t>();
  uint32_t* const fault = call.gpu.fault;
  launch_for_each(stream, s.rows * s.n, [=] __device__(int64_t i) {
    const bool none = matmul::matrix_index(index[i / s.n], s.groups) < 0;
    if (none) *fault = 1;
    out[i] = none ? __uint_as_float(0x7fc00000) : 0;
  });
}
void enqueue_joined(Calls calls, Stream stream) {
  const Call& one = *calls[0];
  const GroupedShape s = matmul::grouped_shape(one);
  if (s.rows == 0 || s.n == 0) return;
  if (s.k == 0) return enqueue_empty(one, s, stream);
  const GroupedChoice chosen = choice(s);
  SharedParts parts{static_cast<char*>(one.shared)};
  const GroupedExact in = grouped_product(calls, chosen, parts);
  enqueue_sorted(in, table_of(calls, s, parts.at, stream), one.in[0].as<const float>(), stream);
#ifdef INVAR_SM90A
  if (chosen.route == GroupedExactRoute::gemv) return enqueue_grouped_gemv_hopper(in, stream);
  if (chosen.route == GroupedExactRoute::gemm) return enqueue_grouped_gemm_hopper(in, stream);
#endif
  const int64_t items = most_tiles(s, chosen.height) * in.column_end[in.products - 1];
  if (chosen.route == GroupedExactRoute::mma) return enqueue_grouped_mma(in, items, stream);
  enqueue_grouped_plain(in, items, stream);
}
void enqueue_grouped_exact16(const Call& call, Stream stream) {
  const Call* const one = &call;
  enqueue_joined({&one, 1}, stream);
}
void enqueue_batch_grouped_exact16(Calls calls, Stream stream) {
  if (is_joined(calls)) return enqueue_joined(calls, stream);
  for (const Call* c : calls) enqueue_grouped_exact16(*c, stream);
}

size_t pack_bytes_grouped_exact16(const View& b, int i, const Attributes& attrs) {
  if (i < kFirstMatrix || b.elements() == 0) return 0;
  const MatrixShape m = matrices(b, attrs);
  return static_cast<size_t>(m.count * matrix_bytes(m.n, m.k));
}
void enqueue_pack_grouped_exact16(const View& b, int, const Attributes& attrs, void* packed, Stream stream) {
  enqueue_matrices(b, attrs, packed, stream);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(grouped_matmul_exact16);
const GpuKernel INVAR_ROW_OF(grouped_matmul_exact16) = {
    .op = "grouped_matmul_exact16",
    .isa = INVAR_ISA,
    .shared_bytes = INVAR_ISA_NS::shared_bytes_grouped_exact16,
    .pack_bytes = INVAR_ISA_NS::pack_bytes_grouped_exact16,
    .enqueue = INVAR_ISA_NS::enqueue_grouped_exact16,
    .enqueue_batch = INVAR_ISA_NS::enqueue_batch_grouped_exact16,
    .enqueue_pack = INVAR_ISA_NS::enqueue_pack_grouped_exact16,
    .shared_bytes_batch = INVAR_ISA_NS::shared_bytes_batch_grouped_exact16};

}  // namespace invar::ops
