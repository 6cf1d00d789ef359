// Broadcasting of elementwise operands as loops, attributes as scalars, and the check of shapes.
#include "ops/elementwise/walk.h"

namespace invar::ops::elementwise {

BroadcastLoops broadcast_loops(const Call& call) {
  const View& out = call.out[0];
  BroadcastLoops w{};
  w.operands = static_cast<int>(call.in.size());
  // The stride in operand v, whose shape is right-aligned, of dimension i of the result.
  auto stride = [&out](const View& v, int i) -> int64_t {
    int j = i - (out.rank - v.rank);
    if (j < 0 || v.dim[j] == 1) return 0;
    int64_t s = 1;
    for (int d = j + 1; d < v.rank; ++d) s *= v.dim[d];
    return s;
  };
  w.inner = 1;
  bool first = true;
  for (int i = out.rank - 1; i >= 0; --i) {
    if (out.dim[i] == 1) continue;
    int64_t s[kOperands];
    bool merges = w.rank == 0;
    for (int k = 0; k < w.operands; ++k) {
      s[k] = stride(call.in[static_cast<size_t>(k)], i);
      if (first) w.step[k] = s[k] ? 1 : 0;
      merges &= s[k] == w.step[k] * w.inner;
    }
    if (first || merges) {
      w.inner *= out.dim[i];
    } else {
      w.dim[w.rank] = out.dim[i];
      for (int k = 0; k < w.operands; ++k) w.stride[k][w.rank] = s[k];
      ++w.rank;
    }
    first = false;
  }
  return w;
}

float scalar(const Call& call, const char* name) {
  const AttributeValue& a = call.attrs->at(name);
  if (const int64_t* i = std::get_if<int64_t>(&a)) return static_cast<float>(*i);
  return std::get<F32Bits>(a).value();
}

const char* check_shapes(const Call& call) {
  const View& out = call.out[0];
  int rank = 0;
  for (const View& v : call.in) rank = v.rank > rank ? v.rank : rank;
  if (out.rank != rank) return "a result of the operands' rank";
  for (int i = 1; i <= rank; ++i) {
    int64_t size = 1;
    for (const View& v : call.in) {
      int64_t d = i <= v.rank ? v.dim[v.rank - i] : 1;
      if (d == 1) continue;
      if (size != 1 && d != size) return "shapes that broadcast to the result's";
      size = d;
    }
    if (out.dim[out.rank - i] != size) return "shapes that broadcast to the result's";
  }
  return nullptr;
}

}  // namespace invar::ops::elementwise
