// Spells causal convolutions in torch: a helper in torch.py.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

Result<std::string> causal_conv(const TorchCall& c) {
  return cat("rooms.causal_conv.causal_conv(", python::join(c.from(0)), ")");
}

}  // namespace

void spell_causal_conv(TorchSpellings& spellings) {
  spellings.add("causal_conv", causal_conv);
}

}  // namespace invar::compiler
