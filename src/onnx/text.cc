#include "onnx/text.h"

#include <algorithm>

namespace invar::onnx {

static bool is_control(unsigned char c) {
  return c < 0x20 || c == 0x7f;
}
bool is_printable(std::string_view text) {
  return std::none_of(text.begin(), text.end(), is_control);
}

std::string quote(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  constexpr size_t longest = 160;
  std::string out = "'";
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.size() > longest && i == longest / 2) {
      out += "[...]";
      i = text.size() - longest / 2;
    }
    const auto c = static_cast<unsigned char>(text[i]);
    if (is_control(c)) {
      out += "\\x";
      out += digits[c >> 4];
      out += digits[c & 15];
    } else {
      out += text[i];
    }
  }
  return out + "'";
}

}  // namespace invar::onnx
