// The map of attributes, see attributes.h.
#include "base/attributes.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace invar {

Attributes::Attributes(std::initializer_list<value_type> entries) {
  for (const auto& [name, value] : entries) emplace(name, value);
}

Attributes::iterator Attributes::lower_bound(std::string_view name) {
  return std::lower_bound(entries_.begin(), entries_.end(), name,
                          [](const value_type& e, std::string_view n) { return e.first < n; });
}

// Few names have the same length, so most comparisons end with the length.
Attributes::const_iterator Attributes::find(std::string_view name) const {
  return std::find_if(entries_.begin(), entries_.end(), [name](const value_type& e) {
    return e.first.size() == name.size() && e.first == name;
  });
}

const AttributeValue& Attributes::at(std::string_view name) const {
  const auto it = find(name);
  if (it == end()) {
#ifdef __cpp_exceptions
    throw std::out_of_range("no attribute " + std::string(name));
#else
    std::abort();
#endif
  }
  return it->second;
}

bool Attributes::emplace(std::string_view name, AttributeValue value) {
  const auto it = lower_bound(name);
  if (it != entries_.end() && it->first == name) return false;
  entries_.emplace(it, name, std::move(value));
  return true;
}

AttributeValue& Attributes::operator[](std::string_view name) {
  auto it = lower_bound(name);
  if (it == entries_.end() || it->first != name) it = entries_.emplace(it, name, AttributeValue());
  return it->second;
}

int64_t Attributes::i(std::string_view name, int64_t fallback) const {
  const auto it = find(name);
  return it == end() ? fallback : std::get<int64_t>(it->second);
}

float Attributes::f(std::string_view name, float fallback) const {
  const auto it = find(name);
  return it == end() ? fallback : std::get<F32Bits>(it->second).value();
}

}  // namespace invar
