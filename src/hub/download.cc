// download(): the listing, then each file of it that is needed, then the link and the branch.
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/file/file.h"
#include "base/file/temporary_file.h"
#include "base/text/decimal.h"
#include "hub/cache/blob.h"
#include "hub/cache/layout.h"
#include "hub/environment.h"
#include "hub/http/client.h"
#include "hub/hub.h"
#include "hub/repo/listing.h"

namespace invar::hub {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostOfAListing = size_t{16} << 20;

// A path or a revision within a URL (RFC 3986, 2.3).
std::string quoted(std::string_view text, bool keep_slash) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const unsigned char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~' || (c == '/' && keep_slash);
    if (plain)
      out += static_cast<char>(c);
    else
      out += {'%', kDigits[c >> 4], kDigits[c & 15]};
  }
  return out;
}

// The size of what is at this path, through links; absent: nothing is.
std::optional<uint64_t> size_of(const std::string& path) {
  std::error_code ec;
  const uint64_t size = fs::file_size(path, ec);
  return ec ? std::nullopt : std::optional(size);
}

class Download {
 public:
  Download(ModelName model, Content content, const Watcher& watcher)
      : model_(std::move(model)), content_(content), watcher_(watcher), cache_(model_.repository) {}
  Result<Snapshot> run();

 private:
  std::string url_of(const RemoteFile& f) const {
    return client_->endpoint() + "/" + model_.repository + "/resolve/" + listing_.commit + "/" +
           quoted(f.path, true);
  }
  std::string link_of(const RemoteFile& f) const { return cache_.snapshot(listing_.commit) + "/" + f.path; }
  Status choose();
  Status describe(RemoteFile&);
  Status check_space() const;
  Status fetch(const RemoteFile&);
  Result<bool> holds(const std::string& path, const RemoteFile&) const;
  Status receive(const RemoteFile&);
  Status link(const RemoteFile&) const;

  ModelName model_;
  Content content_;
  const Watcher& watcher_;
  Layout cache_;
  std::optional<Client> client_;
  Listing listing_;
  std::vector<RemoteFile> files_;      // the weights last: a folder with them has everything
  uint64_t total_ = 0, finished_ = 0;  // bytes of all files; of those that are here
};

// A hub that lists no digest or size of a file says them in the headers of the file.
Status Download::describe(RemoteFile& f) {
  if (f.size && !f.digest.empty()) return {};
  INVAR_TRY(const Response r, client_->head(url_of(f)));
  const auto header = [&](const char* linked, const char* plain) {
    const auto first = r.headers.find(linked), second = r.headers.find(plain);
    return first != r.headers.end() ? first->second : second != r.headers.end() ? second->second : "";
  };
  std::string etag = header("x-linked-etag", "etag");
  std::erase(etag, '"');
  if (etag.starts_with("W/")) etag.erase(0, 2);
  if (!is_digest(etag))
    return bad_input("model " + model_.repository + ": " + url_of(f) +
                     ": the hub gives no SHA-256 or git SHA-1 of it (ETag \"" + etag + "\")");
  const auto size = parse_whole(header("x-linked-size", "content-length"), 0, INT64_MAX);
  if (!size)
    return bad_input("model " + model_.repository + ": " + url_of(f) + ": the hub gives no size of it");
  f.digest = etag, f.size = *size;
  return {};
}

// The files that are needed. The index of shards is fetched here, as it names more of them.
Status Download::choose() {
  if (content_ == Content::adapter) {
    for (const std::string_view name : kFilesOfAdapter) {
      const auto file = std::ranges::find(listing_.files, name, &RemoteFile::path);
      if (file == listing_.files.end())
        return bad_input("adapter " + model_.repository + ": it has no " + std::string(name) +
                         ", as an adapter of PEFT has");
      files_.push_back(*file);
      INVAR_CHECK_OK(describe(files_.back()));
    }
    return {};
  }
  if (!model_.file.empty() || is_gguf(listing_)) {  // which has the tokenizer, too
    INVAR_TRY(files_, gguf_files(listing_, model_));
    for (RemoteFile& f : files_) INVAR_CHECK_OK(describe(f));
    return {};
  }
  files_ = small_files(listing_);
  for (RemoteFile& f : files_) INVAR_CHECK_OK(describe(f));
  if (content_ == Content::without_weights) {
    std::erase_if(files_, [](const RemoteFile& f) { return f.path == kShardIndex; });
    return {};
  }
  std::string index;
  for (const RemoteFile& f : files_) {
    if (f.path != kShardIndex) continue;
    INVAR_CHECK_OK(fetch(f));
    INVAR_TRY(index, read_file(link_of(f)));
  }
  INVAR_TRY(const std::vector<RemoteFile> weights, weight_files(listing_, index, model_));
  for (RemoteFile f : weights) {
    INVAR_CHECK_OK(describe(f));
    files_.push_back(std::move(f));
  }
  return {};
}

