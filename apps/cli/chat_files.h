// Files that chats are read from.
#pragma once

#include <string>

#include "generate/generate.h"

namespace invar::cli {

// The file of --tools into the options; "": none.
inline Status read_tools(const std::string& path, generate::ChatOptions& options) {
  if (path.empty()) return {};
  options.tools_file = path;
  INVAR_TRY(options.tools, generate::read_chat_file(path));
  return {};
}

}  // namespace invar::cli
