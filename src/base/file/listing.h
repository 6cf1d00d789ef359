// Entries of folders. std::filesystem, but for C++ libraries without a file system (WebAssembly's).
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace invar {

// Whether something is there, and of which kind; links are followed. False on any error.
bool exists(const std::string& path);
bool is_file(const std::string& path);  // a regular one
bool is_folder(const std::string& path);

// The names in a folder, in no order. bad_input: it cannot be listed.
Result<std::vector<std::string>> names_in(const std::string& folder);

}  // namespace invar
