// Spells quantization in torch.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

// Scales or zero points, shaped to meet the operand's elements.
std::string along_axis(const TorchCall& c, size_t i) {
  const auto rank = static_cast<int64_t>(c.rank());
  const int64_t n = std::max<int64_t>(1, rank), axis = ((c.i("axis") % n) + n) % n;
  const Shape& shape = c.shape_of(i);
  if (const int64_t block = c.i("block"))
    return cat("rooms.quantize.blocks(", c[i], ", ", axis, ", ", block, ", ",
               torch_text(c.shape_of(0)[static_cast<size_t>(axis)]), ")");
  const bool one = shape.size() == 1 && shape[0] == Dim::of(1);
  if (one && rank == 0) return c[i] + ".reshape(())";
  if (shape.empty() || one || axis == rank - 1) return c[i];
  std::string ones;
  for (int64_t d = axis + 1; d < rank; ++d) ones += ", 1";
  return cat(c[i], ".reshape(-1", ones, ")");
}

Result<std::string> quantize(const TorchCall& c) {
  return cat("rooms.quantize.quantized(", c[0], ", ", along_axis(c, 1), ", ",
             c.size() > 2 ? along_axis(c, 2) : "None", ", ", c.dtype(), ")");
}

Result<std::string> dequantize(const TorchCall& c) {
  const std::string steps =
      c.size() > 2 ? cat("(", c[0], ".float() - ", along_axis(c, 2), ".float())") : c[0] + ".float()";
  return cat(steps, " * ", along_axis(c, 1));
}

}  // namespace

void spell_quantize(TorchSpellings& spellings) {
  spellings.add("quantize_linear", quantize);
  spellings.add("dequantize_linear", dequantize);
}

}  // namespace invar::compiler
