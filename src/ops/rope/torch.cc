// Spells rotary embeddings in torch: a helper in torch.py.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

Result<std::string> rope(const TorchCall& c) {
  return cat("rooms.rope.rope(", python::join(c.from(0)), c.keywords(), ")");
}

}  // namespace

void spell_rope(TorchSpellings& spellings) {
  spellings.add("rope", rope);
}

}  // namespace invar::compiler
