// Out-of-line helpers that read a Call: attributes, rows, units, axes.
#include "kernels/call.h"

#include <algorithm>

#include "kernels/check.h"

namespace invar::ops {

int64_t AttributeReader::i64(const char* name, int64_t fallback) const {
  return map ? map->i(name, fallback) : fallback;
}

float AttributeReader::f32(const char* name, float fallback) const {
  return map ? map->f(name, fallback) : fallback;
}

IntegerList AttributeReader::list(const char* name, int64_t fallback) const {
  if (!map) return {nullptr, -1, fallback};
  const auto it = map->find(name);
  if (it == map->end()) return {nullptr, -1, fallback};
  const auto& all = std::get<std::vector<int64_t>>(it->second);
  return {all.data(), static_cast<int64_t>(all.size()), fallback};
}

int64_t row_count(const View& v) {
  int64_t rows = 1;
  for (int i = 0; i + 1 < v.rank; ++i) rows *= v.dim[i];
  return rows;
}

int64_t chunk_units(const Call& call, int) {
  return (call.out[0].elements() + kChunk - 1) / kChunk;
}

int64_t row_units(const Call& call, int) {
  return row_count(call.out[0]);
}

int64_t norm_rows(const Call& call, int) {
  int64_t rows = 1;
  for (int i = 0; i + call.in[1].rank < call.in[0].rank; ++i) rows *= call.in[0].dim[i];
  return rows;
}

const char* check_norm_weight(const View& x, const View& w) {
  if (w.rank < 1 || w.rank > x.rank) return "a weight of the last dimensions of x";
  for (int i = 1; i <= w.rank; ++i)
    if (w.dim[w.rank - i] < 1 || w.dim[w.rank - i] != x.dim[x.rank - i])
      return "a weight of the last dimensions of x, which have elements";
  return nullptr;
}

AxisExtents axis_extents(const View& v, int64_t axis) {
  if (axis < 0) axis += v.rank;
  AxisExtents a{1, v.dim[axis], 1};
  for (int i = 0; i < axis; ++i) a.outer *= v.dim[i];
  for (int i = static_cast<int>(axis) + 1; i < v.rank; ++i) a.inner *= v.dim[i];
  return a;
}

ColumnBlocks column_blocks(const AxisExtents& a, int64_t width, int64_t least, int64_t units) {
  auto blocks = [&](int64_t w) { return w ? (a.inner + w - 1) / w : 0; };
  width = std::min(width, a.inner);
  while (width / 2 >= least && a.outer * blocks(width) < units) width = width / 2 / 16 * 16;
  return {a, width, blocks(width)};
}

}  // namespace invar::ops
