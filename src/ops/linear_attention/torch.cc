// Spells linear attention in torch: the recurrence, a helper in torch.py.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

Result<std::string> recurrence(const TorchCall& c) {
  return cat("rooms.linear_attention.recurrence(", python::join(c.from(0)), c.keyword("key_heads"),
             c.keyword("value_heads"), c.keyword("scale"), ")");
}

}  // namespace

void spell_linear_attention(TorchSpellings& spellings) {
  spellings.add("gated_delta_rule", recurrence);
  spellings.add("gated_linear_attention", recurrence);
}

}  // namespace invar::compiler
