// Spells a change of shape or of the elements' type in torch.
#include "compiler/room_api.h"

namespace invar::compiler {

void spell_reshape(TorchSpellings& spellings) {
  spellings.add("bitcast", "{0}.view({dtype})");
  spellings.add("reshape", "{0}.reshape({shape})");
}

}  // namespace invar::compiler
