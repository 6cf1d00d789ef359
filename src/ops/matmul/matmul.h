// What the rows of matmul share. Constant b is packed at load into panels [ceil(N / 32)][K][32] in its own dtype,
// columns beyond N being zero; units are (panel, group of rows), panel by panel.
#pragma once
#include "ops/call.h"

namespace invar::ops::matmul {

constexpr int kPanel = 32;      // columns
constexpr int64_t kGroup = 48;  // rows of a unit: a multiple of every tile height

struct Shape {
  int64_t m, n, k;
  bool trans_b;
  int64_t groups;  // of rows
};
Shape shape(const Call&);

int64_t units(const Call&, int phase);
size_t scratch_bytes(const Call&);  // one panel where b is not packed
size_t pack_bytes(const View& b, int i, const Attrs&);
void pack(const View& b, int i, const Attrs&, void* packed);
// One panel of a b that is not packed.
void pack_panel(const View& b, bool trans_b, int64_t panel, void* out);

}  // namespace invar::ops::matmul
