// Words for one-line errors.
#pragma once

#include <string>
#include <string_view>

namespace invar::onnx {

// 'text' in quotes, safe to print (base/text/display.h), the middle of very long names left out. Names come from files that may
// be hostile.
std::string quote(std::string_view text);
bool is_plain(std::string_view text);  // without control characters

}  // namespace invar::onnx
