// Spells trees in torch: a helper in torch.py.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

Result<std::string> tree_ensemble(const TorchCall& c) {
  return cat("rooms.tree_ensemble.tree_ensemble(", python::join(c.from(0)), ", ", c.i("aggregate"), ")");
}

}  // namespace

void spell_tree_ensemble(TorchSpellings& spellings) {
  spellings.add("tree_ensemble", tree_ensemble);
}

}  // namespace invar::compiler
