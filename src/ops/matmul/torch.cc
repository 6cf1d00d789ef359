// Spells matrix products in torch.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

Result<std::string> matmul(const TorchCall& c) {
  const bool trans_a = c.i("trans_a") != 0, trans_b = c.i("trans_b") != 0;
  if (trans_b && !trans_a && c.rank(1) == 2) return cat("functional.linear(", c[0], ", ", c[1], ")");
  return cat("torch.matmul(", c[0], trans_a ? ".mT" : "", ", ", c[1], trans_b ? ".mT" : "", ")");
}

// Each row, as [1, K], times its matrix of the stack.
Result<std::string> grouped(const TorchCall& c) {
  const std::string stack = c.rank(2) == 3 ? c[2] : cat("torch.stack((", python::join(c.from(2)), ",))");
  return cat("torch.matmul(", c[0], ".unsqueeze(-2), ", stack, "[", c[1], "]", c.i("trans_b") ? ".mT" : "",
             ").squeeze(-2)");
}

Result<std::string> nbits(const TorchCall& c) {
  return cat("functional.linear(", c[0], ", rooms.matmul.dequantized(", python::join(c.from(1)),
             ", k=", torch_text(c.shape_of(0).back()), c.keywords(), "))");
}

Result<std::string> integer(const TorchCall& c) {
  return cat("rooms.matmul.matmul_integer(", python::join(c.from(0)), ")");
}

}  // namespace

void spell_matmul(TorchSpellings& spellings) {
  spellings.add("matmul", matmul);
  spellings.add("grouped_matmul", grouped);
  spellings.add("matmul_integer", integer);
  spellings.add("matmul_nbits", nbits);
}

}  // namespace invar::compiler
