#include "generate/cache/task_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/file/file.h"
#include "base/hash/sha256.h"
#include "base/text/json.h"
#include "generate/onnx/compile_onnx.h"

namespace invar::generate {
namespace {

namespace fs = std::filesystem;
using json::Value;

constexpr const char* kSchema = "invar-task 1";
constexpr int kTries = 100;
constexpr auto kAbandoned = std::chrono::hours(24);  // a run that was killed leaves its temporary folder

Error refused(const std::string& path, const std::string& why) {
  return bad_input("task folder " + path + ": " + why + "; choose another with --task-dir or --tasks-root");
}

std::string octal(mode_t mode) {
  char text[16];
  std::snprintf(text, sizeof text, "%03o", static_cast<unsigned>(mode & 07777));
  return text;
}

// The content of `identity`: JSON, and a line with the SHA-256 of it.
struct Record {
  bool exists = false, whole = false;
  std::string key;
  Value files = Value::object;
};

Record record_in(int folder) {
  Record record;
  const auto text = read_file_at(folder, kRecord);
  if (!text) return record;
  record.exists = true;
  const size_t digest = text->size() < 66 ? 0 : text->size() - 65;
  const std::string_view body = std::string_view(*text).substr(0, digest);
  if (text->substr(digest) != to_hex(sha256(body)) + "\n") return record;
  const Value j = json::read_or_null(body);
  if (!j.is_object() || j.get("schema") != kSchema) return record;
  record.whole = true, record.key = j.get("key").text, record.files = j.get("files");
  return record;
}

Status write_record(const std::string& folder, const std::string& key, const Value& files) {
  const std::string body =
      json::dump(json::sorted({{"schema", kSchema}, {"key", key}, {"files", files}}), {.indent = 1}) + "\n";
  return write_file(folder + "/" + kRecord, body + to_hex(sha256(body)) + "\n");
}

// Names in the folder -> SHA-256 of what was made here. Weights have none: the plan has theirs, and
// they are hashed whenever they are loaded.
Result<Value> files_of(const std::string& folder) {
  Value files = Value::object;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    const std::string name = entry.path().filename().string();
    // The plan has the digests of weights.
    files[name] = fs::file_size(entry.path(), ec);
    const bool weights = name.ends_with(".safetensors") || name.ends_with(".bin") || name == kOnnxConstants;
    if (entry.is_symlink(ec) || weights) continue;
    INVAR_TRY(const std::string content, read_file(entry.path().string()));
    files[name] = to_hex(sha256(content));
  }
  return files;
}

// Links to one target, or files with the same bytes: replacing one by the other loses nothing.
bool same_entry(const fs::path& a, const fs::path& b) {
  std::error_code ec;
  const bool link = fs::is_symlink(fs::symlink_status(a, ec));
  if (link != fs::is_symlink(fs::symlink_status(b, ec))) return false;
  if (link) return fs::read_symlink(a, ec) == fs::read_symlink(b, ec) && !ec;
  const auto left = MappedFile::open(a.string()), right = MappedFile::open(b.string());
  return left && right && left->text() == right->text();
}

// Another run may have mapped a file of this name, which must not lose it (MappedFile::changed):
// where it is the same the one that is there stays. Returns 0 or an errno.
int move_to(const std::string& target, const std::string& made) {
  if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (same_entry(made, target)) return 0;
  return std::rename(made.c_str(), target.c_str()) == 0 ? 0 : errno;
}

}  // namespace

Status make_private_folders(const std::string& path) {
  for (size_t end = 0; end != path.npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0700) == 0 || errno == EEXIST) continue;
    std::error_code ec;
    if (fs::is_directory(part, ec)) continue;  // a read-only place says EROFS of what is there
    return refused(path, std::strerror(errno));
  }
  return {};
}

Status check_parent(const std::string& folder) {
  struct stat info;
  if (::stat(folder.c_str(), &info) != 0) return refused(folder, std::strerror(errno));
  if (info.st_uid != ::geteuid() && info.st_uid != 0)
    return refused(folder, "it belongs to user " + std::to_string(info.st_uid));
  if ((info.st_mode & S_IWOTH) && !(info.st_mode & S_ISVTX))
    return refused(folder, "every user may replace what it holds (mode " + octal(info.st_mode) + ")");
  return {};
}

