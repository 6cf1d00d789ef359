// Attributes of an operation: integers, floats (as bits, so that text round-trips exactly) and strings.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace invar {

struct F32Bits {
  uint32_t bits;
  float value() const { return std::bit_cast<float>(bits); }
  bool operator==(const F32Bits&) const = default;
};
using Attr = std::variant<int64_t, F32Bits, std::string, std::vector<int64_t>>;

// A map from names, ascending. There are few, and kernels ask for them several times in a call that may take a microsecond:
// they lie side by side, and a search makes no string.
class Attrs {
 public:
  using value_type = std::pair<std::string, Attr>;
  using iterator = std::vector<value_type>::iterator;
  using const_iterator = std::vector<value_type>::const_iterator;

  Attrs() = default;
  Attrs(std::initializer_list<value_type>);
  bool operator==(const Attrs&) const = default;

  iterator begin() { return entries_.begin(); }
  iterator end() { return entries_.end(); }
  const_iterator begin() const { return entries_.begin(); }
  const_iterator end() const { return entries_.end(); }
  bool empty() const { return entries_.empty(); }

  const_iterator find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != end(); }
  const Attr& at(std::string_view name) const;  // throws where there is none
  // False: there is one of this name already, which stays.
  bool emplace(std::string_view name, Attr value);
  Attr& operator[](std::string_view name);
  void erase(const_iterator it) { entries_.erase(it); }

  // The value, or the fallback where the attribute is absent. A wrong type is a programmer's error (std::get throws).
  int64_t i(std::string_view name, int64_t fallback) const;
  float f(std::string_view name, float fallback) const;

 private:
  iterator place_of(std::string_view name);  // of the first that is not below it

  std::vector<value_type> entries_;
};

}  // namespace invar
