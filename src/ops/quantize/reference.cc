// spec: quantize.1 - quantize.4. One element at a time.
#include "kernels/reference.h"
#include "kernels/check.h"
#include "ops/quantize/quantize.h"

namespace invar::ops {
namespace {

int64_t integer(const View& v, int64_t i) {
  switch (v.dtype) {
    case DType::i8: return v.as<const int8_t>()[i];
    case DType::u8: return v.as<const uint8_t>()[i];
    default: return v.as<const int32_t>()[i];
  }
}

// Calls f(element, scale, zero point) for the elements of units [begin, end).
template <class Fn>
void each(const Call& call, int64_t begin, int64_t end, Fn f) {
  const ScaleLayout g = scale_layout(call);
  const int64_t size = call.out[0].elements();
  for (int64_t i = begin * kChunk; i < end * kChunk && i < size; ++i) {
    const int64_t at = scale_run_at(g, i, size).at;
    f(i, call.in[1].as<const float>()[at], call.in.size() > 2 ? integer(call.in[2], at) : 0);
  }
}

void quantize(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View& out = call.out[0];
  const bool is_signed = out.dtype == DType::i8;
  each(call, begin, end, [&](int64_t i, float s, int64_t z) {
    const float q = call.in[0].as<const float>()[i] / s;
    const float limited = q != q ? 0 : q < -1024.0f ? -1024.0f : q > 1024.0f ? 1024.0f : q;
    const int64_t y = static_cast<int64_t>(std::nearbyint(limited)) + z, low = is_signed ? -128 : 0;
    out.as<uint8_t>()[i] = static_cast<uint8_t>(y < low ? low : y > low + 255 ? low + 255 : y);
  });
}

void dequantize(const Call& call, int, int64_t begin, int64_t end, void*) {
  each(call, begin, end, [&](int64_t i, float s, int64_t z) {
    store_canonical(call.out[0], i, static_cast<float>(integer(call.in[0], i) - z) * s);
  });
}

bool is_byte(const View& v) {
  return v.dtype == DType::i8 || v.dtype == DType::u8;
}

// Checks operands 1 and 2; zero points have the type of `integers`.
const char* check(const Call& c, const View& integers) {
  const View &x = c.in[0], &scale = c.in[1];
  if (!same_shape(x, c.out[0])) return "a result shaped like the operand";
  if (!is_f32(scale)) return "scales of f32";
  if (c.in.size() > 2 && (c.in[2].dtype != integers.dtype || !same_shape(c.in[2], scale)))
    return "a zero point for each scale, of the integers' type";
  const QuantizeLinearAttributes a(c);
  const int64_t block = a.block, axis = a.axis;
  if (block < 0) return "a block of 0 or more";
  if (block == 0 && scale.rank <= 1 && scale.elements() == 1) return nullptr;
  const int at = axis_in(x, axis);
  if (at < 0) return "an axis of the operand";
  if (block == 0)
    return scale.rank == 1 && scale.dim[0] == x.dim[at] ? nullptr : "a scale for each index of the axis";
  const char* shape = "scales of the operand's shape, along the axis one for each block";
  if (scale.rank != x.rank) return shape;
  for (int d = 0; d < x.rank; ++d)
    if (scale.dim[d] != (d == at ? x.dim[d] / block + (x.dim[d] % block != 0) : x.dim[d])) return shape;
  return nullptr;
}

const char* check_quantize(const Call& c) {
  if (!has_operands(c, 2, 1) && !has_operands(c, 3, 1)) return "two or three operands and one result";
  if (!is_f32(c.in[0]) || !is_byte(c.out[0])) return "f32 and a result of i8 or u8";
  return check(c, c.out[0]);
}

const char* check_dequantize(const Call& c) {
  if (!has_operands(c, 2, 1) && !has_operands(c, 3, 1)) return "two or three operands and one result";
  const View& x = c.in[0];
  if ((!is_byte(x) && x.dtype != DType::i32) || !is_f32(c.out[0])) return "i8, u8 or i32 and a result of f32";
  if (x.dtype == DType::i32 && c.in.size() > 2) return "no zero points with i32";
  return check(c, x);
}

}  // namespace

extern const OpContract contract_quantize_linear, contract_dequantize_linear;
extern const CpuKernel row_quantize_linear_reference, row_dequantize_linear_reference;
const OpContract contract_quantize_linear = {.op = "quantize_linear", .check = check_quantize};
const CpuKernel row_quantize_linear_reference = {
    .op = "quantize_linear", .isa = "reference", .units = chunk_units, .run = quantize};
const OpContract contract_dequantize_linear = {.op = "dequantize_linear", .check = check_dequantize};
const CpuKernel row_dequantize_linear_reference = {
    .op = "dequantize_linear", .isa = "reference", .units = chunk_units, .run = dequantize};

}  // namespace invar::ops
