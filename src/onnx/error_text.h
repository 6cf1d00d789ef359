// Quoting of untrusted names in one-line errors.
#pragma once

#include <string>
#include <string_view>

namespace invar::onnx {

// 'text' in quotes, safe to print (base/text/display.h) and shortened in the middle. Names come
// from untrusted files.
std::string quote(std::string_view text);
bool is_plain(std::string_view text);  // without control characters

}  // namespace invar::onnx
