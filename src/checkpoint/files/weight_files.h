// Puts a weight file beside a model.
#pragma once

#include <string>

#include "base/status.h"

namespace invar::checkpoint {

// PATH becomes a link to TARGET (absolute), replacing what was there at once.
Status place_link(const std::string& target, const std::string& path);
// PATH becomes a copy of SOURCE: shared blocks where the file system can (no byte is copied then), else a
// real copy.
Status place_copy(const std::string& source, const std::string& path);

}  // namespace invar::checkpoint
