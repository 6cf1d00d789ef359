// The table of mapped files, in which the SIGBUS handler finds the file of an address
// (report_truncated_maps in file.h).
#pragma once

#include <cstddef>
#include <string>

namespace invar {

void register_map(const std::byte* data, size_t size, const std::string& path);
void unregister_map(const std::byte* data);

// A line that the handler writes to a stream, the file's path in the middle. In JSON the path is
// escaped. The texts must stand for ever. A line without them is not written.
struct TruncationLine {
  int stream;
  const char *before = nullptr, *after = nullptr;
  bool json = false;
};
// Instead of a line for people on standard error.
void say_truncation_as(const TruncationLine& first, const TruncationLine& second);

}  // namespace invar
