#include "ops/call.h"

namespace invar::ops {

int64_t attr_i(const Attrs& attrs, const char* name, int64_t fallback) {
  return attrs.i(name, fallback);
}

int64_t attr_i(const Call& call, const char* name, int64_t fallback) {
  return call.attrs ? call.attrs->i(name, fallback) : fallback;
}

float attr_f(const Call& call, const char* name, float fallback) {
  return call.attrs ? call.attrs->f(name, fallback) : fallback;
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

Broadcast broadcast(const View& a, const View& b, const View& out) {
  // Dimension i of `out` in operand v, whose shape is aligned to the right: its stride there.
  auto stride = [&out](const View& v, int i) -> int64_t {
    int j = i - (out.rank - v.rank);
    if (j < 0 || v.dim[j] == 1) return 0;
    int64_t s = 1;
    for (int d = j + 1; d < v.rank; ++d) s *= v.dim[d];
    return s;
  };
  Broadcast r{};
  r.inner = 1;
  for (int i = out.rank - 1; i >= 0; --i) {
    if (out.dim[i] == 1) continue;
    int64_t sa = stride(a, i), sb = stride(b, i);
    bool first = r.rank == 0 && r.inner == 1;
    if (first) r.inner_a = sa ? 1 : 0, r.inner_b = sb ? 1 : 0;
    if (first || (r.rank == 0 && sa == r.inner_a * r.inner && sb == r.inner_b * r.inner)) {
      r.inner *= out.dim[i];
    } else {
      r.dim[r.rank] = out.dim[i], r.stride_a[r.rank] = sa, r.stride_b[r.rank] = sb;
      ++r.rank;
    }
  }
  r.rows = 1;
  for (int i = 0; i < r.rank; ++i) r.rows *= r.dim[i];
  return r;
}

}  // namespace invar::ops
