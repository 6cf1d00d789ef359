// Spells sums and products of the elements up to one in torch.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

Result<std::string> scan(const TorchCall& c) {
  const int64_t axis = c.i("axis");
  const bool exclusive = c.i("exclusive") != 0, reverse = c.i("reverse") != 0;
  if (exclusive || reverse)
    return cat("rooms.scan.scanned(torch.", c.op, ", ", c[0], ", ", axis, ", exclusive=", exclusive,
               ", reverse=", reverse, ")");
  return cat("torch.", c.op, "(", c[0], ", ", axis, c.is_real() ? "" : ", dtype=" + c.dtype(), ")");
}

}  // namespace

void spell_scan(TorchSpellings& spellings) {
  spellings.add("cumsum", scan);
  spellings.add("cumprod", scan);
}

}  // namespace invar::compiler
