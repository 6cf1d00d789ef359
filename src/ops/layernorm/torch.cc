// Spells LayerNorm in torch.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

Result<std::string> layernorm(const TorchCall& c) {
  return cat("functional.layer_norm(", c[0], ", ", torch_text(c.shape_of(1)), ", ", python::join(c.from(1)),
             ", eps=", c.text("epsilon"), ")");
}

}  // namespace

void spell_layernorm(TorchSpellings& spellings) {
  spellings.add("layernorm", layernorm);
}

}  // namespace invar::compiler
