// Spells reading and writing at indices in torch.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

const char* reduction(const TorchCall& c) {
  static constexpr const char* kNames[] = {"", "sum", "prod", "amin", "amax"};
  return kNames[c.i("reduction")];
}

// An index of rank 0 would be asked for its value, which a GPU must first compute.
Result<std::string> gather(const TorchCall& c) {
  const auto rank = static_cast<int64_t>(c.rank());
  const int64_t axis = (c.i("axis") + rank) % rank;
  std::string whole;
  for (int64_t d = 0; d < axis; ++d) whole += ":, ";
  const bool one = c.rank(1) == 0;
  return cat(c.operands[0], "[", whole, c[1], one ? ".reshape(1)" : "", "]",
             one ? cat(".squeeze(", axis, ")") : "", c.widens(0) ? ".float()" : "");
}

Result<std::string> gather_tuples(const TorchCall& c) {
  if (const int64_t batch = c.i("batch_dims"))
    return cat("rooms.gather.gather_nd(", c[0], ", ", c[1], ", ", batch, ")");
  return c.rank(1) > 1 ? cat(c[0], "[", c[1], ".unbind(-1)]")
                       : cat(c[0], "[", c[1], ".unsqueeze(0).unbind(-1)].squeeze(0)");
}

std::string along(const TorchCall& c) {
  const int64_t axis = c.i("axis");
  return cat(axis, ", rooms.gather.places(", c[1], ", ", c[0], ".shape[", axis, "])");
}

Result<std::string> gather_elements(const TorchCall& c) {
  return cat("torch.gather(", c[0], ", ", along(c), ")");
}

Result<std::string> scatter_elements(const TorchCall& c) {
  if (c.i("reduction"))
    return cat("torch.scatter_reduce(", c[0], ", ", along(c), ", ", c[2], ", \"", reduction(c), "\")");
  return cat("torch.scatter(", c[0], ", ", along(c), ", ", c[2], ")");
}

Result<std::string> scatter_tuples(const TorchCall& c) {
  if (c.i("reduction") > 1)
    return cat("rooms.gather.scatter_nd(", c[0], ", ", c[1], ", ", c[2], ", \"", reduction(c), "\")");
  return cat("torch.index_put(", c[0], ", ", c[1], ".unbind(-1), ", c[2],
             c.i("reduction") ? ", accumulate=True" : "", ")");
}

}  // namespace

void spell_gather(TorchSpellings& spellings) {
  spellings.add("gather", gather);
  spellings.add("gather_elements", gather_elements);
  spellings.add("gather_nd", gather_tuples);
  spellings.add("scatter_elements",
                [](const TorchCall& c) { return spelled_as_signed(scatter_elements, c); });
  spellings.add("scatter_nd", [](const TorchCall& c) { return spelled_as_signed(scatter_tuples, c); });
}

}  // namespace invar::compiler
