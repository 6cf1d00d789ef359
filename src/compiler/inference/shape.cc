// Shapes of symbolic dimensions: text, comparison and broadcasting.
#include "compiler/inference/shape.h"

#include <algorithm>
#include <functional>

namespace invar {

DimText text_of(const DimExpr& e) {
  DimText made(e.text());
  e.all_symbols([&](const std::string& name) { return made.symbols.push_back(name), true; });
  return made;
}

}  // namespace invar

namespace invar::compiler {

DimText text_of(const Dim& e) {
  return e.constant() ? DimText(std::to_string(e.value)) : e.known() ? text_of(e.expr) : DimText("?");
}

DimText text_of(const Shape& shape) {
  DimText text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text = text + (i > 0 ? ", " : "") + text_of(shape[i]);
  return text + "]";
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
    only_symbols &= std::none_of(monomial.begin(), monomial.end(),
                                 [](const DimExpr::Factor& f) { return f.composite(); });
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

}  // namespace invar::compiler
