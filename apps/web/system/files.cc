// The parts of base/file that need an operating system, where files are only read: nothing is
// mapped lazily, truncated behind our back, or written.
#include <sys/mman.h>

#include <cerrno>

#include "base/file/file.h"
#include "base/file/map_registry.h"
#include "base/file/temporary_file.h"

namespace invar {

void register_map(const std::byte*, size_t, const std::string&) {}
void unregister_map(const std::byte*) {}
void report_truncated_maps() {}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}
int replace_file(const std::string&, const std::function<int(const std::string&)>&) {
  return EROFS;
}
int replace_content(const std::string&, const std::function<int(int)>&) {
  return EROFS;
}
TemporaryFolder::~TemporaryFolder() = default;

}  // namespace invar

extern "C" int madvise(void*, size_t, int) {
  return 0;  // the system takes no advice
}
