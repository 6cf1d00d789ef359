// multipart/form-data (RFC 7578), as clients send files -> its parts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace invar::http {

struct FormPart {
  std::string name;
  std::optional<std::string> file_name;  // of a part that is a file
  std::string_view content;              // of the body, which outlives it
};

// Reads a body by the value of its header Content-Type. What two readers could take for different
// parts is refused: text around the parts, lines that do not end with CRLF, a name given twice.
Result<std::vector<FormPart>> read_form(std::string_view content_type, std::string_view body);

}  // namespace invar::http
