// The table of mapped files, in which the SIGBUS handler finds the file of an address
// (report_truncated_maps in file.h).
#pragma once

#include <cstddef>
#include <string>

namespace invar {

void register_map(const std::byte* data, size_t size, const std::string& path);
void unregister_map(const std::byte* data);

}  // namespace invar
