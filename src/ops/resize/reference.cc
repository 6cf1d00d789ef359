// spec: resize.1 - resize.7. One element at a time: chains over the taps of every axis, the
// last axis innermost.
#include "kernels/reference.h"

#include <cstring>

#include "ops/resize/resize.h"

namespace invar::ops {
namespace {

struct OutputElement {
  const Resize& r;
  const Call& call;
  const int64_t* index;  // of the element
  // The value for the taps chosen so far in the axes before `axis`; `at` is their offset.
  float value(int axis, int64_t at) const {
    if (axis == r.rank || axis == kMaxRank) return call.in[0].as<float>()[at];
    const ResizeAxis& a = r.axis[axis];
    const ResizeTable t = table_of(r, axis, call.shared);
    if (a.kept) return value(axis + 1, at * a.in + index[axis]);
    float c = 0;
    for (int k = 0; k < a.taps; ++k) {
      int64_t tap = k * a.out + index[axis];
      // resize.2: the chain over the taps.
      c = __builtin_fmaf(t.weight[tap], value(axis + 1, at * a.in + t.index[tap]), c);
    }
    return c;
  }
};

void run(const Call& call, int phase, int64_t begin, int64_t end, void*) {
  const Resize r = resize_of(call);
  const View &x = call.in[0], &out = call.out[0];
  if (phase == 0) return resize_tables(r, call.shared, begin, end);
  const int64_t width = last_dim(out);
  const size_t bytes = size_of(out.dtype);
  const float extrapolation = ResizeAttributes(call).extrapolation;
  for (int64_t o = begin * width; o < end * width; ++o) {
    int64_t index[kMaxRank], rest = o, from = 0;
    bool outside = false;
    for (int d = r.rank - 1; d >= 0; --d) index[d] = rest % out.dim[d], rest /= out.dim[d];
    for (int d = 0; d < r.rank; ++d) {
      const ResizeTable t = table_of(r, d, call.shared);
      outside |= !r.axis[d].kept && t.outside[index[d]];
      from = from * r.axis[d].in + (r.axis[d].kept ? index[d] : t.index[index[d]]);
    }
    char* to = out.as<char>() + o * static_cast<int64_t>(bytes);
    if (outside && out.dtype == DType::f32)
      store_canonical(out, o, extrapolation);
    else if (outside)
      std::memset(to, 0, bytes);
    else if (r.order == 0)
      std::memcpy(to, x.as<char>() + from * static_cast<int64_t>(bytes), bytes);
    else
      store_canonical(out, o, OutputElement{r, call, index}.value(0, 0));
  }
}

}  // namespace

extern const OpContract contract_resize;
extern const CpuKernel row_resize_reference;
const OpContract contract_resize = {.op = "resize", .check = resize_check};
const CpuKernel row_resize_reference = {.op = "resize",
                                        .isa = "reference",
                                        .phases = 2,
                                        .units = resize_units,
                                        .run = run,
                                        .shared_bytes = resize_shared};

}  // namespace invar::ops
