#include "hub/cache/layout.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/file/file.h"
#include "base/file/temporary_file.h"
#include "hub/environment.h"
#include "hub/repo/listing.h"

namespace invar::hub {
namespace {

namespace fs = std::filesystem;

constexpr FileKind kRefFile{"the record of a branch", 1 << 12},
    kIndexFile{"the index of shards", uint64_t{256} << 20};

bool exists(const std::string& path) {
  std::error_code ec;
  return fs::exists(path, ec);
}

// ORG and NAME alike, as the hub allows them.
bool is_name(std::string_view name) {
  const auto allowed = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  const auto end = [](char c) { return c == '-' || c == '.'; };
  return !name.empty() && name.size() <= 96 && std::all_of(name.begin(), name.end(), allowed) &&
         !end(name.front()) && !end(name.back()) && name.find("--") == name.npos &&
         name.find("..") == name.npos;
}

// A branch, a tag or a commit, as git allows them, without what a shell or a path would read
// otherwise.
bool is_revision(std::string_view r) {
  const auto allowed = [](unsigned char c) { return c > ' ' && c < 127 && !std::strchr("~^:?*[\\%#@", c); };
  return !r.empty() && r.size() <= 200 && std::all_of(r.begin(), r.end(), allowed) && r.front() != '/' &&
         r.front() != '.' && r.back() != '/' && r.find("..") == r.npos && r.find("//") == r.npos &&
         r.find("/.") == r.npos;
}

bool has_tokenizer(const std::string& folder) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    const std::string name = entry.path().filename().string();
    const bool one = name == "tokenizer.json" || name == "vocab.json" || name.ends_with(".model") ||
                     name.ends_with(".tiktoken");
    if (one && exists(entry.path().string())) return true;
  }
  return false;
}

bool has_weights(const std::string& folder) {
  if (exists(folder + "/" + kSingleFile)) return true;
  const auto index = read_file(folder + "/" + kShardIndex, kIndexFile);
  if (!index) return false;
  const auto shards = shards_of(*index, folder);
  return shards && std::all_of(shards->begin(), shards->end(),
                               [&](const std::string& s) { return exists(folder + "/" + s); });
}

}  // namespace

std::optional<ModelName> parse_name(std::string_view whole) {
  const size_t colon = whole.find(':');
  const std::string_view text = whole.substr(0, colon);
  const std::string file(colon == whole.npos ? "" : whole.substr(colon + 1));
  if (colon != whole.npos && (!file.ends_with(".gguf") || !is_plain_path(file))) return std::nullopt;
  const size_t at = text.find('@');
  const std::string_view repository = text.substr(0, at);
  const size_t slash = repository.find('/');
  if (slash == repository.npos || !is_name(repository.substr(0, slash)) ||
      !is_name(repository.substr(slash + 1)))
    return std::nullopt;
  ModelName name{std::string(repository), at == text.npos ? "" : std::string(text.substr(at + 1)), file};
  if (at != text.npos && !is_revision(name.revision)) return std::nullopt;
  return name;
}

std::string text_of(const ModelName& name) {
  return name.repository + (name.revision.empty() ? "" : "@" + name.revision) +
         (name.file.empty() ? "" : ":" + name.file);
}

std::vector<std::string> gguf_parts(const std::string& file) {
  constexpr std::string_view kOf = "-of-", kEnd = ".gguf";
  const size_t of = file.size() < 20 ? file.npos : file.size() - kEnd.size() - 5 - kOf.size();
  if (of == file.npos || file.compare(of, kOf.size(), kOf) != 0 || file.compare(of - 6, 6, "-00001") != 0)
    return {file};
  const std::string digits = file.substr(of + kOf.size(), 5);
  if (digits.find_first_not_of("0123456789") != digits.npos) return {file};
  std::vector<std::string> parts;
  for (int i = 1; i <= std::stoi(digits); ++i) {
    const std::string number = std::to_string(i);
    parts.push_back(file.substr(0, of - number.size()) + number + file.substr(of));
  }
  return parts;
}

