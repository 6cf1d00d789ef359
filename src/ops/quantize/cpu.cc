// CPU quantize and dequantize: runs of elements that share a scale, or have consecutive scales.
#include "ops/quantize/cpu/row_steps.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// Calls f(i, n, run) for the runs of a region: n elements from i on.
template <class Fn>
INVAR_INLINE void for_each_scale_run(const Call& call, const Region& r, Fn f) {
  const ScaleLayout g = scale_layout(call);
  const int64_t size = call.out[0].elements();
  // The rows of a tile: each within one index of the axis, or along all of its indices.
  if (g.by_axis && r.rows > 1 && r.pitch % (g.inner > 1 ? g.inner : g.n) == 0) {
    const int64_t column = r.at % (g.inner > 1 ? g.inner : g.n), step = r.pitch / g.inner % g.n;
    int64_t k = g.inner > 1 ? r.at / g.inner % g.n : column;
    if (column + r.n <= (g.inner > 1 ? g.inner : g.n)) {
      for (int64_t i = 0; i < r.rows; ++i) {
        f(r.at + i * r.pitch, r.n, ScaleRun{size, k, g.inner == 1});
        k += g.inner > 1 ? step : 0;
        if (k >= g.n) k -= g.n;
      }
      return;
    }
  }
  for (int64_t row = 0; row < r.rows; ++row) {
    int64_t i = r.at + row * r.pitch;
    const int64_t to = i + r.n;
    while (i < to) {
      const ScaleRun run = scale_run_at(g, i, size);
      const int64_t n = (run.end < to ? run.end : to) - i;
      f(i, n, run);
      i += n;
    }
  }
}

template <class T>
INVAR_INLINE void quantize(const Call& call, const Region& region) {
  const auto* x = call.in[0].as<const float>();
  T* out = call.out[0].as<T>();
  const Scales<T> s(call);
  for_each_scale_run(call, region,
                     [&](int64_t at, int64_t n, ScaleRun run) { quantize_run(x + at, out + at, n, s, run); });
}
template <class T>
INVAR_INLINE void dequantize(const Call& call, const Region& region) {
  const T* q = call.in[0].as<const T>();
  auto* out = call.out[0].as<float>();
  const Scales<T> s(call);
  for_each_scale_run(call, region, [&](int64_t at, int64_t n, ScaleRun run) {
    dequantize_run(q + at, out + at, n, s, run);
  });
}

void region_quantize(const Call& call, const Region& r) {
  if (call.out[0].dtype == DType::i8)
    quantize<int8_t>(call, r);
  else
    quantize<uint8_t>(call, r);
}
void region_dequantize(const Call& call, const Region& r) {
  switch (call.in[0].dtype) {
    case DType::i8: return dequantize<int8_t>(call, r);
    case DType::u8: return dequantize<uint8_t>(call, r);
    default: dequantize<int32_t>(call, r);
  }
}
void run_quantize(const Call& call, int, int64_t begin, int64_t end, void*) {
  for_each_chunk(call, begin, end, [&](const Region& r) { region_quantize(call, r); });
}
void run_dequantize(const Call& call, int, int64_t begin, int64_t end, void*) {
  for_each_chunk(call, begin, end, [&](const Region& r) { region_dequantize(call, r); });
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW_OF(quantize_linear), INVAR_ROW_OF(dequantize_linear);
const CpuKernel INVAR_ROW_OF(quantize_linear) = {.op = "quantize_linear",
                                                 .isa = INVAR_ISA,
                                                 .units = chunk_units,
                                                 .run = INVAR_ISA_NS::run_quantize,
                                                 .epilogue = true,
                                                 .region = INVAR_ISA_NS::region_quantize,
                                                 .append_row_step = INVAR_ISA_NS::append_quantize};
const CpuKernel INVAR_ROW_OF(dequantize_linear) = {.op = "dequantize_linear",
                                                   .isa = INVAR_ISA,
                                                   .units = chunk_units,
                                                   .run = INVAR_ISA_NS::run_dequantize,
                                                   .epilogue = true,
                                                   .region = INVAR_ISA_NS::region_dequantize,
                                                   .append_row_step = INVAR_ISA_NS::append_dequantize};

}  // namespace invar::ops
