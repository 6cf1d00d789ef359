#include "generate/requests/receipt_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file/file.h"
#include "base/file/temporary_file.h"
#include "base/file/write_files.h"

namespace invar::generate {

Result<DiskReservation> reserve_receipt(const std::string& path, uint64_t bytes) {
  if (path.empty()) return bad_input("--receipt-path is empty: give a file name");
  const auto unwritable = [&](const std::string& why) {
    return bad_input("receipt " + path + ": " + why + ": choose another --receipt-path");
  };
  struct stat there;
  if (::stat(path.c_str(), &there) == 0) {
    if (S_ISDIR(there.st_mode)) return bad_input("receipt " + path + ": is a folder: give a file name");
    if (!S_ISREG(there.st_mode)) {
      if (::access(path.c_str(), W_OK) != 0) return unwritable(std::strerror(errno));
      return DiskReservation();
    }
  } else if (errno != ENOENT) {
    return unwritable(std::strerror(errno));
  }
  auto made = DiskReservation::make(path, bytes);
  if (!made) return unwritable(made.error().message);
  return made;
}

uint64_t receipt_size(const receipt::Receipt& described, size_t prompt_bytes, size_t prompt_tokens,
                      int64_t max_new_tokens) {
  constexpr uint64_t kToken = 128, kExecution = 4096;
  return receipt::print(described).size() + kExecution + 6 * prompt_bytes + 12 * prompt_tokens +
         kToken * static_cast<uint64_t>(max_new_tokens);
}

// False: not written. Others may list the folder for temporary files, and a receipt has a prompt.
static bool write_private(const std::string& path, std::string_view content) {
  NewFile file;
  return file.make(path) == 0 && write_all(file.descriptor(), content) == 0 && file.create(0600) == 0;
}

Status save_receipt(const std::string& path, const std::string& content, Observer& observer) {
  const Status first = write_file(path, content);
  if (first) return first;
  if (const auto root = temporary_root()) {
    const std::string rescue = temporary_path(*root) + "-receipt.json";
    if (write_private(rescue, content))
      return Error{first.error().code, first.error().message + "; the receipt was saved as " + rescue};
  }
  observer.unsaved_receipt(content);
  return Error{first.error().code, first.error().message + "; the receipt stands above"};
}

}  // namespace invar::generate