bool is_commit(const std::string& revision) {
  return revision.size() == 40 && is_digest(revision);
}

Layout::Layout(const std::string& repository) {
  std::string name = repository;
  name.replace(name.find('/'), 1, "--");
  folder = cache_folder() + "/models--" + name, locks = cache_folder() + "/.locks/models--" + name;
}

std::optional<Snapshot> find(const ModelName& model, Content content) {
  const Layout cache(model.repository);
  const std::string revision = model.revision.empty() ? "main" : model.revision;
  const bool hexadecimal = revision.find_first_not_of("0123456789abcdef") == revision.npos;
  std::error_code ec;
  std::string commit = revision;
  if (!hexadecimal || !fs::is_directory(cache.snapshot(commit), ec)) {
    const auto ref = read_file(cache.ref(revision), kRefFile);
    if (!ref) return std::nullopt;
    commit = *ref;
    while (!commit.empty() && (commit.back() == '\n' || commit.back() == ' ')) commit.pop_back();
    const bool plain = !commit.empty() && commit.find_first_of(std::string_view("/\0", 2)) == commit.npos &&
                       commit != "." && commit != "..";
    if (!plain || !fs::is_directory(cache.snapshot(commit), ec)) return std::nullopt;
  }
  Snapshot found{commit, cache.snapshot(commit), false};
  if (!model.file.empty()) {
    const std::vector<std::string> parts = gguf_parts(model.file);
    found.complete =
        std::ranges::all_of(parts, [&](const auto& part) { return exists(found.folder + "/" + part); });
    return found;
  }
  if (content == Content::adapter) {
    found.complete = std::ranges::all_of(kFilesOfAdapter,
                                         [&](const char* file) { return exists(found.folder + "/" + file); });
    return found;
  }
  found.complete = exists(found.folder + "/config.json") && has_tokenizer(found.folder) &&
                   (content == Content::without_weights || has_weights(found.folder));
  return found;
}

std::string repository_of(const std::string& snapshot) {
  const fs::path all = fs::path(snapshot).parent_path();
  std::string name = all.parent_path().filename().string();
  if (all.filename() != "snapshots" || !name.starts_with("models--")) return "";
  name.erase(0, 8);
  if (const size_t dashes = name.find("--"); dashes != name.npos) name.replace(dashes, 2, "/");
  return name;
}

std::vector<CachedModel> cached_models() {
  std::vector<CachedModel> models;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(cache_folder(), ec)) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with("models--")) continue;
    name.erase(0, 8);
    if (const size_t dashes = name.find("--"); dashes != name.npos) name.replace(dashes, 2, "/");
    for (const auto& snapshot : fs::directory_iterator(entry.path() / "snapshots", ec)) {
      CachedModel model{name, snapshot.path().filename().string(), 0};
      for (fs::recursive_directory_iterator file(snapshot.path(), ec), end; !ec && file != end;
           file.increment(ec))
        if (std::error_code gone; fs::is_regular_file(file->path(), gone))
          model.bytes += fs::file_size(file->path(), gone);
      models.push_back(std::move(model));
    }
  }
  std::sort(models.begin(), models.end(), [](const CachedModel& a, const CachedModel& b) {
    return std::tie(a.repository, a.commit) < std::tie(b.repository, b.commit);
  });
  return models;
}

Status make_folders(const std::string& path) {
  std::error_code ec;
  fs::create_directories(path, ec);
  if (!ec) return {};
  return bad_input("the Hugging Face cache " + cache_folder() + " cannot be written: " + path + ": " +
                   ec.message() + ": set HF_HUB_CACHE to a folder that can be");
}

Result<Lock> Lock::take(const std::string& path) {
  INVAR_CHECK_OK(make_folders(folder_of(path)));
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0664);
  if (fd < 0) return bad_input("cannot lock '" + path + "': " + std::strerror(errno));
  while (::flock(fd, LOCK_EX) != 0 && errno == EINTR) {
  }
  return Lock(fd);
}

Lock::Lock(Lock&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}

Lock::~Lock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace invar::hub
