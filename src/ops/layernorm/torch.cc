// Spells LayerNorm and its gradients in torch.
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
  spellings.add("layernorm_backward", "rooms.layernorm.backward({0}, {1}, {2}, {epsilon})");
  spellings.add("layernorm_backward_weight", "rooms.layernorm.backward_weight({0}, {1}, {axis}, {epsilon})");
}

}  // namespace invar::compiler
