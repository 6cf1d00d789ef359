#include "run/prepare/kernel_selection.h"

#include <algorithm>
#include <vector>

namespace invar::run {

Status check_isa(const std::string& isa) {
  const auto here = ops::isas();
  if (isa.empty() || std::find(here.begin(), here.end(), isa) != here.end()) return {};
  std::string have;
  for (std::string_view i : here) have += (have.empty() ? "" : ", ") + std::string(i);
  return bad_input("instruction set '" + isa + "' is not available here; this CPU and build have: " + have);
}

Result<const ops::Kernel*> choose(const std::string& op, const std::string& isa) {
  if (const ops::Kernel* k = ops::find(op, isa)) return k;
  if (isa == ops::kCuda)
    return not_covered("operation " + op +
                       " has no kernel for CUDA in this build: use --device cpu (the bits are the same)");
  // An operation with a reference row alone (nothing to vectorise) runs it under every instruction set.
  bool only_reference = true;
  for (const ops::Kernel* k : ops::kernels()) only_reference &= k->op != op || k->isa == "reference";
  if (const ops::Kernel* k = ops::find(op, "reference"); k && only_reference) return k;
  return not_covered("operation " + op + " has no kernel" +
                     (isa.empty() ? "" : " for instruction set " + isa) + " in this build");
}

std::string text_of(const ops::Stray& stray, const ops::View& operand) {
  std::string at;
  int64_t rest = stray.element;
  for (int d = operand.rank - 1; d >= 0; --d) {
    at = std::to_string(rest % operand.dim[d]) + (at.empty() ? "" : ", ") + at;
    rest /= operand.dim[d];
  }
  return "index " + std::to_string(stray.value) + " at [" + at + "] of operand " +
         std::to_string(stray.operand) + " is outside " + std::to_string(-stray.limit) + " ... " +
         std::to_string(stray.limit - 1);
}

Result<std::optional<ops::Stray>> stray_of(const ops::Kernel& reference, const ops::Call& given,
                                           Device& device) {
  if (!reference.stray) return std::optional<ops::Stray>();
  std::vector<std::vector<std::byte>> here;
  std::vector<ops::View> in(given.in.begin(), given.in.end());
  for (ops::View& v : in) {
    if (v.dtype != DType::i64) continue;  // no index
    auto& copy = here.emplace_back(static_cast<size_t>(v.elements()) * size_of(v.dtype));
    INVAR_CHECK_OK(device.download(copy.data(), v.data, copy.size()));
    v.data = copy.data();
  }
  INVAR_CHECK_OK(device.wait());
  ops::Call call = given;
  call.in = in;
  ops::Stray stray;
  return reference.stray(call, stray) ? std::optional(stray) : std::nullopt;
}

Error unfounded_fault() {
  return {Code::internal, "a kernel reports an index that names no place, and its reference finds none"};
}

}  // namespace invar::run
