// CPU matmul: register tiles over one K block at a time (kernels/cpu/gemm_blocking.h,
// blocked_product.h). The blocking is free by matmul.3.
#include "ops/matmul/cpu/binary64.h"
#include "ops/matmul/cpu/coded/blocks_b.h"
#include "ops/matmul/cpu/extension_rows.h"
#include "ops/matmul/cpu/fixed.h"
#include "ops/matmul/cpu/float_b.h"
#include "ops/matmul/cpu/grouped.h"
#include "ops/matmul/cpu/quantized_b.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

WorkPartition partition(const Shape& s) {
  return matmul::partition(s, kPanel, kMaxRows, wide<PanelsOfB<F32, kVectorsPerPanel>>);
}
int64_t units(const Call& c, int) {
  Shape s = matmul::shape(c);
  if (c.in[0].dtype == DType::f64) return s.batches * s.m;
  return s.batches * partition(s).units();
}
size_t scratch_bytes(const Call& call) {
  if (call.in[0].dtype == DType::f64) return 0;
  const WorkPartition c = partition(matmul::shape(call));
  return product_scratch_bytes(c, coded_floats(c.tile_panels));
}
void run(const Call& call, int, int64_t begin, int64_t end, void* scratch) {
  const Shape s = matmul::shape(call);
  if (call.in[0].dtype == DType::f64) return run_binary64(call, s, begin, end);
  const WorkPartition c = partition(s);
  const ProductScratch w = product_scratch(c, coded_floats(c.tile_panels), scratch);
  const View& b = call.in[1];
  for_each_unit(call, s, c, w, begin, end, [&](const matmul::Offsets& at, auto product) {
    if (blocks_of(b)) return with_blocks(b, at.b_matrix, s, c, w.b, w.more, product);
    with_format(b.dtype, [&](auto format) {
      using W = decltype(format);
      product(FloatB<W>{
          s, c, b.packed,
          floats_of<typename W::T>(b) + (b.packed ? at.b_matrix * c.panels * kPanel * s.k : at.b), w.b});
    });
  });
}

Shape shape_nbits(const Call& c) {
  Shape s{};
  s.m = row_count(c.in[0]), s.n = last_dim(c.out[0]), s.k = last_dim(c.in[0]);
  s.batches = s.matrices_b = 1;
  return s;
}
WorkPartition partition_nbits(const Shape& s) {
  return matmul::partition(s, kPanel, kMaxRows, wide<QuantizedPanels<PackedIntegers<4>, true>>);
}
int64_t units_nbits(const Call& c, int) {
  return partition_nbits(shape_nbits(c)).units();
}
size_t scratch_bytes_nbits(const Call& call) {
  const WorkPartition c = partition_nbits(shape_nbits(call));
  return product_scratch_bytes(c, QuantizedB<PackedIntegers<4>>::floats(c));
}
void run_nbits(const Call& call, int, int64_t begin, int64_t end, void* scratch) {
  const Shape s = shape_nbits(call);
  const WorkPartition c = partition_nbits(s);
  const ProductScratch w = product_scratch(c, QuantizedB<PackedIntegers<4>>::floats(c), scratch);
  const matmul::Nbits layout = matmul::nbits(call);
  for_each_unit(call, s, c, w, begin, end, [&](const matmul::Offsets&, auto product) {
    if (layout.bits == 4)
      product(QuantizedB<PackedIntegers<4>>{layout, call, c, w.b, w.more});
    else
      product(QuantizedB<PackedIntegers<8>>{layout, call, c, w.b, w.more});
  });
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW_OF(matmul), INVAR_ROW_OF(grouped_matmul), INVAR_ROW_OF(matmul_nbits),
    INVAR_ROW_OF(fixed_matmul);
const CpuKernel INVAR_ROW_OF(matmul) = {.op = "matmul",
                                        .isa = INVAR_ISA,
                                        .units = INVAR_ISA_NS::units,
                                        .run = INVAR_ISA_NS::run,
                                        .scratch_bytes = INVAR_ISA_NS::scratch_bytes,
                                        .epilogue = true,
                                        .pack_bytes = INVAR_ISA_NS::pack_bytes,
                                        .pack = INVAR_ISA_NS::pack};
const CpuKernel INVAR_ROW_OF(grouped_matmul) = {.op = "grouped_matmul",
                                                .isa = INVAR_ISA,
                                                .units = INVAR_ISA_NS::units_grouped,
                                                .run = INVAR_ISA_NS::run_grouped,
                                                .scratch_bytes = INVAR_ISA_NS::scratch_bytes_grouped,
                                                .pack_bytes = INVAR_ISA_NS::pack_bytes_grouped,
                                                .pack = INVAR_ISA_NS::pack};
const CpuKernel INVAR_ROW_OF(fixed_matmul) = {.op = "fixed_matmul",
                                              .isa = INVAR_ISA,
                                              .phases = 2,
                                              .units = INVAR_ISA_NS::units_fixed,
                                              .run = INVAR_ISA_NS::run_fixed,
                                              .scratch_bytes = INVAR_ISA_NS::scratch_bytes_fixed,
                                              .shared_bytes = INVAR_ISA_NS::shared_bytes_fixed};
const CpuKernel INVAR_ROW_OF(matmul_nbits) = {.op = "matmul_nbits",
                                              .isa = INVAR_ISA,
                                              .units = INVAR_ISA_NS::units_nbits,
                                              .run = INVAR_ISA_NS::run_nbits,
                                              .scratch_bytes = INVAR_ISA_NS::scratch_bytes_nbits,
                                              .epilogue = true,
                                              .pack_bytes = INVAR_ISA_NS::pack_bytes_nbits,
                                              .pack = INVAR_ISA_NS::pack_nbits};

}  // namespace invar::ops
