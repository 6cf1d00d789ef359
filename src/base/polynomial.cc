#include "base/polynomial.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace invar {
namespace {

// More than a dimension of a model has; a hostile one asks for no more work than this.
constexpr size_t kMostTerms = 64, kMostFactors = 16, kMostText = 1024;

int64_t floored(int64_t a, int64_t by) {
  return a / by - (a % by < 0);
}

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  bool done() const { return rest_.empty(); }

  // [-] TERM {+|- TERM}
  std::optional<Polynomial> polynomial() {
    Polynomial total;
    for (bool first = true;; first = false) {
      const bool minus = accept('-');
      if (!minus && !first && !accept('+')) return total;
      const std::optional<Polynomial> one = term();
      const std::optional<Polynomial> next = !one ? one : minus ? difference(total, *one) : sum(total, *one);
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
  bool accept(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::optional<Polynomial> term() {
    std::optional<Polynomial> all = factor();
    while (all && accept('*')) {
      const std::optional<Polynomial> next = factor();
      all = next ? product(*all, *next) : next;
    }
    return all;
  }
  // A number, a name, or (POLYNOMIAL)/NUMBER.
  std::optional<Polynomial> factor() {
    if (accept('(')) {
      const std::optional<Polynomial> inner = polynomial();
      if (!inner || !accept(')') || !accept('/')) return std::nullopt;
      const std::optional<int64_t> by = number();
      return by && *by > 0 ? floor_quotient(*inner, *by) : std::nullopt;
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

std::optional<std::pair<Polynomial, int64_t>> Polynomial::quotient_of(const std::string& factor) {
  if (factor.empty() || factor[0] != '(') return std::nullopt;
  const size_t end = factor.rfind(")/");
  Reader inner(std::string_view(factor).substr(1, end - 1)), by(std::string_view(factor).substr(end + 2));
  const std::optional<Polynomial> p = inner.polynomial();
  const std::optional<int64_t> n = by.number();
  if (!p || !n || *n < 1) return std::nullopt;
  return std::pair(*p, *n);
}

std::optional<int64_t> Polynomial::value(const Lookup& lookup) const {
  int64_t total = 0;
  for (const auto& [monomial, times] : terms_) {
    int64_t all = times;
    for (const std::string& factor : monomial) {
      std::optional<int64_t> v;
      if (const auto parts = quotient_of(factor)) {
        v = parts->first.value(lookup);
        if (v) v = floored(*v, parts->second);
      } else {
        v = lookup(factor);
      }
      if (!v || __builtin_mul_overflow(all, *v, &all)) return std::nullopt;
    }
    if (__builtin_add_overflow(total, all, &total)) return std::nullopt;
  }
  return total;
}

bool Polynomial::all_names(const std::function<bool(const std::string&)>& is) const {
  for (const auto& [monomial, times] : terms_)
    for (const std::string& factor : monomial) {
      const auto parts = quotient_of(factor);
      if (parts ? !parts->first.all_names(is) : !is(factor)) return false;
    }
  return true;
}

bool Polynomial::never_negative() const {
  for (const auto& [monomial, times] : terms_) {
    if (times < 0) return false;
    for (const std::string& factor : monomial)
      if (const auto parts = quotient_of(factor); parts && !parts->first.never_negative()) return false;
  }
  return true;
}

std::optional<Polynomial> sum(const Polynomial& a, const Polynomial& b) {
  Polynomial all = a;
  for (const auto& [monomial, times] : b.terms_) {
    int64_t& n = all.terms_[monomial];
    if (__builtin_add_overflow(n, times, &n)) return std::nullopt;
    if (n == 0) all.terms_.erase(monomial);
  }
  return all.terms_.size() > kMostTerms ? std::nullopt : std::optional(all);
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

}  // namespace invar
