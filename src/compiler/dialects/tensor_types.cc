#include "compiler/dialects/tensor_types.h"

#include <algorithm>

#include "compiler/dialects/dialects.h"
#include "mlir/IR/BuiltinTypes.h"

namespace invar::compiler {
using namespace mlir;

Shape shape_of(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor) return {};  // an operand that is absent
  auto names = dyn_cast_or_null<ArrayAttr>(tensor.getEncoding());
  Shape shape;
  for (int64_t i = 0; i < tensor.getRank(); ++i) {
    Extent e{tensor.getDimSize(i), ""};
    if (!e.constant() && names && i < static_cast<int64_t>(names.size()))
      if (auto name = dyn_cast<StringAttr>(names[i])) e.name = name.str();
    shape.push_back(std::move(e));
  }
  return shape;
}

RankedTensorType tensor_of(const Shape& shape, Type element) {
  SmallVector<int64_t> sizes;
  SmallVector<Attribute> names;
  bool symbolic = false;
  for (const Extent& e : shape) {
    sizes.push_back(e.value);
    names.push_back(StringAttr::get(element.getContext(), e.name));
    symbolic |= !e.name.empty();
  }
  return RankedTensorType::get(sizes, element,
                               symbolic ? ArrayAttr::get(element.getContext(), names) : Attribute());
}

std::string text_of(const Extent& e) {
  return e.constant() ? std::to_string(e.value) : e.name.empty() ? "?" : e.name;
}

std::string text_of(const Shape& shape) {
  std::string text;
  for (const Extent& e : shape) text += (text.empty() ? "[" : ", ") + text_of(e);
  return text.empty() ? "[]" : text + "]";
}

std::string text_of_type(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

bool same(const Extent& a, const Extent& b) {
  return a.known() && a == b;
}

// A sum of names alone, all added or all subtracted, is 0 for no sizes above 0.
bool may_be_zero(const Polynomial& p) {
  if (const std::optional<int64_t> n = p.constant()) return *n == 0;
  bool adds = false, subtracts = false, names = true;
  for (const auto& [monomial, times] : p.terms()) {
    (times > 0 ? adds : subtracts) = true;
    names &=
        llvm::none_of(monomial, [](const std::string& f) { return Polynomial::parts_of(f).has_value(); });
  }
  return !names || (adds && subtracts);
}

bool may_be_equal(const Extent& a, const Extent& b) {
  if (same(a, b)) return true;
  const std::optional<Polynomial> p = polynomial_of(a), q = polynomial_of(b);
  const std::optional<Polynomial> gap = p && q ? difference(*p, *q) : std::nullopt;
  return gap && may_be_zero(*gap);
}

bool may_be_equal(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return false;
  for (size_t d = 0; d < a.size(); ++d)
    if (!may_be_equal(a[d], b[d])) return false;
  return true;
}

bool always_equal(const Polynomial& a, const Polynomial& b) {
  constexpr int kTries = 2;  // names of which 0 and 1 are tried
  const std::function<bool(const Polynomial&, int)> zero = [&zero](const Polynomial& gap, int tries) {
    if (gap == 0) return true;
    std::string name;
    for (const auto& [monomial, times] : gap.terms())
      for (const std::string& factor : monomial)
        if (const auto parts = Polynomial::parts_of(factor); parts && !parts->by)
          (parts->first.all_names([&](auto& n) { return name = n, false; })) ||
              parts->second.all_names([&](auto& n) { return name = n, false; });
    if (name.empty() || tries == 0) return false;
    for (const Polynomial& size : {Polynomial(0), Polynomial(1), sum(Polynomial::of(name), 2).value_or(0)}) {
      const auto with =
          gap.with([&](const std::string& n) { return n == name ? std::optional(size) : std::nullopt; });
      if (!with || !zero(*with, tries - 1)) return false;
    }
    return true;
  };
  const std::optional<Polynomial> gap = difference(a, b);
  return gap && zero(*gap, kTries);
}

// The larger, but 0 where one is; that is their product, where one is 1.
std::optional<Polynomial> broadcast(const Polynomial& a, const Polynomial& b) {
  if (a == b || b == 1 || (a.constant() && a != 1)) return a;
  if (a == 1 || b.constant()) return b;
  const std::optional<Polynomial> larger = most(a, b), both = product(a, b);
  const std::optional<Polynomial> size = larger && both ? least(*larger, *both) : std::nullopt;
  for (const Polynomial& either : {a, b})
    if (size && always_equal(*size, either)) return either;
  return size;
}

std::optional<Shape> fitted(const Shape& a, const Shape& b) {
  const Extent one = Extent::of(1);
  Shape known = a, other = b;
  for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    Extent &x = known[a.size() - i], &y = other[b.size() - i];
    const std::optional<Polynomial> p = polynomial_of(x), q = polynomial_of(y);
    if (same(x, y) || x == one || y == one || !p || !q || !may_be_equal(x, y)) continue;
    x = y = Extent::of(broadcast(*p, *q).value_or(*q));
  }
  return broadcast(known, other);
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    Extent one = Extent::of(1);
    const Extent& x = i < a.size() ? a[a.size() - 1 - i] : one;
    const Extent& y = i < b.size() ? b[b.size() - 1 - i] : one;
    if (!same(x, y) && x != one && y != one) return std::nullopt;
    out[out.size() - 1 - i] = x == one ? y : x;
  }
  return out;
}

