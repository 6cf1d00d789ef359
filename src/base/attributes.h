// Attributes of an operation: integers, floats (as bits, so that text round-trips exactly) and
// strings.
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
using AttributeValue = std::variant<int64_t, F32Bits, std::string, std::vector<int64_t>>;

// A map from names to values, ascending. Attributes are few, and kernels read them several times in
// calls that may take a microsecond, so they are contiguous and a search allocates nothing.
class Attributes {
 public:
  using value_type = std::pair<std::string, AttributeValue>;
  using iterator = std::vector<value_type>::iterator;
  using const_iterator = std::vector<value_type>::const_iterator;

  Attributes() = default;
  Attributes(std::initializer_list<value_type>);
  bool operator==(const Attributes&) const = default;

  iterator begin() { return entries_.begin(); }
  iterator end() { return entries_.end(); }
  const_iterator begin() const { return entries_.begin(); }
  const_iterator end() const { return entries_.end(); }
  bool empty() const { return entries_.empty(); }

  const_iterator find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != end(); }
  const AttributeValue& at(std::string_view name) const;  // throws if there is none
  // False: the name exists, and its value stays.
  bool emplace(std::string_view name, AttributeValue value);
  AttributeValue& operator[](std::string_view name);
  void erase(const_iterator it) { entries_.erase(it); }

  // The value, or the fallback if the attribute is absent. A wrong type is a programmer's error
  // (std::get throws): has_attribute_types() in base/attribute_types.h checks attributes of unknown
  // origin first.
  int64_t i(std::string_view name, int64_t fallback) const;
  float f(std::string_view name, float fallback) const;

 private:
  iterator lower_bound(std::string_view name);

  std::vector<value_type> entries_;
};

}  // namespace invar
