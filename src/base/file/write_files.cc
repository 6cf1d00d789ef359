#include "base/file/write_files.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <deque>

#include "base/file/temporary_file.h"

namespace invar {

static Error cannot_write(const std::string& path, int error) {
  return bad_input("cannot write '" + path + "': " + std::strerror(error));
}

Status write_files(std::span<const NewContent> files) {
  std::deque<NewFile> made;
  for (const auto& [path, content] : files) {
    NewFile& file = made.emplace_back();
    int error = file.make(path);
    if (!error) error = write_all(file.descriptor(), content);
    if (error) return cannot_write(path, error);
    // The disk begins with each now, so that the first flush finds most of all of them done.
    (void)::sync_file_range(file.descriptor(), 0, 0, SYNC_FILE_RANGE_WRITE);
  }
  for (size_t i = 0; i < files.size(); ++i)
    if (const int error = made[i].flush()) return cannot_write(files[i].path, error);
  for (size_t i = 0; i < files.size(); ++i)
    if (const int error = made[i].replace()) return cannot_write(files[i].path, error);
  if (!files.empty()) flush_folder_of(files[0].path);
  return {};
}

}  // namespace invar
