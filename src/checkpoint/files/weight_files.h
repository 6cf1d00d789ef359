// Links or copies a weight file beside a model.
#pragma once

#include <string>

#include "base/status.h"

namespace invar::checkpoint {

// Makes PATH a symlink to TARGET, which is absolute. Replaces an existing file atomically.
Status make_link(const std::string& target, const std::string& path);
// Makes PATH a copy of SOURCE: a reflink, which shares blocks, if the file system supports it, else
// a full copy.
Status make_copy(const std::string& source, const std::string& path);

}  // namespace invar::checkpoint
