// Symbolic dimension expressions: integer sums of products of symbols, floor divisions and minima,
// such as batch*seq, past+seq-1, (height+1)/2 and min(seq,16). See spec/plan.md plan.12.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace invar {

// A normalized expression: equal expressions have one form and therefore one text. It is immutable
// and shared, so a copy costs no more than a pointer.
class DimExpr {
 public:
  DimExpr(int64_t constant = 0);
  // A symbol or a composite, as factor of a product.
  class Factor;
  explicit DimExpr(Factor);
  static DimExpr symbol(std::string name);
  // Accepts exactly what text() writes.
  static std::optional<DimExpr> parse_canonical(std::string_view);
  // Accepts any sum of products, with spaces, and normalizes it.
  static std::optional<DimExpr> parse(std::string text);
  std::string text() const;

  std::optional<int64_t> constant() const;
  // The name, if the expression is one symbol; else null.
  const std::string* as_symbol() const;
  // The value under an assignment of the symbols. Nothing if a symbol has no value, or if a number
  // does not fit into 64 bits.
  using Lookup = std::function<std::optional<int64_t>(const std::string& symbol)>;
  std::optional<int64_t> evaluate(const Lookup&) const;
  // Replaces each symbol for which the substitution returns an expression. Nothing if the result
  // exceeds the size limits.
  using Substitution = std::function<std::optional<DimExpr>(const std::string& symbol)>;
  std::optional<DimExpr> substitute(const Substitution&) const;
  bool all_symbols(const std::function<bool(const std::string&)>& predicate) const;
  // True if the value is provably at least 0 for all values of the symbols. Symbols are dimensions,
  // which are never negative.
  bool is_nonnegative() const;
  friend bool operator==(const DimExpr& a, const DimExpr& b);
  friend bool operator<(const DimExpr& a, const DimExpr& b);  // any total order, for maps
  size_t hash() const;

  // These return nothing if the result exceeds the size limits.
  friend std::optional<DimExpr> sum(const DimExpr&, const DimExpr&);
  friend std::optional<DimExpr> product(const DimExpr&, const DimExpr&);
  friend std::optional<DimExpr> exact_div(const DimExpr& a, const DimExpr& b);
  friend std::optional<DimExpr> floor_div_unmerged(const DimExpr& a, int64_t divisor);
  friend std::optional<DimExpr> symbolic_min(const DimExpr& a, const DimExpr& b);

  // The factors of a product in ascending order.
  using Monomial = std::vector<Factor>;
  // Graded lexicographic order, highest degree first, in which text() writes terms. Products
  // preserve it, which exact_div requires.
  struct GradedLexOrder {
    bool operator()(const Monomial& a, const Monomial& b) const;
  };
  using Terms = std::map<Monomial, int64_t, GradedLexOrder>;  // coefficients, none of them 0
  const Terms& terms() const;

 private:
  explicit DimExpr(Terms terms);
  bool has_no_subtraction() const;  // neither in terms nor inside factors
  bool is_nonnegative(int depth) const;
  bool nonnegative_by_cases(bool subtracted, int depth) const;
  std::shared_ptr<const Terms> terms_;  // null: 0
};

class DimExpr::Factor {
 public:
  // floor(first / divisor), or min(first, second) if divisor is 0.
  struct Composite {
    DimExpr first, second;
    int64_t divisor = 0;
  };
  explicit Factor(std::string symbol);
  explicit Factor(Composite);
  // The name of a symbol; "(TEXT)/N" or "min(TEXT,TEXT)" of a composite. It orders factors.
  const std::string& text() const { return node_->text; }
  const Composite* composite() const { return node_->composite ? &*node_->composite : nullptr; }
  friend bool operator==(const Factor& a, const Factor& b) {
    return a.node_ == b.node_ || a.text() == b.text();
  }
  friend std::strong_ordering operator<=>(const Factor& a, const Factor& b) { return a.text() <=> b.text(); }

 private:
  struct Node {
    std::string text;
    std::optional<Composite> composite;
  };
  std::shared_ptr<const Node> node_;
};

inline bool DimExpr::GradedLexOrder::operator()(const Monomial& a, const Monomial& b) const {
  return a.size() != b.size() ? a.size() > b.size() : a < b;
}
inline bool operator==(const DimExpr& a, const DimExpr& b) {
  return a.terms_ == b.terms_ || a.terms() == b.terms();
}
inline bool operator<(const DimExpr& a, const DimExpr& b) {
  return a.terms() < b.terms();
}

std::optional<DimExpr> sum(const DimExpr&, const DimExpr&);
std::optional<DimExpr> product(const DimExpr&, const DimExpr&);
inline std::optional<DimExpr> difference(const DimExpr& a, const DimExpr& b) {
  const std::optional<DimExpr> negative = product(b, -1);
  return negative ? sum(a, *negative) : std::nullopt;
}

// The expression q with q * b == a, if there is one.
std::optional<DimExpr> exact_div(const DimExpr& a, const DimExpr& b);
// floor(a / divisor), divisor > 0. A division of a division becomes one division.
std::optional<DimExpr> floor_div(const DimExpr& a, int64_t divisor);
// The same without merging nested divisions: the parser must reproduce the text that it reads.
std::optional<DimExpr> floor_div_unmerged(const DimExpr& a, int64_t divisor);

// Minimum and maximum, simplified to one operand where the order is provable.
std::optional<DimExpr> minimum(const DimExpr& a, const DimExpr& b);
std::optional<DimExpr> maximum(const DimExpr& a, const DimExpr& b);
// The minimum as a normalized min(...) factor, without a proof of which operand is smaller.
std::optional<DimExpr> symbolic_min(const DimExpr&, const DimExpr&);

}  // namespace invar
