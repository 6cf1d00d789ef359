// The functions of AttributeReader. What tools/ops/generate.py writes alone includes them, so that
// a struct is read without a call for each of its members.
#pragma once
#include <variant>

#include "kernels/call.h"

namespace invar::ops {

inline int64_t AttributeReader::i64(const char* name, int64_t fallback) const {
  return map ? map->i(name, fallback) : fallback;
}

inline float AttributeReader::f32(const char* name, float fallback) const {
  return map ? map->f(name, fallback) : fallback;
}

inline IntegerList AttributeReader::list(const char* name, int64_t fallback) const {
  if (!map) return {nullptr, -1, fallback};
  const auto it = map->find(name);
  if (it == map->end()) return {nullptr, -1, fallback};
  const auto& all = std::get<std::vector<int64_t>>(it->second);
  return {all.data(), static_cast<int64_t>(all.size()), fallback};
}

}  // namespace invar::ops
