// Spells RMSNorm in torch.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

Result<std::string> rmsnorm(const TorchCall& c) {
  return cat("functional.rms_norm(", c[0], ", ", torch_text(c.shape_of(1)), ", ", c[1], ", ",
             c.text("epsilon"), ")");
}

}  // namespace

void spell_rmsnorm(TorchSpellings& spellings) {
  spellings.add("rmsnorm", rmsnorm);
}

}  // namespace invar::compiler
