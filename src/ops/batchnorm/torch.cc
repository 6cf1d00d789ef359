// Spells a batch normalization in torch.
#include "compiler/room_api.h"

namespace invar::compiler {

void spell_batchnorm(TorchSpellings& spellings) {
  spellings.add("batchnorm", "functional.batch_norm({0}, {3}, {4}, {1}, {2}, eps={epsilon})");
}

}  // namespace invar::compiler
