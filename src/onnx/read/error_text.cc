// Quoting of untrusted names in one-line errors.
#include "onnx/error_text.h"

#include <algorithm>

#include "base/text/display.h"

namespace invar::onnx {

bool is_plain(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

std::string quote(std::string_view text) {
  return "'" + excerpt(text) + "'";
}

}  // namespace invar::onnx
