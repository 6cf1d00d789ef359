// Several new files at once.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace invar {

struct NewContent {
  std::string path;
  std::string_view content;
};

// write_file() for files of one folder, in about the time of one: the disk is waited for together.
Status write_files(std::span<const NewContent> files);

}  // namespace invar
