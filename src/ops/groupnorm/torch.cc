// Spells group normalization in torch: torch.group_norm, because that of functional refuses groups
// of one element.
#include "compiler/room_api.h"

namespace invar::compiler {

void spell_groupnorm(TorchSpellings& spellings) {
  spellings.add("groupnorm", "torch.group_norm({0}, {groups}, {1}, {2}, {epsilon})");
}

}  // namespace invar::compiler
