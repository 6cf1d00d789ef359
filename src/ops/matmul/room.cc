#include "ops/matmul/matmul.h"

namespace invar::ops::matmul {

Shape shape(const Call& call) {
  const View &a = call.in[0], &b = call.in[1];
  bool trans = attr_i(call, "trans_b", 0) != 0;
  int64_t m = row_count(a);
  return {m, trans ? b.dim[0] : b.dim[1], last_dim(a), trans, (m + kGroup - 1) / kGroup};
}

static int64_t panels(int64_t n) {
  return (n + kPanel - 1) / kPanel;
}

int64_t units(const Call& call, int) {
  Shape s = shape(call);
  return panels(s.n) * s.groups;
}

size_t scratch_bytes(const Call& call) {
  if (call.in[1].packed) return 0;
  return static_cast<size_t>(shape(call).k * kPanel) * size_of(call.in[1].dtype);
}

template <class T>
static void copy_panel(const T* b, bool trans, int64_t k, int64_t n, int64_t panel, T* out) {
  int64_t first = panel * kPanel, count = n - first < kPanel ? n - first : kPanel;
  for (int64_t i = 0; i < k * kPanel && count < kPanel; ++i) out[i] = T{};
  if (!trans) {
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < count; ++j) out[i * kPanel + j] = b[i * n + first + j];
    return;
  }
  constexpr int64_t kBlock = 64;  // of k: one read line per column, written lines stay in the first cache
  for (int64_t from = 0; from < k; from += kBlock)
    for (int64_t j = 0; j < count; ++j)
      for (int64_t i = from; i < k && i < from + kBlock; ++i) out[i * kPanel + j] = b[(first + j) * k + i];
}

void pack_panel(const View& b, bool trans, int64_t panel, void* out) {
  int64_t k = b.dim[trans ? 1 : 0], n = b.dim[trans ? 0 : 1];
  if (size_of(b.dtype) == 2) {
    copy_panel(b.as<const uint16_t>(), trans, k, n, panel, static_cast<uint16_t*>(out));
  } else {
    copy_panel(b.as<const float>(), trans, k, n, panel, static_cast<float*>(out));
  }
}

size_t pack_bytes(const View& b, int i, const Attrs& attrs) {
  if (i != 1) return 0;
  bool trans = attr_i(attrs, "trans_b", 0) != 0;
  return static_cast<size_t>(panels(b.dim[trans ? 0 : 1]) * kPanel * b.dim[trans ? 1 : 0]) * size_of(b.dtype);
}

void pack(const View& b, int, const Attrs& attrs, void* packed) {
  bool trans = attr_i(attrs, "trans_b", 0) != 0;
  int64_t k = b.dim[trans ? 1 : 0], n = b.dim[trans ? 0 : 1];
  size_t bytes = static_cast<size_t>(k * kPanel) * size_of(b.dtype);
  for (int64_t p = 0; p < panels(n); ++p) pack_panel(b, trans, p, static_cast<char*>(packed) + p * bytes);
}

}  // namespace invar::ops::matmul
