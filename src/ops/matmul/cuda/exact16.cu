// matmul_exact16: rows of a and columns of b are rounded to planes of bytes, b once if it is
// constant; then a kernel for the device and the shape multiplies. The sums are exact, so their
// order is free.
#include "ops/matmul/cuda/exact16/hopper.h"
#include "ops/matmul/cuda/exact16/mma.cuh"
#include "ops/matmul/cuda/exact16/plain.cuh"
#include "ops/matmul/cuda/exact16/quantize.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

matmul::Shape shape_exact16(const Call& c) {
  return matmul::shape(c.in[0], c.in[1], c.out[0], false, attr_i(c, "trans_b", 0) != 0);
}
ExactKernels exact_kernels() {
  bool hopper = false;
#ifdef INVAR_SM90A
  hopper = device_attribute(cudaDevAttrComputeCapabilityMajor) == 9 &&
           device_attribute(cudaDevAttrComputeCapabilityMinor) == 0;
#endif
  return {hopper, has_mma(), multiprocessors()};
}

// Where a call's shared memory has what: a's planes, b's if it is not packed, the sums of few rows.
struct SharedExact {
  ExactRoute route;
  GemvWork gemv;
  int64_t matrices_a, rows_a;  // rows of a matrix
  int height;
  size_t b, sums, all;
};
size_t aligned_bytes(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}
SharedExact shared_exact16(const Call& call, const matmul::Shape& s) {
  SharedExact p{};
  const ExactKernels has = exact_kernels();
  p.route = select_exact(s, has, variant());
  p.rows_a = s.m, p.matrices_a = s.m ? row_count(call.in[0]) / s.m : 0;
  p.height = kBlockRows;
  if (p.route == ExactRoute::gemv) {
    p.gemv = gemv_work(s, has.multiprocessors);
    p.height = p.gemv.rows;
  }
  p.b = aligned_bytes(planes_bytes(p.matrices_a, s.m, s.k, p.height));
  p.sums = p.b + (call.in[1].packed ? 0 : aligned_bytes(planes_bytes(s.matrices_b, s.n, s.k, kBlockRows)));
  p.all = p.sums + (p.route == ExactRoute::gemv ? gemv_bytes(p.gemv) : 0);
  return p;
}
size_t shared_bytes_exact16(const Call& call) {
  const matmul::Shape s = shape_exact16(call);
  return s.k == 0 || call.out[0].elements() == 0 ? 0 : shared_exact16(call, s).all;
}

void enqueue_exact16(const Call& call, Stream stream) {
  const matmul::Shape s = shape_exact16(call);
  auto* out = call.out[0].as<float>();
  if (s.k == 0)
    return launch_for_each(stream, call.out[0].elements(), [=] __device__(int64_t i) { out[i] = 0; });
  if (call.out[0].elements() == 0) return;
  SharedExact p = shared_exact16(call, s);
  auto* shared = static_cast<uint8_t*>(call.shared);
  int counters = 0;
  if (p.route == ExactRoute::gemv) {
    counters = static_cast<int>(gemv_counters(p.gemv));
    p.gemv.counters = reinterpret_cast<uint32_t*>(shared + p.sums);
    p.gemv.sums = reinterpret_cast<int64_t*>(p.gemv.counters + counters);
  }
  void* b = call.in[1].data;
  if (!call.in[1].packed) enqueue_weights(call.in[1], s.trans_b, b = shared + p.b, stream);
  const ExactProduct in{s, planes(shared, p.matrices_a, s.m, s.k, p.height),
                        planes(b, s.matrices_b, s.n, s.k, kBlockRows), out};
  enqueue_rows(RowsOf<F32>{call.in[0].as<const float>(), s.k, s.m, p.matrices_a, s.k, 1}, in.a, false,
               p.gemv.counters, counters, stream);
#ifdef INVAR_SM90A
  if (p.route == ExactRoute::gemv) return enqueue_gemv_hopper(in, p.gemv, call.in[1].packed, stream);
  if (p.route == ExactRoute::gemm) return enqueue_gemm_hopper(in, stream);
#endif
  if (p.route == ExactRoute::mma) return enqueue_mma(in, stream);
  enqueue_plain(in, stream);
}

size_t pack_bytes_exact16(const View& v, int i, const Attributes& attrs) {
  if (i != 1 || v.elements() == 0) return 0;
  const int64_t k = v.dim[v.rank - (attr_i(attrs, "trans_b", 0) ? 1 : 2)];
  const int64_t n = v.dim[v.rank - (attr_i(attrs, "trans_b", 0) ? 2 : 1)];
  return planes_bytes(v.elements() / (k * n), n, k, kBlockRows);
}
void enqueue_pack_exact16(const View& v, int, const Attributes& attrs, void* packed, Stream stream) {
  enqueue_weights(v, attr_i(attrs, "trans_b", 0) != 0, packed, stream);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(matmul_exact16);
const GpuKernel INVAR_ROW_OF(matmul_exact16) = {.op = "matmul_exact16",
                                                .isa = INVAR_ISA,
                                                .shared_bytes = INVAR_ISA_NS::shared_bytes_exact16,
                                                .pack_bytes = INVAR_ISA_NS::pack_bytes_exact16,
                                                .enqueue = INVAR_ISA_NS::enqueue_exact16,
                                                .enqueue_pack = INVAR_ISA_NS::enqueue_pack_exact16};

}  // namespace invar::ops
