// Symbolic dimension expressions: integer sums of products of symbols, floor divisions and minima,
// such as batch*seq, past+seq-1, (height+1)/2 and min(seq,16). See spec/plan.md plan.12.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace invar {

// A normalized expression: equal expressions have one form and therefore one text.
class DimExpr {
 public:
  DimExpr(int64_t constant = 0) {
    if (constant) terms_[{}] = constant;
  }
  static DimExpr symbol(std::string name) {
    DimExpr e;
    e.terms_[{std::move(name)}] = 1;
    return e;
  }
  // Accepts exactly what text() writes.
  static std::optional<DimExpr> parse_canonical(std::string_view);
  // Accepts any sum of products, with spaces, and normalizes it.
  static std::optional<DimExpr> parse(std::string text);
  std::string text() const;

  std::optional<int64_t> constant() const;
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
  bool operator==(const DimExpr&) const = default;

  // These return nothing if the result exceeds the size limits.
  friend std::optional<DimExpr> sum(const DimExpr&, const DimExpr&);
  friend std::optional<DimExpr> product(const DimExpr&, const DimExpr&);
  friend std::optional<DimExpr> exact_div(const DimExpr& a, const DimExpr& b);
  friend std::optional<DimExpr> floor_div_unmerged(const DimExpr& a, int64_t divisor);
  friend std::optional<DimExpr> symbolic_min(const DimExpr& a, const DimExpr& b);

  // The factors of a product in ascending order. A factor is a symbol or the text of a composite,
  // "(TEXT)/N" or "min(TEXT,TEXT)".
  using Monomial = std::vector<std::string>;
  // Graded lexicographic order, highest degree first, in which text() writes terms. Products
  // preserve it, which exact_div requires.
  struct GradedLexOrder {
    bool operator()(const Monomial& a, const Monomial& b) const {
      return a.size() != b.size() ? a.size() > b.size() : a < b;
    }
  };
  const auto& terms() const { return terms_; }
  // The operands of a composite factor; nothing for a symbol.
  struct Composite;
  static std::optional<Composite> composite_of(const std::string& factor);

 private:
  bool has_no_subtraction() const;  // neither in terms nor inside factors
  bool is_nonnegative(int depth) const;
  bool nonnegative_by_cases(bool subtracted, int depth) const;
  std::map<Monomial, int64_t, GradedLexOrder> terms_;  // coefficients, none of them 0
};

// floor(first / divisor), or min(first, second) if divisor is 0.
struct DimExpr::Composite {
  DimExpr first, second;
  int64_t divisor = 0;
};

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
