// Base64 (RFC 4648), of tokenizer files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace invar::prompt {

// The bytes, or nothing where the text is not base64 with its padding.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace invar::prompt
