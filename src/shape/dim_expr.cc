// Arithmetic, normalization and text of symbolic dimension expressions.
#include "shape/dim_expr.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace invar {
namespace {

constexpr std::string_view kMinPrefix = "min(";
// Larger than any dimension of a real model. The limits bound the work that a hostile model can
// cause.
constexpr size_t kMaxTerms = 64, kMaxFactors = 16, kMaxText = 1024;

constexpr std::string_view kInt64MinDigits = "9223372036854775808";  // after a minus sign

int64_t floor_div_int(int64_t a, int64_t divisor) {
  return a / divisor - (a % divisor < 0);
}

// A recursive-descent parser of the grammar of plan.12. Spaces are removed beforehand.
class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}
  bool done() const { return rest_.empty(); }
  bool accept(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // EXPRESSION = [-] TERM {+|- TERM}
  std::optional<DimExpr> expression() {
    DimExpr total;
    for (bool first = true;; first = false) {
      const bool minus = accept('-');
      if (!minus && !first && !accept('+')) return total;
      // INT64_MIN is the only value whose magnitude number() cannot represent. It can only come
      // last.
      const bool lowest = minus && rest_ == kInt64MinDigits;
      if (lowest) rest_ = {};
      const std::optional<DimExpr> one = lowest ? DimExpr(INT64_MIN) : term();
      const std::optional<DimExpr> next = !one               ? one
                                          : minus && !lowest ? difference(total, *one)
                                                             : sum(total, *one);
      if (!next) return next;
      total = *next;
    }
  }
  std::optional<int64_t> number() {
    int64_t n;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), n);
    if (error != std::errc() || n < 0) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return n;
  }

 private:
  // TERM = FACTOR {* FACTOR}
  std::optional<DimExpr> term() {
    std::optional<DimExpr> all = factor();
    while (all && accept('*')) {
      const std::optional<DimExpr> next = factor();
      all = next ? product(*all, *next) : next;
    }
    return all;
  }
  // NUMBER | SYMBOL | (EXPRESSION)/NUMBER | min(EXPRESSION,EXPRESSION)
  std::optional<DimExpr> factor() {
    if (accept('(')) {
      const std::optional<DimExpr> inner = expression();
      if (!inner || !accept(')') || !accept('/')) return std::nullopt;
      const std::optional<int64_t> by = number();
      return by && *by > 0 ? floor_div_unmerged(*inner, *by) : std::nullopt;
    }
    if (rest_.starts_with(kMinPrefix)) {
      rest_.remove_prefix(kMinPrefix.size());
      const std::optional<DimExpr> a = expression(), b = a && accept(',') ? expression() : std::nullopt;
      return b && accept(')') ? symbolic_min(*a, *b) : std::nullopt;
    }
    if (const std::optional<int64_t> n = number()) return DimExpr(*n);
    size_t length = 0;
    if (!rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9') return std::nullopt;
    auto in_name = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    while (length < rest_.size() && in_name(rest_[length])) ++length;
    if (length == 0) return std::nullopt;
    DimExpr name = DimExpr::symbol(std::string(rest_.substr(0, length)));
    rest_.remove_prefix(length);
    return name;
  }

  std::string_view rest_;
};

}  // namespace

DimExpr::Factor::Factor(std::string symbol)
    : node_(std::make_shared<const Node>(Node{std::move(symbol), std::nullopt})) {}
DimExpr::Factor::Factor(Composite c) {
  std::string text = c.divisor ? "(" + c.first.text() + ")/" + std::to_string(c.divisor)
                               : std::string(kMinPrefix) + c.first.text() + "," + c.second.text() + ")";
  node_ = std::make_shared<const Node>(Node{std::move(text), std::move(c)});
}

DimExpr::DimExpr(Terms terms) {
  if (!terms.empty()) terms_ = std::make_shared<const Terms>(std::move(terms));
}
DimExpr::DimExpr(int64_t constant) : DimExpr(constant ? Terms{{{}, constant}} : Terms()) {}
DimExpr::DimExpr(Factor factor) : DimExpr(Terms{{{std::move(factor)}, 1}}) {}
DimExpr DimExpr::symbol(std::string name) {
  return DimExpr(Factor(std::move(name)));
}

