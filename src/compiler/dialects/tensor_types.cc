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

std::string text_of(const Dim& e) {
  return e.constant() ? std::to_string(e.value) : e.known() ? e.expr.text() : "?";
}

std::string text_of(const Shape& shape) {
  std::string text;
  for (const Dim& e : shape) text += (text.empty() ? "[" : ", ") + text_of(e);
  return text.empty() ? "[]" : text + "]";
}

std::string text_of_type(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

bool known_equal(const Dim& a, const Dim& b) {
  return a.known() && a == b;
}

// False if all terms are products of symbols and have the same sign: for sizes above 0 the sum is
// not 0.
bool may_be_zero(const DimExpr& p) {
  if (const std::optional<int64_t> n = p.constant()) return *n == 0;
  bool adds = false, subtracts = false, only_symbols = true;
  for (const auto& [monomial, times] : p.terms()) {
    (times > 0 ? adds : subtracts) = true;
    only_symbols &= llvm::none_of(monomial, [](const DimExpr::Factor& f) { return f.composite(); });
  }
  return !only_symbols || (adds && subtracts);
}

bool may_be_equal(const Dim& a, const Dim& b) {
  if (known_equal(a, b)) return true;
  const std::optional<DimExpr> p = dim_expr_of(a), q = dim_expr_of(b);
  const std::optional<DimExpr> gap = p && q ? difference(*p, *q) : std::nullopt;
  return gap && may_be_zero(*gap);
}

bool may_be_equal(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return false;
  for (size_t d = 0; d < a.size(); ++d)
    if (!may_be_equal(a[d], b[d])) return false;
  return true;
}

// Splits into the cases 0, 1 and n + 2 for symbols inside min(...), where the arithmetic
// simplifies.
bool always_equal(const DimExpr& a, const DimExpr& b) {
  constexpr int kMaxSplitSymbols = 2;
  const std::function<bool(const DimExpr&, int)> is_zero = [&is_zero](const DimExpr& e, int splits) {
    if (e == 0) return true;
    std::string symbol;
    const auto set_symbol = [&](const std::string& s) { return symbol = s, false; };
    for (const auto& [monomial, times] : e.terms())
      for (const DimExpr::Factor& factor : monomial)
        if (const auto* parts = factor.composite(); parts && !parts->divisor)
          (void)(parts->first.all_symbols(set_symbol) || parts->second.all_symbols(set_symbol));
    if (symbol.empty() || splits == 0) return false;
    for (const DimExpr& size : {DimExpr(0), DimExpr(1), sum(DimExpr::symbol(symbol), 2).value_or(0)}) {
      const auto replaced = e.substitute(
          [&](const std::string& s) { return s == symbol ? std::optional(size) : std::nullopt; });
      if (!replaced || !is_zero(*replaced, splits - 1)) return false;
    }
    return true;
  };
  const std::optional<DimExpr> gap = difference(a, b);
  return gap && is_zero(*gap, kMaxSplitSymbols);
}

// min(max(a, b), a * b): the product is 0 if one is 0, and it is the maximum if one is 1.
std::optional<DimExpr> broadcast(const DimExpr& a, const DimExpr& b) {
  if (a == b || b == 1 || (a.constant() && a != 1)) return a;
  if (a == 1 || b.constant()) return b;
  const std::optional<DimExpr> larger = maximum(a, b), area = product(a, b);
  const std::optional<DimExpr> size = larger && area ? minimum(*larger, *area) : std::nullopt;
  for (const DimExpr& either : {a, b})
    if (size && always_equal(*size, either)) return either;
  return size;
}

std::optional<Shape> broadcast_if_maybe_equal(const Shape& a, const Shape& b) {
  const Dim one = Dim::of(1);
  Shape left = a, right = b;
  for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    Dim &x = left[a.size() - i], &y = right[b.size() - i];
    const std::optional<DimExpr> p = dim_expr_of(x), q = dim_expr_of(y);
    if (known_equal(x, y) || x == one || y == one || !p || !q || !may_be_equal(x, y)) continue;
    x = y = Dim::of(broadcast(*p, *q).value_or(*q));
  }
  return broadcast(left, right);
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    Dim one = Dim::of(1);
    const Dim& x = i < a.size() ? a[a.size() - 1 - i] : one;
    const Dim& y = i < b.size() ? b[b.size() - 1 - i] : one;
    if (!known_equal(x, y) && x != one && y != one) return std::nullopt;
    out[out.size() - 1 - i] = x == one ? y : x;
  }
  return out;
}

std::optional<DimExpr> dim_expr_of(const Dim& e) {
  if (e.constant()) return e.value;
  return e.known() ? std::optional(e.expr) : std::nullopt;
}

std::optional<DimExpr> element_count(const Shape& shape) {
  std::optional<DimExpr> n = 1;
  for (const Dim& e : shape) {
    const std::optional<DimExpr> dim = dim_expr_of(e);
    if (!dim) return std::nullopt;
    n = product(*n, *dim);
    if (!n) return n;
  }
  return n;
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
