// Dimensions that are computed from named ones: integer polynomials, their quotients and the smaller of two, such as batch*seq,
// past+seq-1, (height+1)/2 and min(seq,16). spec/plan.md plan.12.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace invar {

class Polynomial {
 public:
  Polynomial(int64_t constant = 0) {
    if (constant) terms_[{}] = constant;
  }
  static Polynomial of(std::string name) {
    Polynomial p;
    p.terms_[{std::move(name)}] = 1;
    return p;
  }
  // What text() wrote, nothing else.
  static std::optional<Polynomial> parse(std::string_view);
  // Any sum of products, with spaces.
  static std::optional<Polynomial> read(std::string text);
  std::string text() const;

  std::optional<int64_t> constant() const;
  // Its value for those of the names; nothing where a name has none or a number does not fit into 64 bits.
  using Lookup = std::function<std::optional<int64_t>(const std::string& name)>;
  std::optional<int64_t> value(const Lookup&) const;
  // With something else in the place of names of which `of` says what; nothing where the result is too large to be of use.
  using Replacement = std::function<std::optional<Polynomial>(const std::string& name)>;
  std::optional<Polynomial> with(const Replacement& of) const;
  bool all_names(const std::function<bool(const std::string&)>&) const;
  // Names are of dimensions, which are never negative: what follows for all of them.
  bool never_negative() const;
  bool operator==(const Polynomial&) const = default;

  // Nothing where the result is too large to be of use.
  friend std::optional<Polynomial> sum(const Polynomial&, const Polynomial&);
  friend std::optional<Polynomial> product(const Polynomial&, const Polynomial&);
  // The polynomial that times b is a.
  friend std::optional<Polynomial> exact_quotient(const Polynomial& a, const Polynomial& b);
  // Rounded down; by > 0.
  friend std::optional<Polynomial> floor_quotient(const Polynomial& a, int64_t by);
  friend std::optional<Polynomial> smaller(const Polynomial& a, const Polynomial& b);

  // A product of names, quotients "(TEXT)/N" and "min(TEXT,TEXT)", in ascending order.
  using Monomial = std::vector<std::string>;
  // The order in which they are written: by degree, the highest first. Products keep it, which division needs.
  struct Before {
    bool operator()(const Monomial& a, const Monomial& b) const {
      return a.size() != b.size() ? a.size() > b.size() : a < b;
    }
  };
  const auto& terms() const { return terms_; }
  // What a factor stands for: `first` over `by`, or (by = 0) the smaller of `first` and `second`; nothing for a name.
  struct Parts;
  static std::optional<Parts> parts_of(const std::string& factor);

 private:
  bool adds_only() const;  // nothing is subtracted, in factors neither
  bool never_negative(int tries) const;
  bool by_parts(bool subtracted, int tries) const;
  std::map<Monomial, int64_t, Before> terms_;  // no factor is 0
};

struct Polynomial::Parts {
  Polynomial first, second;
  int64_t by = 0;
};

std::optional<Polynomial> sum(const Polynomial&, const Polynomial&);
std::optional<Polynomial> product(const Polynomial&, const Polynomial&);
std::optional<Polynomial> smaller(const Polynomial&, const Polynomial&);
std::optional<Polynomial> exact_quotient(const Polynomial& a, const Polynomial& b);
std::optional<Polynomial> floor_quotient(const Polynomial& a, int64_t by);
// The same, of a quotient of a quotient one: texts may hold either.
std::optional<Polynomial> quotient(const Polynomial& a, int64_t by);
inline std::optional<Polynomial> difference(const Polynomial& a, const Polynomial& b) {
  const std::optional<Polynomial> negative = product(b, -1);
  return negative ? sum(a, *negative) : std::nullopt;
}

// The smaller and the larger, one of them where it is known which it is.
std::optional<Polynomial> least(const Polynomial& a, const Polynomial& b);
std::optional<Polynomial> most(const Polynomial& a, const Polynomial& b);

}  // namespace invar