const DimExpr::Terms& DimExpr::terms() const {
  static const Terms zero;
  return terms_ ? *terms_ : zero;
}

std::optional<DimExpr> DimExpr::parse_canonical(std::string_view text) {
  std::optional<DimExpr> p = parse(std::string(text));
  return p && p->text() == text ? p : std::nullopt;
}

std::optional<DimExpr> DimExpr::parse(std::string text) {
  if (text.size() > kMaxText) return std::nullopt;
  std::erase(text, ' ');
  Parser parser(text);
  std::optional<DimExpr> p = parser.expression();
  return p && parser.done() ? p : std::nullopt;
}

std::string DimExpr::text() const {
  std::string s;
  for (const auto& [monomial, times] : terms()) {
    if (times < 0) {
      s += '-';
    } else if (!s.empty()) {
      s += '+';
    }
    const std::string digits = std::to_string(times).substr(times < 0);
    if (monomial.empty() || digits != "1") s += digits;
    for (size_t i = 0; i < monomial.size(); ++i) {
      if (i || digits != "1") s += '*';
      s += monomial[i].text();
    }
  }
  return s.empty() ? "0" : s;
}

std::optional<int64_t> DimExpr::constant() const {
  if (!terms_) return 0;
  if (terms_->size() == 1 && terms_->begin()->first.empty()) return terms_->begin()->second;
  return std::nullopt;
}

const std::string* DimExpr::as_symbol() const {
  if (!terms_ || terms_->size() != 1) return nullptr;
  const auto& [monomial, times] = *terms_->begin();
  const bool is_symbol = times == 1 && monomial.size() == 1 && !monomial[0].composite();
  return is_symbol ? &monomial[0].text() : nullptr;
}

size_t DimExpr::hash() const {
  size_t h = 0;
  const auto add = [&h](size_t value) { h = h * 31 + value; };
  for (const auto& [monomial, times] : terms()) {
    add(static_cast<size_t>(times));
    for (const Factor& factor : monomial) add(std::hash<std::string>()(factor.text()));
  }
  return h;
}

std::optional<int64_t> DimExpr::evaluate(const Lookup& lookup) const {
  int64_t total = 0;
  for (const auto& [monomial, times] : terms()) {
    int64_t all = times;
    for (const Factor& factor : monomial) {
      std::optional<int64_t> v;
      if (const Factor::Composite* parts = factor.composite()) {
        const std::optional<int64_t> first = parts->first.evaluate(lookup),
                                     second = parts->second.evaluate(lookup);
        if (first && second)
          v = parts->divisor ? floor_div_int(*first, parts->divisor) : std::min(*first, *second);
      } else {
        v = lookup(factor.text());
      }
      if (!v || __builtin_mul_overflow(all, *v, &all)) return std::nullopt;
    }
    if (__builtin_add_overflow(total, all, &total)) return std::nullopt;
  }
  return total;
}

std::optional<DimExpr> DimExpr::substitute(const Substitution& substitution) const {
  std::optional<DimExpr> total = DimExpr();
  for (const auto& [monomial, times] : terms()) {
    std::optional<DimExpr> all = DimExpr(times);
    for (const Factor& factor : monomial) {
      std::optional<DimExpr> v;
      if (const Factor::Composite* parts = factor.composite()) {
        const std::optional<DimExpr> first = parts->first.substitute(substitution),
                                     second = parts->second.substitute(substitution);
        if (first && second)
          v = parts->divisor ? floor_div_unmerged(*first, parts->divisor) : minimum(*first, *second);
      } else {
        v = substitution(factor.text());
        if (!v) v = DimExpr(factor);
      }
      if (all) all = v ? product(*all, *v) : v;
    }
    if (total) total = all ? sum(*total, *all) : all;
  }
  return total;
}

bool DimExpr::all_symbols(const std::function<bool(const std::string&)>& predicate) const {
  for (const auto& [monomial, times] : terms())
    for (const Factor& factor : monomial) {
      const Factor::Composite* parts = factor.composite();
      if (parts ? !parts->first.all_symbols(predicate) || !parts->second.all_symbols(predicate)
                : !predicate(factor.text()))
        return false;
    }
  return true;
}

