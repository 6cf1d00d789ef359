// Spells softmax, its logarithm and their gradients in torch.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

Result<std::string> forward(const TorchCall& c) {
  return cat("torch.", c.op, "(", c[0], ", dim=", c.i("axis"), ")");
}

Result<std::string> softmax_backward(const TorchCall& c) {
  const std::string op = c.op.substr(0, c.op.rfind("_backward"));
  return cat("torch.ops.aten._", op, "_backward_data(", c[0], ", ", c[1], ", ", c.i("axis"),
             ", torch.float32)");
}

}  // namespace

void spell_softmax(TorchSpellings& spellings) {
  for (const char* op : {"softmax", "log_softmax"}) {
    spellings.add(op, forward);
    spellings.add(std::string(op) + "_backward", softmax_backward);
  }
}

}  // namespace invar::compiler
