// Which file a mapped address belongs to, for the handler of SIGBUS (report_truncated_maps in file.h).
#pragma once

#include <cstddef>
#include <string>

namespace invar {

void note_map(const std::byte* data, size_t size, const std::string& path);
void forget_map(const std::byte* data);

}  // namespace invar
