// The cache of one exported and compiled checkpoint: a folder that its owner alone can write. Its
// record, the file `identity`, names what the content was made of and the SHA-256 of what was made;
// the plan has those of the weights.
#pragma once

#include <optional>
#include <string>

#include "base/file/temporary_file.h"
#include "base/status.h"
#include "plan/plan.h"

namespace invar::generate {

// The file that names what a folder was made of.
inline constexpr const char* kRecord = "identity";

class TaskFolder {
 public:
  // Opens the folder, or makes it (0700, as its missing parents), notes the time as that of its
  // last use, and keeps prune_tasks() from it until destruction. bad_input: it or the folder around
  // it belongs to another user, or others may write to it.
  static Result<TaskFolder> open(const std::string& path);
  TaskFolder(TaskFolder&& o) noexcept;
  TaskFolder(const TaskFolder&) = delete;
  ~TaskFolder();
  const std::string& path() const { return path_; }

  struct Content {
    std::optional<plan::Plan> plan;
    std::string damage;  // why there is no plan, where the folder claims to hold the one wanted
  };
  // The plan that was stored under `key`, if all that was made is still as it was stored.
  Content read(const std::string& key) const;

  // A folder inside, in which new content is made.
  Result<TemporaryFolder> make_temporary() const;
  // Moves the files of `made` here and records them under `key`. A reader sees the old content,
  // none, or the new. bad_input: a file of that name is here that no earlier store() put here.
  Status store(const TemporaryFolder& made, const std::string& key) const;

 private:
  Result<bool> take();
  TaskFolder(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_;
};

// Creates the folder and its missing parents with mode 0700.
Status make_private_folders(const std::string& path);
// Whether only this user, or root, can put something in the place of what the folder holds.
Status check_parent(const std::string& folder);

}  // namespace invar::generate