Result<TaskFolder> TaskFolder::open(const std::string& path) {
  std::string plain = path;
  while (plain.size() > 1 && plain.back() == '/') plain.pop_back();
  for (int i = 0; i < kTries; ++i) {
    INVAR_CHECK_OK(make_private_folders(plain));
    INVAR_CHECK_OK(check_parent(folder_of(plain)));
    TaskFolder folder(plain, ::open(plain.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    INVAR_TRY(const bool taken, folder.take());
    if (taken) return folder;
  }
  return refused(plain, "others keep removing it");
}

// False: it was removed meanwhile.
Result<bool> TaskFolder::take() {
  // Everything that is trusted is read through this descriptor, so no other folder can take its
  // place meanwhile.
  if (fd_ < 0) {
    if (errno == ENOENT) return false;
    return refused(
        path_, errno == ELOOP || errno == ENOTDIR ? "not a folder, or a link to one" : std::strerror(errno));
  }
  struct stat info, named;
  if (::fstat(fd_, &info) != 0) return refused(path_, std::strerror(errno));
  if (info.st_uid != ::geteuid()) return refused(path_, "it belongs to user " + std::to_string(info.st_uid));
  if (info.st_mode & (S_IWGRP | S_IWOTH))
    return refused(path_, "other users may write to it (mode " + octal(info.st_mode) + "): chmod 700 it");
  // A file system without locks is one on which nothing is pruned in parallel.
  while (::flock(fd_, LOCK_SH) != 0 && errno == EINTR) {
  }
  ::futimens(fd_, nullptr);  // a folder that is read-only stays as old as it is
  return ::lstat(path_.c_str(), &named) == 0 && named.st_dev == info.st_dev && named.st_ino == info.st_ino;
}

TaskFolder::TaskFolder(TaskFolder&& o) noexcept : path_(std::move(o.path_)), fd_(std::exchange(o.fd_, -1)) {}

TaskFolder::~TaskFolder() {
  if (fd_ >= 0) ::close(fd_);
}

TaskFolder::Content TaskFolder::read(const std::string& key) const {
  const Record record = record_in(fd_);
  if (record.exists && !record.whole) return {{}, std::string(kRecord) + " is not what was stored"};
  if (!record.exists || record.key != key) return {};
  std::string plan_text;
  for (const auto& [name, wanted] : record.files.members) {
    if (!wanted.is_string()) {
      struct stat info;
      if (::fstatat(fd_, name.c_str(), &info, 0) != 0) return {{}, name + " cannot be read"};
      if (wanted.is_unsigned() && static_cast<uint64_t>(info.st_size) != wanted.to_uint64())
        return {{}, name + " is not what was stored"};
      continue;
    }
    const auto content = read_file_at(fd_, name);
    if (!content) return {{}, name + " cannot be read"};
    if (to_hex(sha256(*content)) != wanted.text) return {{}, name + " is not what was stored"};
    if (name == "plan.invar") plan_text = *content;
  }
  auto plan = plan::parse(plan_text, path_ + "/plan.invar");
  if (!plan) return {{}, plan.error().message};
  return {std::move(*plan), ""};
}

Result<TemporaryFolder> TaskFolder::make_temporary() const {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(path_, ec)) {
    const auto changed = fs::last_write_time(entry.path(), ec);
    if (!ec && entry.path().filename().string().starts_with(".invar-") &&
        changed + kAbandoned < fs::file_time_type::clock::now())
      fs::remove_all(entry.path(), ec);
  }
  return TemporaryFolder::make(path_);
}

Status TaskFolder::store(const TemporaryFolder& made, const std::string& key) const {
  INVAR_TRY(const Value files, files_of(made.path()));
  const Record before = record_in(fd_);
  Value own = before.files;
  std::error_code ec;
  for (const auto& [name, hash] : files.members) {
    const std::string target = path_ + "/" + name;
    // A record that was damaged does not say which files are ours, but that this is a task folder.
    const bool foreign = before.exists ? before.whole && !own.contains(name) : true;
    if (foreign && fs::exists(fs::symlink_status(target, ec)) &&
        !same_entry(made.path() + "/" + name, target))
      return refused(path_, name + " is in the way, and invar did not put it there");
    own[name] = nullptr;
  }
  // From here on the folder claims nothing, but says which files are its own: a run that is
  // interrupted now can be repeated.
  INVAR_CHECK_OK(write_record(path_, "", own));
  for (const auto& [name, hash] : files.members)
    if (const int error = move_to(path_ + "/" + name, made.path() + "/" + name))
      return refused(path_, name + ": " + std::strerror(error));
  for (const auto& [name, hash] : own.members)
    if (!files.contains(name)) fs::remove(path_ + "/" + name, ec);
  return write_record(path_, key, files);
}

}  // namespace invar::generate
