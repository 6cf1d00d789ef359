// Spells the largest elements in torch: a stable sort, because torch.topk promises no order of
// equals.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

Result<std::string> topk(const TorchCall& c) {
  const int64_t axis = c.i("axis");
  const auto d = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(c.rank()) : axis);
  const Dim k = c.type.shape[d];
  const std::string order = cat("torch.sort(", c[0], ", dim=", axis, ", descending=", c.i("largest") == 1,
                                ", stable=True).indices");
  return k == c.shape_of(0)[d] ? order : cat(order, ".narrow(", axis, ", 0, ", torch_text(k), ")");
}

}  // namespace

void spell_topk(TorchSpellings& spellings) {
  spellings.add("topk", topk);
}

}  // namespace invar::compiler
