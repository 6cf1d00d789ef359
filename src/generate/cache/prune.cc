// cached_tasks(), prune_tasks(): the folders that runs have left under a tasks root.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/file/temporary_file.h"
#include "generate/cache/task_cache.h"
#include "generate/cache/task_folder.h"

namespace invar::generate {
namespace {

namespace fs = std::filesystem;

// A task folder that nobody uses, as long as this is alive: a run that wants it waits.
class Unused {
 public:
  // Absent: no folder of this user, or a run uses it.
  static std::optional<Unused> take(const std::string& path) {
    Unused u(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info;
    const bool own = u.fd_ >= 0 && ::fstat(u.fd_, &info) == 0 && info.st_uid == ::geteuid();
    if (!own || ::flock(u.fd_, LOCK_EX | LOCK_NB) != 0) return std::nullopt;
    return u;
  }
  Unused(Unused&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  ~Unused() {
    if (fd_ >= 0) ::close(fd_);
  }

 private:
  explicit Unused(int fd) : fd_(fd) {}
  int fd_;
};

// Made by runs alone: it has a record, or nothing but what a killed run left.
bool is_task(const fs::path& folder) {
  std::error_code ec;
  if (!fs::is_directory(fs::symlink_status(folder, ec))) return false;
  if (fs::exists(folder / kRecord, ec)) return true;
  for (const auto& entry : fs::directory_iterator(folder, ec))
    if (!entry.path().filename().string().starts_with(".invar-")) return false;
  return !ec;
}

uint64_t bytes_in(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code ec;
  for (fs::recursive_directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec)) {
    std::error_code gone;
    if (at->is_regular_file(gone) && !at->is_symlink(gone)) bytes += at->file_size(gone);
  }
  return bytes;
}

// The name is free for a new folder before the content goes.
bool remove_task(const std::string& root, const CachedTask& task) {
  const auto unused = Unused::take(task.path);
  if (!unused) return false;
  const std::string doomed = temporary_path(root);
  if (std::rename(task.path.c_str(), doomed.c_str()) != 0) return false;
  std::error_code ec;
  fs::remove_all(doomed, ec);
  return !ec;
}

// Removes what the cache has for GGUF files (model/gguf_model.cc), which the next run makes again:
// of files that are gone, or `all`.
uint64_t prune_gguf_folders(bool all) {
  const std::string cache = cache_folder();
  uint64_t bytes = 0;
  std::error_code ec;
  if (cache.empty()) return bytes;
  for (const auto& entry : fs::directory_iterator(cache + "/gguf", ec)) {
    if (!fs::is_directory(fs::symlink_status(entry.path(), ec))) continue;
    bool gone = all;
    for (const auto& file : fs::directory_iterator(entry.path(), ec))
      gone |= file.is_symlink(ec) && !fs::exists(file.path(), ec);
    const uint64_t held = gone ? bytes_in(entry.path()) : 0;
    const std::string doomed = temporary_path(cache);
    if (!gone || std::rename(entry.path().c_str(), doomed.c_str()) != 0) continue;
    fs::remove_all(doomed, ec);
    bytes += held;
  }
  return bytes;
}

}  // namespace

std::string tasks_folder(const std::string& root) {
  if (!root.empty()) return root;
  const std::string cache = cache_folder();
  return cache.empty() ? "" : cache + "/tasks";
}

std::vector<CachedTask> cached_tasks(const std::string& root) {
  std::vector<CachedTask> tasks;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(tasks_folder(root), ec)) {
    struct stat info;
    const std::string path = entry.path().string();
    if (!is_task(entry.path()) || ::lstat(path.c_str(), &info) != 0) continue;
    tasks.push_back({path, bytes_in(entry.path()), info.st_mtim.tv_sec, !Unused::take(path)});
  }
  std::sort(tasks.begin(), tasks.end(), [](const CachedTask& a, const CachedTask& b) {
    return std::tie(a.last_use, a.path) < std::tie(b.last_use, b.path);
  });
  return tasks;
}

Pruned prune_tasks(const std::string& root, const PruneRule& rule) {
  const std::vector<CachedTask> tasks = cached_tasks(root);
  uint64_t left = 0;
  for (const CachedTask& task : tasks) left += task.bytes;
  Pruned pruned;
  for (const CachedTask& task : tasks) {  // the one that was not used for longest, first
    const bool old = rule.used_before && task.last_use < *rule.used_before;
    const bool too_much = rule.most_bytes && left > *rule.most_bytes;
    // A name that begins with a dot was being removed when a process ended.
    const bool doomed = fs::path(task.path).filename().string().starts_with(".invar-");
    if (!rule.all && !old && !too_much && !doomed) continue;
    if (!remove_task(tasks_folder(root), task)) {
      pruned.kept.push_back(task.path);
      continue;
    }
    left -= task.bytes, pruned.bytes += task.bytes, ++pruned.removed;
  }
  if (root.empty()) pruned.bytes += prune_gguf_folders(rule.all);
  return pruned;
}

}  // namespace invar::generate
