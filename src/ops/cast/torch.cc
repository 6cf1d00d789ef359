// Spells a cast in torch.
#include "compiler/room_api.h"

namespace invar::compiler {

void spell_cast(TorchSpellings& spellings) {
  // The operand as it is: a narrow one is what is cast.
  spellings.add("cast", [](const TorchCall& c) -> Result<std::string> {
    return cat(c.operands[0], ".to(", c.dtype(), ")");
  });
}

}  // namespace invar::compiler
