// Spells integer convolutions in torch.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

Result<std::string> integer_convolution(const TorchCall& c) {
  return cat("rooms.conv_integer.conv_integer(", python::join(c.from(0)), c.keywords(), ")");
}

}  // namespace

void spell_conv_integer(TorchSpellings& spellings) {
  spellings.add("conv_integer", integer_convolution);
}

}  // namespace invar::compiler
