// matmul_exact16: rows of a and columns of b are rounded to planes of bytes, b once if it is
// constant; then a kernel for the device and the shape multiplies. The sums are exact, so their
// order is free.
#include "kernels/blocks/block_readers.h"
#include "kernels/cuda/hopper.cuh"
#include "kernels/fusion/join_kernels.h"
#include "ops/matmul/cuda/exact16/coded/hopper.h"
#include "ops/matmul/cuda/exact16/coded/planes.cuh"
#include "ops/matmul/cuda/exact16/hopper.h"
#include "ops/matmul/cuda/exact16/mma.cuh"
#include "ops/matmul/cuda/exact16/plain.cuh"
#include "ops/matmul/cuda/exact16/quantize.cuh"
#include "ops/matmul/tiles.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

matmul::Shape shape_exact16(const Call& c) {
  return matmul::shape(c.in[0], c.in[1], c.out[0], false, MatmulExact16Attributes(c).trans_b != 0);
}
ExactKernels exact_kernels() {
  return {has_hopper(), has_mma(), multiprocessors()};
}

// Other GPUs than Hopper have numbers, rounded once when they are loaded.
const RegisteredBlockReader tiles_of_b(
    "matmul_exact16",
    [](const View& b, int i, const Attributes& attrs) {
      return has_hopper() && matmul::is_columns_in_tiles(b, i, attrs);
    },
    RegisteredBlockReader::On::gpu);
// Columns in codes are read by the kernel of few rows, and unpacked for others.
bool reads_codes(const Call& call) {
  const matmul::Shape s = shape_exact16(call);
  return is_coded(call.in[1]) && has_hopper() && s.m <= kCodedRows && s.k <= kBlocksToJoin * kBlockK &&
         variant() % kExactRoutes <= static_cast<int>(ExactRoute::gemv) &&
         gemv_work(s, multiprocessors()).units > 0;
}

// The number of the first calls that one kernel computes: products of the same rows with packed
// matrices.
size_t count_together(std::span<const Call* const> calls) {
  const Call& first = *calls[0];
  const matmul::Shape s = shape_exact16(first);
  const bool coded = is_coded(first.in[1]);
  if (coded && !reads_codes(first)) return 1;
  const auto fits = [&](const Call& call) {
    const matmul::Shape t = shape_exact16(call);
    if (is_coded(call.in[1]) != coded) return false;
    if (coded && form_of(tiles_of(call.in[1])) != form_of(tiles_of(first.in[1]))) return false;
    return call.in[0].data == first.in[0].data && call.in[1].packed && t.batches == 1 && t.m == s.m &&
           t.k == s.k && t.k > 0 && call.out[0].elements() > 0;
  };
  size_t count = 1;
  while (fits(first) && count < calls.size() && count < kMostTogether && fits(*calls[count])) ++count;
  return count;
}

