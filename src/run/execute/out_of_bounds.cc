// Out-of-bounds indices, see out_of_bounds.h.
#include "run/execute/out_of_bounds.h"

#include <vector>

namespace invar::run {

Error error_of(const ops::OutOfBounds& out_of_bounds, std::span<const ops::View> operands,
               const std::string& before) {
  const ops::View& operand = operands[static_cast<size_t>(out_of_bounds.operand)];
  std::string at;
  int64_t rest = out_of_bounds.element;
  for (int d = operand.rank - 1; d >= 0; --d) {
    at = std::to_string(rest % operand.dim[d]) + (at.empty() ? "" : ", ") + at;
    rest /= operand.dim[d];
  }
  return {Code::bad_input,
          before + "index " + std::to_string(out_of_bounds.value) + " at [" + at + "] of operand " +
              std::to_string(out_of_bounds.operand) + " is outside " + std::to_string(-out_of_bounds.limit) +
              " ... " + std::to_string(out_of_bounds.limit - 1),
          {},
          ErrorKind::index};
}

Result<std::optional<ops::OutOfBounds>> find_out_of_bounds(const ops::OpContract& contract,
                                                           const ops::Call& on_device, Device& device) {
  if (!contract.find_out_of_bounds) return std::optional<ops::OutOfBounds>();
  std::vector<std::vector<std::byte>> copies;
  std::vector<ops::View> in(on_device.in.begin(), on_device.in.end());
  for (ops::View& v : in) {
    if (v.dtype != DType::i64) continue;  // no index
    auto& copy = copies.emplace_back(static_cast<size_t>(v.elements()) * size_of(v.dtype));
    INVAR_CHECK_OK(device.download(copy.data(), v.data, copy.size()));
    v.data = copy.data();
  }
  INVAR_CHECK_OK(device.wait());
  ops::Call call = on_device;
  call.in = in;
  ops::OutOfBounds out_of_bounds;
  return contract.find_out_of_bounds(call, out_of_bounds) ? std::optional(out_of_bounds) : std::nullopt;
}

Error unconfirmed_fault_error() {
  return {Code::internal, "a kernel reports an index that names no place, and its reference finds none"};
}

}  // namespace invar::run
