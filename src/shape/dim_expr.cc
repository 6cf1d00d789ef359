#include "shape/dim_expr.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace invar {
namespace {

constexpr std::string_view kSmaller = "min(";  // of two, in texts
// More than a dimension of a model has; a hostile one asks for no more work than this.
constexpr size_t kMostTerms = 64, kMostFactors = 16, kMostText = 1024;

constexpr std::string_view kLowest = "9223372036854775808";  // behind a minus

int64_t floored(int64_t a, int64_t by) {
  return a / by - (a % by < 0);
}

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  bool done() const { return rest_.empty(); }
  bool accept(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // [-] TERM {+|- TERM}
  std::optional<Polynomial> polynomial() {
    Polynomial total;
    for (bool first = true;; first = false) {
      const bool minus = accept('-');
      if (!minus && !first && !accept('+')) return total;
      const bool lowest = minus && rest_ == kLowest;  // the last term, whose negative is no number
      if (lowest) rest_ = {};
      const std::optional<Polynomial> one = lowest ? Polynomial(INT64_MIN) : term();
      const std::optional<Polynomial> next = !one               ? one
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
  std::optional<Polynomial> term() {
    std::optional<Polynomial> all = factor();
    while (all && accept('*')) {
      const std::optional<Polynomial> next = factor();
      all = next ? product(*all, *next) : next;
    }
    return all;
  }
  // A number, a name, (POLYNOMIAL)/NUMBER or min(POLYNOMIAL,POLYNOMIAL).
  std::optional<Polynomial> factor() {
    if (accept('(')) {
      const std::optional<Polynomial> inner = polynomial();
      if (!inner || !accept(')') || !accept('/')) return std::nullopt;
      const std::optional<int64_t> by = number();
      return by && *by > 0 ? floor_quotient(*inner, *by) : std::nullopt;
    }
    if (rest_.starts_with(kSmaller)) {
      rest_.remove_prefix(kSmaller.size());
      const std::optional<Polynomial> a = polynomial(), b = a && accept(',') ? polynomial() : std::nullopt;
      return b && accept(')') ? smaller(*a, *b) : std::nullopt;
    }
    if (const std::optional<int64_t> n = number()) return Polynomial(*n);
    size_t length = 0;
    if (!rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9') return std::nullopt;
    auto in_name = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    while (length < rest_.size() && in_name(rest_[length])) ++length;
    if (length == 0) return std::nullopt;
    Polynomial name = Polynomial::of(std::string(rest_.substr(0, length)));
    rest_.remove_prefix(length);
    return name;
  }

  std::string_view rest_;
};

}  // namespace

std::optional<Polynomial> Polynomial::parse(std::string_view text) {
  std::optional<Polynomial> p = read(std::string(text));
  return p && p->text() == text ? p : std::nullopt;
}

std::optional<Polynomial> Polynomial::read(std::string text) {
  if (text.size() > kMostText) return std::nullopt;
  std::erase(text, ' ');
  Reader reader(text);
  std::optional<Polynomial> p = reader.polynomial();
  return p && reader.done() ? p : std::nullopt;
}

std::string Polynomial::text() const {
  std::string s;
  for (const auto& [monomial, times] : terms_) {
    if (times < 0) {
      s += '-';
    } else if (!s.empty()) {
      s += '+';
    }
    const std::string digits = std::to_string(times).substr(times < 0);
    if (monomial.empty() || digits != "1") s += digits;
    for (size_t i = 0; i < monomial.size(); ++i) {
      if (i || digits != "1") s += '*';
      s += monomial[i];
    }
  }
  return s.empty() ? "0" : s;
}

std::optional<int64_t> Polynomial::constant() const {
  if (terms_.empty()) return 0;
  if (terms_.size() == 1 && terms_.begin()->first.empty()) return terms_.begin()->second;
  return std::nullopt;
}

std::optional<Polynomial::Parts> Polynomial::parts_of(const std::string& factor) {
  const bool quotient = factor.starts_with('('), least = factor.ends_with(')');
  if (!quotient && !least) return std::nullopt;
  Reader reader(std::string_view(factor).substr(quotient ? 1 : kSmaller.size()));
  Parts parts;
  std::optional<Polynomial> p = reader.polynomial();
  if (!p || !reader.accept(quotient ? ')' : ',')) return std::nullopt;
  parts.first = *std::move(p);
  if (quotient) {
    const std::optional<int64_t> n = reader.accept('/') ? reader.number() : std::nullopt;
    if (!n || *n < 1) return std::nullopt;
    parts.by = *n;
    return parts;
  }
  p = reader.polynomial();
  if (!p) return std::nullopt;
  parts.second = *std::move(p);
  return parts;
}

std::optional<int64_t> Polynomial::value(const Lookup& lookup) const {
  int64_t total = 0;
  for (const auto& [monomial, times] : terms_) {
    int64_t all = times;
    for (const std::string& factor : monomial) {
      std::optional<int64_t> v;
      if (const auto parts = parts_of(factor)) {
        const std::optional<int64_t> first = parts->first.value(lookup), second = parts->second.value(lookup);
        if (first && second) v = parts->by ? floored(*first, parts->by) : std::min(*first, *second);
      } else {
        v = lookup(factor);
      }
      if (!v || __builtin_mul_overflow(all, *v, &all)) return std::nullopt;
    }
    if (__builtin_add_overflow(total, all, &total)) return std::nullopt;
  }
  return total;
}

std::optional<Polynomial> Polynomial::with(const Replacement& of) const {
  std::optional<Polynomial> total = Polynomial();
  for (const auto& [monomial, times] : terms_) {
    std::optional<Polynomial> all = Polynomial(times);
    for (const std::string& factor : monomial) {
      std::optional<Polynomial> v;
      if (const auto parts = parts_of(factor)) {
        const std::optional<Polynomial> first = parts->first.with(of), second = parts->second.with(of);
        if (first && second) v = parts->by ? floor_quotient(*first, parts->by) : least(*first, *second);
      } else {
        v = of(factor);
        if (!v) v = Polynomial::of(factor);
      }
      if (all) all = v ? product(*all, *v) : v;
    }
    if (total) total = all ? sum(*total, *all) : all;
  }
  return total;
}

bool Polynomial::all_names(const std::function<bool(const std::string&)>& is) const {
  for (const auto& [monomial, times] : terms_)
    for (const std::string& factor : monomial) {
      const auto parts = parts_of(factor);
      if (parts ? !parts->first.all_names(is) || !parts->second.all_names(is) : !is(factor)) return false;
    }
  return true;
}

// Factors are never negative by the same rule, and stand in the text.
bool Polynomial::adds_only() const {
  return text().find('-') == std::string::npos;
}

bool Polynomial::never_negative() const {
  constexpr int kTries = 6;
  return never_negative(kTries);
}
// The smaller of two is one of them, so what holds of both holds; where it is subtracted, what holds of either.
bool Polynomial::never_negative(int tries) const {
  return adds_only() || (tries > 0 && (by_parts(true, tries) || by_parts(false, tries)));
}
bool Polynomial::by_parts(bool subtracted, int tries) const {
  for (const auto& [monomial, times] : terms_)
    for (size_t i = 0; (times < 0) == subtracted && i < monomial.size(); ++i) {
      const auto parts = parts_of(monomial[i]);
      if (!parts || parts->by) continue;
      Polynomial beside, whole;
      Monomial others = monomial;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      beside.terms_[others] = 1, whole.terms_[monomial] = times;
      const std::optional<Polynomial> rest = difference(*this, whole), all = product(beside, times);
      if (!beside.adds_only() || !rest || !all) continue;
      const auto holds = [&](const Polynomial& part) {
        const std::optional<Polynomial> least = product(*all, part);
        const std::optional<Polynomial> left = least ? sum(*rest, *least) : least;
        return left && left->never_negative(tries - 1);
      };
      return subtracted ? holds(parts->first) || holds(parts->second)
                        : holds(parts->first) && holds(parts->second);
    }
  return false;
}

std::optional<Polynomial> sum(const Polynomial& a, const Polynomial& b) {
  Polynomial all = a;
  for (const auto& [monomial, times] : b.terms_) {
    int64_t& n = all.terms_[monomial];
    if (__builtin_add_overflow(n, times, &n)) return std::nullopt;
    if (n == INT64_MIN && !monomial.empty()) return std::nullopt;
    if (n == 0) all.terms_.erase(monomial);
  }
  // What has a text that can be read.
  constexpr size_t kDigits = 20;
  size_t size = 0;
  for (const auto& [monomial, times] : all.terms_) {
    size += kDigits;
    for (const std::string& factor : monomial) size += factor.size() + 1;
  }
  const bool fits = all.terms_.size() <= kMostTerms && (size <= kMostText || all.text().size() <= kMostText);
  return fits ? std::optional(all) : std::nullopt;
}

std::optional<Polynomial> product(const Polynomial& a, const Polynomial& b) {
  Polynomial all;
  for (const auto& [left, m] : a.terms_)
    for (const auto& [right, n] : b.terms_) {
      Polynomial one;
      Polynomial::Monomial both = left;
      both.insert(both.end(), right.begin(), right.end());
      std::sort(both.begin(), both.end());
      int64_t times;
      if (both.size() > kMostFactors || __builtin_mul_overflow(m, n, &times)) return std::nullopt;
      one.terms_[std::move(both)] = times;
      const std::optional<Polynomial> next = sum(all, one);
      if (!next) return next;
      all = *next;
    }
  return all;
}

std::optional<Polynomial> exact_quotient(const Polynomial& a, const Polynomial& b) {
  if (b.terms_.empty()) return std::nullopt;
  const auto& [by, divisor] = *b.terms_.begin();
  Polynomial rest = a, all;
  while (!rest.terms_.empty()) {
    const auto& [lead, times] = *rest.terms_.begin();
    if (times % divisor != 0 || !std::includes(lead.begin(), lead.end(), by.begin(), by.end()))
      return std::nullopt;
    Polynomial one;
    Polynomial::Monomial left;
    std::set_difference(lead.begin(), lead.end(), by.begin(), by.end(), std::back_inserter(left));
    one.terms_[left] = times / divisor;
    const std::optional<Polynomial> gone = product(one, b), more = sum(all, one);
    const std::optional<Polynomial> next = gone ? difference(rest, *gone) : gone;
    if (!next || !more) return std::nullopt;
    rest = *next, all = *more;
  }
  return all;
}

// What both have stands outside, and so does what divides the rest: equal ones have one text.
std::optional<Polynomial> smaller(const Polynomial& a, const Polynomial& b) {
  const std::optional<Polynomial> gap = difference(a, b);
  if (!gap || gap->terms_.empty()) return gap ? std::optional(a) : gap;
  const bool ahead = gap->terms_.begin()->second > 0;  // the first term is a's
  Polynomial first, second;
  int64_t common = 0;
  for (const auto& [monomial, times] : gap->terms_) {
    if (times == INT64_MIN) return std::nullopt;
    ((times > 0) == ahead ? first : second).terms_[monomial] = std::abs(times);
    common = std::gcd(common, times);
  }
  const std::optional<Polynomial> shared = difference(ahead ? a : b, first);
  if (first.adds_only() && second.terms_.empty()) return ahead ? b : a;
  for (Polynomial* p : {&first, &second})
    for (auto& [monomial, times] : p->terms_) times /= common;
  const std::string factor = std::string(kSmaller) + first.text() + "," + second.text() + ")";
  if (!shared || factor.size() > kMostText / 4) return std::nullopt;
  const std::optional<Polynomial> least = product(Polynomial::of(factor), common);
  return least ? sum(*shared, *least) : least;
}

std::optional<Polynomial> least(const Polynomial& a, const Polynomial& b) {
  const std::optional<Polynomial> more = difference(b, a), less = difference(a, b);
  return more && more->never_negative() ? a : less && less->never_negative() ? b : smaller(a, b);
}
std::optional<Polynomial> most(const Polynomial& a, const Polynomial& b) {
  const std::optional<Polynomial> both = sum(a, b), first = least(a, b);
  return both && first ? difference(*both, *first) : std::nullopt;
}

// What divides stands outside of the quotient, so equal quotients have one text.
std::optional<Polynomial> floor_quotient(const Polynomial& a, int64_t by) {
  Polynomial whole, rest;
  int64_t common = by;
  for (const auto& [monomial, times] : a.terms_) {
    const int64_t outside = monomial.empty() ? floored(times, by) : times % by ? 0 : times / by;
    const int64_t inside = times - outside * by;
    if (outside) whole.terms_[monomial] = outside;
    if (inside) rest.terms_[monomial] = inside, common = std::gcd(common, inside);
  }
  for (auto& [monomial, times] : rest.terms_) times /= common;
  if (rest.constant()) return whole;  // below 1
  const std::string factor = "(" + rest.text() + ")/" + std::to_string(by / common);
  if (factor.size() > kMostText / 4) return std::nullopt;
  return sum(whole, Polynomial::of(factor));
}

// The whole part of (S/N + c) / by is that of (S + cN) / (N by).
std::optional<Polynomial> quotient(const Polynomial& a, int64_t by) {
  const auto& terms = a.terms();
  const bool single = !terms.empty() && terms.begin()->second == 1 && terms.begin()->first.size() == 1;
  const auto parts = single ? Polynomial::parts_of(terms.begin()->first[0]) : std::nullopt;
  const auto shift = parts ? difference(a, Polynomial::of(terms.begin()->first[0])) : std::nullopt;
  int64_t all;
  if (parts && parts->by && shift && shift->constant() && !__builtin_mul_overflow(parts->by, by, &all)) {
    const std::optional<Polynomial> more = product(*shift, parts->by);
    const std::optional<Polynomial> whole = more ? sum(parts->first, *more) : more;
    if (whole) return floor_quotient(*whole, all);
  }
  return floor_quotient(a, by);
}

}  // namespace invar