std::optional<Polynomial> polynomial_of(const Extent& e) {
  if (e.constant()) return e.value;
  return Polynomial::parse(e.name);
}

std::optional<Polynomial> count_of(const Shape& shape) {
  std::optional<Polynomial> n = 1;
  for (const Extent& e : shape) {
    const std::optional<Polynomial> dim = polynomial_of(e);
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

LogicalResult mismatch(std::optional<Location> loc, const Twine& what) {
  return emitOptionalError(loc, what);
}
LogicalResult refuse(std::optional<Location> loc, const Twine& what) {
  return emitOptionalError(loc, kRefusal + what);
}

Error unequal(const Shape& a, const Shape& b, const std::string& message) {
  const auto inner = [](const Shape& s) {
    return Shape(llvm::find_if(s, [](const Extent& e) { return e != Extent::of(1); }), s.end());
  };
  const bool limit = may_be_equal(a, b) || may_be_equal(inner(a), inner(b));
  return limit ? not_covered(message) : bad_input(message);
}

Error misfit(std::initializer_list<Shape> shapes, const std::string& message) {
  for (const Shape& s : shapes)
    if (!llvm::all_of(s, [](const Extent& e) { return e.constant(); })) return not_covered(message);
  return bad_input(message);
}

std::optional<Forced> forced_by(const Extent& a, const Extent& b) {
  for (const auto& [name, other] : {std::pair(a, b), std::pair(b, a)}) {
    const std::optional<Polynomial> p = polynomial_of(name), must = polynomial_of(other);
    auto another = [&](const std::string& n) { return n != name.name; };
    if (p && must && *p == Polynomial::of(name.name) && must->all_names(another))
      return Forced{name.name, must->text()};
  }
  return std::nullopt;
}

std::optional<Forced> forced_by(const Shape& from, const Shape& to) {
  const std::optional<Polynomial> a = count_of(from), b = count_of(to);
  if (!a || !b) return std::nullopt;
  for (const Extent& e : from) {
    const std::optional<Polynomial> size = polynomial_of(e), others = size ? exact_quotient(*a, *size) : size;
    const std::optional<Polynomial> must = others ? exact_quotient(*b, *others) : others;
    if (std::optional<Forced> found = must ? forced_by(e, Extent::of(*must)) : std::nullopt) return found;
  }
  return std::nullopt;
}

LogicalResult noted(InFlightDiagnostic said, const std::optional<Forced>& forced) {
  if (forced) said.attachNote() << forced->name << forced->size;
  return said;
}

LogicalResult differ(std::optional<Location> loc, const Extent& a, const Extent& b, const Twine& what) {
  std::string text = what.str() + ": " + text_of(a) + " and " + text_of(b);
  if (a.constant() && b.constant()) return mismatch(loc, text);
  if (!loc) return failure();
  return noted(emitError(*loc) << kRefusal << text << " cannot be shown to be equal", forced_by(a, b));
}

}  // namespace invar::compiler
