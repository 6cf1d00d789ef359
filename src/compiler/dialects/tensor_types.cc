// Shapes, broadcasting and element types.
#include "compiler/dialects/tensor_types.h"

#include <algorithm>

#include "compiler/dialects/dialects.h"
#include "mlir/IR/BuiltinTypes.h"

namespace invar::compiler {
using namespace mlir;

Shape shape_of(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor) return {};  // an absent operand
  auto dims = dyn_cast_or_null<DimsAttr>(tensor.getEncoding());
  Shape shape;
  for (size_t i = 0; i < static_cast<size_t>(tensor.getRank()); ++i) {
    Dim e{tensor.getDimSize(static_cast<unsigned>(i))};
    if (!e.constant() && dims && i < dims.getDims().size()) e.expr = dims.getDims()[i].value_or(0);
    shape.push_back(std::move(e));
  }
  return shape;
}

RankedTensorType tensor_of(const Shape& shape, Type element) {
  SmallVector<int64_t> sizes;
  DimList dims;
  bool symbolic = false;
  for (const Dim& e : shape) {
    const bool constant_or_unknown = e.expr.constant().has_value();
    sizes.push_back(e.value);
    dims.push_back(constant_or_unknown ? std::nullopt : std::optional(e.expr));
    symbolic |= !constant_or_unknown;
  }
  return RankedTensorType::get(sizes, element,
                               symbolic ? DimsAttr::get(element.getContext(), dims) : Attribute());
}

DimText text_of_type(Type type) {
  DimText text = isa<RankedTensorType>(type) ? text_of(shape_of(type)) : DimText();
  const std::optional<DType> dtype = dtype_of(getElementTypeOrSelf(type));
  if (dtype && isa<RankedTensorType>(type)) {
    text.text = std::string(name_of(*dtype)) + " " + text.text;
  } else {
    text.text.clear();
    llvm::raw_string_ostream(text.text) << type;
  }
  return text;
}

std::optional<DType> dtype_of(Type t) {
  if (t.isF32()) return DType::f32;
  if (t.isBF16()) return DType::bf16;
  if (t.isF16()) return DType::f16;
  if (t.isF64()) return DType::f64;
  if (t.isSignlessInteger(64)) return DType::i64;
  if (t.isSignlessInteger(32)) return DType::i32;
  if (t.isSignlessInteger(8)) return DType::i8;
  if (t.isUnsignedInteger(8)) return DType::u8;
  if (t.isSignlessInteger(1)) return DType::boolean;
  if (t.isSignlessInteger(16)) return DType::i16;
  if (t.isUnsignedInteger(16)) return DType::u16;
  if (t.isUnsignedInteger(32)) return DType::u32;
  if (t.isUnsignedInteger(64)) return DType::u64;
  return std::nullopt;
}

Type type_of(MLIRContext* c, DType t) {
  switch (t) {
    case DType::f32: return Float32Type::get(c);
    case DType::bf16: return BFloat16Type::get(c);
    case DType::f16: return Float16Type::get(c);
    case DType::f64: return Float64Type::get(c);
    case DType::i64: return IntegerType::get(c, 64);
    case DType::i32: return IntegerType::get(c, 32);
    case DType::i8: return IntegerType::get(c, 8);
    case DType::u8: return IntegerType::get(c, 8, IntegerType::Unsigned);
    case DType::boolean: return IntegerType::get(c, 1);
    case DType::i16: return IntegerType::get(c, 16);
    case DType::u16: return IntegerType::get(c, 16, IntegerType::Unsigned);
    case DType::u32: return IntegerType::get(c, 32, IntegerType::Unsigned);
    case DType::u64: return IntegerType::get(c, 64, IntegerType::Unsigned);
  }
  return {};
}

// The codes of TensorProto.DataType, in their order.
Type onnx_type(MLIRContext* c, int32_t code) {
  auto u = [&](unsigned bits) { return IntegerType::get(c, bits, IntegerType::Unsigned); };
  switch (code) {
    case 1: return Float32Type::get(c);
    case 2: return u(8);
    case 3: return IntegerType::get(c, 8);
    case 4: return u(16);
    case 5: return IntegerType::get(c, 16);
    case 6: return IntegerType::get(c, 32);
    case 7: return IntegerType::get(c, 64);
    case 9: return IntegerType::get(c, 1);
    case 10: return Float16Type::get(c);
    case 11: return Float64Type::get(c);
    case 12: return u(32);
    case 13: return u(64);
    case 14: return ComplexType::get(Float32Type::get(c));
    case 15: return ComplexType::get(Float64Type::get(c));
    case 16: return BFloat16Type::get(c);
    default: return code > 0 ? Type(ElementType::get(c, code)) : Type();
  }
}

}  // namespace invar::compiler