// The text of a factor contains the texts of all factors inside, so one search covers them.
bool DimExpr::has_no_subtraction() const {
  for (const auto& [monomial, times] : terms()) {
    if (times < 0) return false;
    for (const Factor& factor : monomial)
      if (factor.text().find('-') != std::string::npos) return false;
  }
  return true;
}

bool DimExpr::is_nonnegative() const {
  constexpr int kMaxDepth = 6;
  return is_nonnegative(kMaxDepth);
}
bool DimExpr::is_nonnegative(int depth) const {
  return has_no_subtraction() ||
         (depth > 0 && (nonnegative_by_cases(true, depth) || nonnegative_by_cases(false, depth)));
}
// Replaces the first min(a, b) by a and by b. Where the min is added, both cases must hold, since
// it equals one of them. Where it is subtracted, one case suffices, since it exceeds neither.
bool DimExpr::nonnegative_by_cases(bool subtracted, int depth) const {
  for (const auto& [monomial, times] : terms())
    for (size_t i = 0; (times < 0) == subtracted && i < monomial.size(); ++i) {
      const Factor::Composite* parts = monomial[i].composite();
      if (!parts || parts->divisor) continue;
      Monomial others = monomial;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      const DimExpr cofactor(Terms{{others, 1}}), term(Terms{{monomial, times}});
      const std::optional<DimExpr> rest = difference(*this, term), scale = product(cofactor, times);
      if (!cofactor.has_no_subtraction() || !rest || !scale) continue;
      const auto holds = [&](const DimExpr& operand) {
        const std::optional<DimExpr> replaced = product(*scale, operand);
        const std::optional<DimExpr> total = replaced ? sum(*rest, *replaced) : replaced;
        return total && total->is_nonnegative(depth - 1);
      };
      return subtracted ? holds(parts->first) || holds(parts->second)
                        : holds(parts->first) && holds(parts->second);
    }
  return false;
}

std::optional<DimExpr> sum(const DimExpr& a, const DimExpr& b) {
  DimExpr::Terms terms = a.terms();
  for (const auto& [monomial, times] : b.terms()) {
    int64_t& n = terms[monomial];
    if (__builtin_add_overflow(n, times, &n)) return std::nullopt;
    if (n == INT64_MIN && !monomial.empty()) return std::nullopt;
    if (n == 0) terms.erase(monomial);
  }
  // The text must stay short enough to be parsed again. An upper bound avoids writing it each time.
  constexpr size_t kDigits = 20;
  size_t size = 0;
  for (const auto& [monomial, times] : terms) {
    size += kDigits;
    for (const DimExpr::Factor& factor : monomial) size += factor.text().size() + 1;
  }
  const DimExpr all(std::move(terms));
  const bool fits = all.terms().size() <= kMaxTerms && (size <= kMaxText || all.text().size() <= kMaxText);
  return fits ? std::optional(all) : std::nullopt;
}

std::optional<DimExpr> product(const DimExpr& a, const DimExpr& b) {
  DimExpr all;
  for (const auto& [left, m] : a.terms())
    for (const auto& [right, n] : b.terms()) {
      DimExpr::Monomial both = left;
      both.insert(both.end(), right.begin(), right.end());
      std::sort(both.begin(), both.end());
      int64_t times;
      if (both.size() > kMaxFactors || __builtin_mul_overflow(m, n, &times)) return std::nullopt;
      const std::optional<DimExpr> next = sum(all, DimExpr(DimExpr::Terms{{std::move(both), times}}));
      if (!next) return next;
      all = *next;
    }
  return all;
}

std::optional<DimExpr> exact_div(const DimExpr& a, const DimExpr& b) {
  if (!b.terms_) return std::nullopt;
  // Polynomial long division: terms are in graded lexicographic order, so the leading term decides.
  const auto& [divisor, coefficient] = *b.terms().begin();
  DimExpr remainder = a, quotient;
  while (remainder.terms_) {
    const auto& [lead, times] = *remainder.terms().begin();
    if (times % coefficient != 0 || !std::includes(lead.begin(), lead.end(), divisor.begin(), divisor.end()))
      return std::nullopt;
    DimExpr::Monomial monomial;
    std::set_difference(lead.begin(), lead.end(), divisor.begin(), divisor.end(),
                        std::back_inserter(monomial));
    const DimExpr one(DimExpr::Terms{{std::move(monomial), times / coefficient}});
    const std::optional<DimExpr> subtrahend = product(one, b), more = sum(quotient, one);
    const std::optional<DimExpr> next = subtrahend ? difference(remainder, *subtrahend) : subtrahend;
    if (!next || !more) return std::nullopt;
    remainder = *next, quotient = *more;
  }
  return quotient;
}