// Where the shared memory of such calls has what: a's planes, right behind its scales the counters
// of the kernel of few rows, b's planes if it is not packed, the sums of few rows.
struct SharedExact {
  matmul::Shape all;  // n: of whole tiles of all products
  ExactRoute route;
  GemvWork gemv;
  int64_t matrices_a;
  int height;
  int64_t counters;
  size_t counters_at, b, sums, bytes;
  bool in_codes;  // the kernel reads them
};
GemvWork coded_work(const matmul::Shape& s, const weights::CodeTiles& tiles) {
  matmul::Shape block = s;
  if (block.m > kBlockRows) block.m = kBlockRows;
  GemvWork w = gemv_work(block, multiprocessors());
  w.row_blocks = static_cast<int>(ceil_div(s.m, int64_t{w.rows}));
  cut_evenly(w, ceil_div(s.n, kBlockRows) * w.row_blocks, multiprocessors());
  w.units_ahead = static_cast<int>(kBytesAhead / (int64_t{w.grid} * tiles.tile_bytes()));
  return w;
}
size_t aligned_bytes(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}
SharedExact shared_exact16(std::span<const Call* const> calls) {
  const Call& first = *calls[0];
  SharedExact p{};
  const ExactKernels has = exact_kernels();
  const matmul::Shape s = p.all = shape_exact16(first);
  for (size_t i = 1; i < calls.size(); ++i)
    p.all.n = ceil_div(p.all.n, kBlockRows) * kBlockRows + shape_exact16(*calls[i]).n;
  p.route = select_exact(p.all, has, variant());
  p.matrices_a = s.m ? row_count(first.in[0]) / s.m : 0;
  p.height = kBlockRows;
  p.in_codes = reads_codes(first);
  if (p.in_codes) p.route = ExactRoute::gemv;
  if (p.route == ExactRoute::gemv) {
    p.gemv = p.in_codes ? coded_work(p.all, tiles_of(first.in[1]))
                        : gemv_work_in_strips(p.all, has.multiprocessors);
    p.height = p.gemv.rows;
    p.counters = gemv_counters(p.gemv);
  }
  p.counters_at = planes_bytes(p.matrices_a, s.m, s.k, p.height);
  p.b = aligned_bytes(p.counters_at + static_cast<size_t>(p.counters) * sizeof(uint32_t));
  const bool made = !first.in[1].packed || (is_coded(first.in[1]) && !p.in_codes);
  p.sums = p.b + (!made ? 0 : aligned_bytes(planes_bytes(s.matrices_b, s.n, s.k, kBlockRows)));
  p.bytes = p.sums + (p.route == ExactRoute::gemv ? gemv_bytes(p.gemv) : 0);
  return p;
}
size_t shared_bytes_exact16_batch(std::span<const Call* const> calls) {
  size_t most = 0;
  for (size_t at = 0, count; at < calls.size(); at += count) {
    count = count_together(calls.subspan(at));
    if (shape_exact16(*calls[at]).k == 0 || calls[at]->out[0].elements() == 0) continue;
    most = std::max(most, shared_exact16(calls.subspan(at, count)).bytes);
  }
  return most;
}
size_t shared_bytes_exact16(const Call& call) {
  const Call* const one = &call;
  return shared_bytes_exact16_batch({&one, 1});
}

// The rows of a, rounded; the counters of the kernel of few rows are zeroed. To a producer they are
// scales of whole tiles behind the rows.
void enqueue_rounding(const Call& call, const SharedExact& p, const Planes& a, const GpuFusion& fusion,
                      Stream stream) {
  if (fusion.producers.empty())
    return enqueue_rows(RowsOf<F32>{call.in[0].as<const float>(), p.all.k, p.all.m, p.matrices_a, p.all.k, 1},
                        a, false, p.gemv.counters, static_cast<int>(p.counters), stream);
  const RoundedRows rows{a.blocks, a.scales, a.tiles + p.counters / a.height, a.chunks, a.height};
  enqueue_producers(fusion, rows, stream);
}

