// Writing files: what write_file() is made of, and several new files at once.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace invar {

// All of it. Returns 0 or an errno value.
int write_all(int descriptor, std::string_view content);

// A new name survives a power cut only once its folder is on disk; a file system that cannot sync
// folders is no reason to fail.
void flush_folder_of(const std::string& path);

struct NewContent {
  std::string path;
  std::string_view content;
};

// write_file() for files of one folder, in about the time of one: the disk is waited for together.
Status write_files(std::span<const NewContent> files);

}  // namespace invar