// Normal form: common terms and the common divisor of the rest stand outside of min(...), so equal
// minima have one text.
std::optional<DimExpr> symbolic_min(const DimExpr& a, const DimExpr& b) {
  const std::optional<DimExpr> gap = difference(a, b);
  if (!gap || !gap->terms_) return gap ? std::optional(a) : gap;
  const bool ahead = gap->terms().begin()->second > 0;  // the leading term of the difference is of a
  DimExpr::Terms first, second;
  int64_t common = 0;
  for (const auto& [monomial, times] : gap->terms()) {
    if (times == INT64_MIN) return std::nullopt;
    ((times > 0) == ahead ? first : second)[monomial] = std::abs(times);
    common = std::gcd(common, times);
  }
  const DimExpr leading(first);
  const std::optional<DimExpr> shared = difference(ahead ? a : b, leading);
  if (leading.has_no_subtraction() && second.empty()) return ahead ? b : a;
  for (DimExpr::Terms* p : {&first, &second})
    for (auto& [monomial, times] : *p) times /= common;
  const DimExpr::Factor factor({DimExpr(std::move(first)), DimExpr(std::move(second))});
  if (!shared || factor.text().size() > kMaxText / 4) return std::nullopt;
  const std::optional<DimExpr> least = product(DimExpr(factor), common);
  return least ? sum(*shared, *least) : least;
}

std::optional<DimExpr> minimum(const DimExpr& a, const DimExpr& b) {
  const std::optional<DimExpr> more = difference(b, a), less = difference(a, b);
  return more && more->is_nonnegative() ? a : less && less->is_nonnegative() ? b : symbolic_min(a, b);
}
std::optional<DimExpr> maximum(const DimExpr& a, const DimExpr& b) {
  const std::optional<DimExpr> both = sum(a, b), first = minimum(a, b);
  return both && first ? difference(*both, *first) : std::nullopt;
}

// Normal form: multiples of the divisor stand outside of the division and the fraction is reduced,
// so equal divisions have one text.
std::optional<DimExpr> floor_div_unmerged(const DimExpr& a, int64_t divisor) {
  DimExpr::Terms whole, rest;
  int64_t common = divisor;
  for (const auto& [monomial, times] : a.terms()) {
    const int64_t outside = monomial.empty()  ? floor_div_int(times, divisor)
                            : times % divisor ? 0
                                              : times / divisor;
    const int64_t inside = times - outside * divisor;
    if (outside) whole[monomial] = outside;
    if (inside) rest[monomial] = inside, common = std::gcd(common, inside);
  }
  for (auto& [monomial, times] : rest) times /= common;
  const DimExpr numerator(std::move(rest));
  if (numerator.constant()) return DimExpr(std::move(whole));  // the remainder is less than the divisor
  const DimExpr::Factor factor({numerator, {}, divisor / common});
  if (factor.text().size() > kMaxText / 4) return std::nullopt;
  return sum(DimExpr(std::move(whole)), DimExpr(factor));
}

// floor((floor(S / N) + c) / d) == floor((S + c N) / (N d)).
std::optional<DimExpr> floor_div(const DimExpr& a, int64_t divisor) {
  const auto& terms = a.terms();
  const bool single = !terms.empty() && terms.begin()->second == 1 && terms.begin()->first.size() == 1;
  const DimExpr::Factor::Composite* parts = single ? terms.begin()->first[0].composite() : nullptr;
  const auto shift = parts ? difference(a, DimExpr(terms.begin()->first[0])) : std::nullopt;
  int64_t all;
  if (parts && parts->divisor && shift && shift->constant() &&
      !__builtin_mul_overflow(parts->divisor, divisor, &all)) {
    const std::optional<DimExpr> more = product(*shift, parts->divisor);
    const std::optional<DimExpr> whole = more ? sum(parts->first, *more) : more;
    if (whole) return floor_div_unmerged(*whole, all);
  }
  return floor_div_unmerged(a, divisor);
}

}  // namespace invar
