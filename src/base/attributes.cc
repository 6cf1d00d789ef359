#include "base/attributes.h"

#include <algorithm>
#include <stdexcept>

namespace invar {

Attrs::Attrs(std::initializer_list<value_type> entries) {
  for (const auto& [name, value] : entries) emplace(name, value);
}

Attrs::iterator Attrs::place_of(std::string_view name) {
  return std::lower_bound(entries_.begin(), entries_.end(), name,
                          [](const value_type& e, std::string_view n) { return e.first < n; });
}

// Names of the same length are rare: most entries are passed by without a look at their letters.
Attrs::const_iterator Attrs::find(std::string_view name) const {
  return std::find_if(entries_.begin(), entries_.end(), [name](const value_type& e) {
    return e.first.size() == name.size() && e.first == name;
  });
}

const Attr& Attrs::at(std::string_view name) const {
  const auto it = find(name);
  if (it == end()) throw std::out_of_range("no attribute " + std::string(name));
  return it->second;
}

bool Attrs::emplace(std::string_view name, Attr value) {
  const auto it = place_of(name);
  if (it != entries_.end() && it->first == name) return false;
  entries_.emplace(it, name, std::move(value));
  return true;
}

Attr& Attrs::operator[](std::string_view name) {
  auto it = place_of(name);
  if (it == entries_.end() || it->first != name) it = entries_.emplace(it, name, Attr());
  return it->second;
}

int64_t Attrs::i(std::string_view name, int64_t fallback) const {
  const auto it = find(name);
  return it == end() ? fallback : std::get<int64_t>(it->second);
}

float Attrs::f(std::string_view name, float fallback) const {
  const auto it = find(name);
  return it == end() ? fallback : std::get<F32Bits>(it->second).value();
}

}  // namespace invar
