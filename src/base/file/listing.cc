#include "base/file/listing.h"

#include <dirent.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace invar {

bool exists(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0;
}
bool is_file(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}
bool is_folder(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Result<std::vector<std::string>> names_in(const std::string& folder) {
  DIR* const open = ::opendir(folder.c_str());
  if (!open) return bad_input(folder + ": cannot be listed: " + std::strerror(errno));
  std::vector<std::string> names;
  int failed = 0;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(open);
    if (!entry) {
      failed = errno;
      break;
    }
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(open);
  if (failed) return bad_input(folder + ": cannot be listed: " + std::strerror(failed));
  return names;
}

}  // namespace invar
