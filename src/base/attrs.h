// Attributes of an operation: integers, floats (as bits, so that text round-trips exactly) and strings.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace invar {

struct F32Bits {
  uint32_t bits;
  float value() const { return std::bit_cast<float>(bits); }
  bool operator==(const F32Bits&) const = default;
};
using Attr = std::variant<int64_t, F32Bits, std::string, std::vector<int64_t>>;

class Attrs : public std::map<std::string, Attr> {
 public:
  using map::map;
  // The value, or the fallback where the attribute is absent. A wrong type is a programmer's error (std::get throws).
  int64_t i(const std::string& k, int64_t fallback) const {
    auto it = find(k);
    return it == end() ? fallback : std::get<int64_t>(it->second);
  }
  float f(const std::string& k, float fallback) const {
    auto it = find(k);
    return it == end() ? fallback : std::get<F32Bits>(it->second).value();
  }
};

}  // namespace invar
