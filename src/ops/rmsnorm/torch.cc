// Spells RMSNorm and its gradients in torch.
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
  spellings.add("rmsnorm_backward", "rooms.rmsnorm.backward({0}, {1}, {2}, {epsilon})");
  spellings.add("rmsnorm_backward_weight", "rooms.rmsnorm.backward_weight({0}, {1}, {axis}, {epsilon})");
}

}  // namespace invar::compiler