// The products of calls that one kernel computes. Kernels without that take one after another.
void enqueue_together(std::span<const Call* const> calls, const GpuFusion& fusion, Stream stream) {
  const Call& first = *calls[0];
  const matmul::Shape s = shape_exact16(first);
  const auto addend = [&](size_t i) { return fusion.addends.empty() ? nullptr : fusion.addends[i]; };
  if (s.k == 0) {
    float* const out = first.out[0].as<float>();
    const float* const added = addend(0);
    return launch_for_each(stream, first.out[0].elements(),
                           [=] __device__(int64_t i) { out[i] = added ? with_addend(0, added[i]) : 0; });
  }
  if (first.out[0].elements() == 0) return;
  SharedExact p = shared_exact16(calls);
  auto* shared = static_cast<uint8_t*>(first.shared);
  p.gemv.counters = reinterpret_cast<uint32_t*>(shared + p.counters_at);
  p.gemv.sums = reinterpret_cast<int64_t*>(shared + p.sums);
  const bool coded = is_coded(first.in[1]), packed = first.in[1].packed && !coded;
  void* const b = packed ? first.in[1].data : shared + p.b;
  if (coded && !p.in_codes)
    enqueue_unpacking(tiles_of(first.in[1]), planes(b, 1, s.n, s.k, kBlockRows), stream);
  else if (!packed && !coded)
    enqueue_weights(first.in[1], s.trans_b, b, stream);
  ExactTogether in{s, planes(shared, p.matrices_a, s.m, s.k, p.height), static_cast<int>(calls.size())};
  for (size_t i = 0; i < calls.size(); ++i) {
    const matmul::Shape t = shape_exact16(*calls[i]);
    in.of[i] = {p.in_codes ? coded_planes(tiles_of(calls[i]->in[1]))
                           : planes(i ? calls[i]->in[1].data : b, t.matrices_b, t.n, t.k, kBlockRows),
                calls[i]->out[0].as<float>(), addend(i), t.n};
  }
  enqueue_rounding(first, p, in.a, fusion, stream);
#ifdef INVAR_SM90A
  if (p.in_codes) return enqueue_coded_hopper(in, form_of(tiles_of(first.in[1])), p.gemv, stream);
  if (p.route == ExactRoute::gemv) return enqueue_gemv_hopper(in, p.gemv, packed, stream);
  if (p.route == ExactRoute::gemm) return enqueue_gemm_hopper(in, stream);
#endif
  for (size_t i = 0; i < calls.size(); ++i) {
    const ExactTogether::One& one = in.of[i];
    const ExactProduct product{shape_exact16(*calls[i]), in.a, one.b, one.out, one.addend};
    if (p.route == ExactRoute::mma)
      enqueue_mma(product, stream);
    else
      enqueue_plain(product, stream);
  }
}

void enqueue_exact16_fused(std::span<const Call* const> calls, const GpuFusion& fusion, Stream stream) {
  for (size_t at = 0, count; at < calls.size(); at += count) {
    count = count_together(calls.subspan(at));
    GpuFusion part = fusion;
    if (!part.addends.empty()) part.addends = part.addends.subspan(at, count);
    enqueue_together(calls.subspan(at, count), part, stream);
  }
}
void enqueue_exact16_batch(std::span<const Call* const> calls, Stream stream) {
  enqueue_exact16_fused(calls, {}, stream);
}
void enqueue_exact16(const Call& call, Stream stream) {
  const Call* const one = &call;
  enqueue_together({&one, 1}, {}, stream);
}

size_t pack_bytes_exact16(const View& v, int i, const Attributes& attrs) {
  if (i != 1 || v.elements() == 0) return 0;
  if (v.packed) return weights::CodeTiles::of(*v.as<const weights::PackedRows>()).bytes();
  const bool trans = MatmulExact16Attributes(attrs).trans_b != 0;
  const int64_t k = v.dim[v.rank - (trans ? 1 : 2)], n = v.dim[v.rank - (trans ? 2 : 1)];
  return planes_bytes(v.elements() / (k * n), n, k, kBlockRows);
}
void enqueue_pack_exact16(const View& v, int, const Attributes& attrs, void* packed, Stream stream) {
  enqueue_weights(v, MatmulExact16Attributes(attrs).trans_b != 0, packed, stream);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(matmul_exact16);
const GpuKernel INVAR_ROW_OF(matmul_exact16) = {
    .op = "matmul_exact16",
    .isa = INVAR_ISA,
    .shared_bytes = INVAR_ISA_NS::shared_bytes_exact16,
    .pack_bytes = INVAR_ISA_NS::pack_bytes_exact16,
    .enqueue = INVAR_ISA_NS::enqueue_exact16,
    .enqueue_batch = INVAR_ISA_NS::enqueue_exact16_batch,
    .enqueue_pack = INVAR_ISA_NS::enqueue_pack_exact16,
    .shared_bytes_batch = INVAR_ISA_NS::shared_bytes_exact16_batch,
    .enqueue_fused = INVAR_ISA_NS::enqueue_exact16_fused};

}  // namespace invar::ops