Status Download::check_space() const {
  struct statvfs info;
  if (::statvfs(cache_.folder.c_str(), &info) != 0) return {};
  uint64_t needed = 0;
  for (const RemoteFile& f : files_) {
    if (size_of(cache_.blob(f.digest))) continue;
    const uint64_t held = size_of(cache_.blob(f.digest) + ".incomplete").value_or(0);
    needed += *f.size - std::min(*f.size, held);
  }
  const uint64_t free = uint64_t{info.f_bavail} * info.f_frsize;
  if (needed <= free) return {};
  return bad_input("model " + model_.repository + ": " + std::to_string(needed) +
                   " bytes are to be downloaded, and the disk of " + cache_folder() + " has " +
                   std::to_string(free) + ": make room, or set HF_HUB_CACHE to another disk");
}

Status Download::receive(const RemoteFile& f) {
  INVAR_CHECK_OK(make_folders(cache_.folder + "/blobs"));
  INVAR_TRY(const Lock lock, Lock::take(cache_.locks + "/" + f.digest + ".lock"));
  const std::string blob = cache_.blob(f.digest);
  INVAR_TRY(const bool here, holds(blob, f));
  if (here) return {};  // another process was faster, or another file is equal
  INVAR_TRY(BlobReceiver receiver, BlobReceiver::open(blob, f.digest, *f.size, [&](uint64_t held) {
              return !watcher_.bytes || total_ == 0 || watcher_.bytes(finished_ + held, total_);
            }));
  bool whole = false;
  if (receiver.full()) {  // a process ended before it could rename it; or the file is empty
    INVAR_TRY(whole, receiver.finish());
  }
  if (!whole) {
    INVAR_CHECK_OK(client_->get(url_of(f), receiver));
  }
  return receiver.keep();
}

// snapshots/COMMIT/PATH -> ../../blobs/DIGEST
Status Download::link(const RemoteFile& f) const {
  const std::string path = link_of(f);
  INVAR_CHECK_OK(make_folders(folder_of(path)));
  std::string target = "../../blobs/" + f.digest;
  for (const char c : f.path)
    if (c == '/') target = "../" + target;
  const int error = replace_file(path, [&](const std::string& temporary) {
    return ::symlink(target.c_str(), temporary.c_str()) == 0 ? 0 : errno;
  });
  if (!error) return {};
  return bad_input("cannot link '" + path + "': " + std::strerror(error));
}

// Whether the bytes at this path, through links, are those that the hub lists. Whoever may write to
// the cache may have put others there.
Result<bool> Download::holds(const std::string& path, const RemoteFile& f) const {
  if (size_of(path) != f.size) return false;
  const auto file = MappedFile::open(path);
  if (!file || file->bytes().size() != *f.size) return false;
  BlobHash hash(f.digest.size() == 64, *f.size);
  constexpr size_t kPiece = size_t{16} << 20;
  for (size_t at = 0; at < *f.size; at += kPiece) {
    hash.update(file->text().substr(at, kPiece));
    if (watcher_.bytes && total_ > 0 && !watcher_.bytes(finished_ + std::min(at + kPiece, *f.size), total_))
      return bad_input("interrupted: the next download goes on from here");
  }
  return hash.finish() == f.digest;
}

Status Download::fetch(const RemoteFile& f) {
  INVAR_TRY(const bool here, holds(link_of(f), f));
  if (!here) {
    INVAR_CHECK_OK(receive(f));
    INVAR_CHECK_OK(link(f));
  }
  finished_ += *f.size;
  if (watcher_.bytes && total_ > 0) watcher_.bytes(finished_, total_);
  return {};
}

Result<Snapshot> Download::run() {
  INVAR_TRY(client_, Client::open(model_));
  const std::string revision = model_.revision.empty() ? "main" : model_.revision;
  const std::string url = client_->endpoint() + "/api/models/" + model_.repository + "/revision/" +
                          quoted(revision, false) + "?blobs=true";
  INVAR_TRY(const std::string text, client_->get_text(url, kMostOfAListing));
  INVAR_TRY(listing_, parse_listing(text, "model " + model_.repository + ": " + url));
  INVAR_CHECK_OK(choose());
  finished_ = total_ = 0;
  for (const RemoteFile& f : files_) total_ += *f.size;
  if (watcher_.begin) watcher_.begin(files_.size(), total_);
  INVAR_CHECK_OK(check_space());
  for (const RemoteFile& f : files_) INVAR_CHECK_OK(fetch(f));
  if (!is_commit(revision)) {
    INVAR_CHECK_OK(make_folders(folder_of(cache_.ref(revision))));
    const auto before = read_file(cache_.ref(revision));
    if (!before || *before != listing_.commit) {
      INVAR_CHECK_OK(write_file(cache_.ref(revision), listing_.commit));
    }
  }
  return Snapshot{listing_.commit, cache_.snapshot(listing_.commit), true};
}

}  // namespace

Result<Snapshot> download(const ModelName& model, Content content, const Watcher& watcher) {
  return Download(model, content, watcher).run();
}

}  // namespace invar::hub
