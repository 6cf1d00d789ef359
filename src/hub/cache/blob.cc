#include "hub/cache/blob.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "base/text/decimal.h"

namespace invar::hub {
namespace {

constexpr int kOk = 200, kPartialContent = 206;

std::string number(uint64_t n) {
  return std::to_string(n);
}

// The size of the whole and where the body begins, as "bytes 100-199/200" says it.
bool parse_range(std::string_view text, uint64_t& begin, uint64_t& whole) {
  if (!text.starts_with("bytes ")) return false;
  const size_t dash = text.find('-'), slash = text.find('/');
  if (dash == text.npos || slash == text.npos || slash < dash) return false;
  const auto from = parse_whole(text.substr(6, dash - 6), 0, UINT64_MAX);
  const auto all = parse_whole(text.substr(slash + 1), 0, UINT64_MAX);
  if (!from || !all) return false;
  return begin = *from, whole = *all, true;
}

// W/"x" or "x" -> x.
std::string_view plain_etag(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  return etag;
}

}  // namespace

BlobHash::BlobHash(bool sha256, uint64_t size) {
  if (sha256) return;
  const std::string head = "blob " + number(size);
  hash_.emplace<Sha1>().update(head.c_str(), head.size() + 1);
}

void BlobHash::update(std::string_view piece) {
  std::visit([&](auto& h) { h.update(piece.data(), piece.size()); }, hash_);
}

std::string BlobHash::finish() {
  if (auto* sha256 = std::get_if<Sha256>(&hash_)) return to_hex(sha256->finish());
  return std::get<Sha1>(hash_).finish();
}

BlobReceiver::BlobReceiver(std::string blob, const std::string& digest, uint64_t size,
                           std::function<bool(uint64_t)> progress)
    : blob_(std::move(blob)),
      incomplete_(blob_ + ".incomplete"),
      digest_(digest),
      size_(size),
      hash_(digest.size() == 64, size),
      progress_(std::move(progress)) {}

BlobReceiver::BlobReceiver(BlobReceiver&& o) noexcept
    : blob_(std::move(o.blob_)),
      incomplete_(std::move(o.incomplete_)),
      digest_(std::move(o.digest_)),
      size_(o.size_),
      held_(o.held_),
      earlier_(o.earlier_),
      fd_(std::exchange(o.fd_, -1)),
      hash_(o.hash_),
      progress_(std::move(o.progress_)) {}

BlobReceiver::~BlobReceiver() {
  if (fd_ >= 0) ::close(fd_);
}

Status BlobReceiver::failed(const char* what) const {
  return bad_input(std::string("cannot ") + what + " '" + incomplete_ + "': " + std::strerror(errno));
}

Result<BlobReceiver> BlobReceiver::open(const std::string& blob, const std::string& digest, uint64_t size,
                                        std::function<bool(uint64_t)> progress) {
  BlobReceiver r(blob, digest, size, std::move(progress));
  r.fd_ = ::open(r.incomplete_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
  struct stat info;
  if (r.fd_ < 0 || ::fstat(r.fd_, &info) != 0) return r.failed("write").error();
  INVAR_CHECK_OK(static_cast<uint64_t>(info.st_size) > size
                     ? r.restart()
                     : r.read_earlier(static_cast<uint64_t>(info.st_size)));
  return r;
}

Status BlobReceiver::read_earlier(uint64_t size) {
  std::vector<char> buffer(1 << 20);
  while (held_ < size) {
    const ssize_t n = ::pread(fd_, buffer.data(), buffer.size(), static_cast<off_t>(held_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("read");
    if (n == 0) break;
    hash_.update({buffer.data(), static_cast<size_t>(n)});
    held_ += static_cast<uint64_t>(n);
  }
  earlier_ = held_;
  progress_(held_);
  return {};
}

Status BlobReceiver::restart() {
  if (::ftruncate(fd_, 0) != 0) return failed("write");
  held_ = earlier_ = 0, hash_ = BlobHash(digest_.size() == 64, size_);
  progress_(0);
  return {};
}

// Is it the content that was asked for, and from where on?
Status BlobReceiver::begin(const Response& r) {
  const auto header = [&](const char* name) {
    const auto found = r.headers.find(name);
    return found == r.headers.end() ? std::string() : found->second;
  };
  const std::string etag(plain_etag(header("x-linked-etag")));
  if (!etag.empty() && etag != digest_)
    return bad_input("the hub lists the digest " + digest_ + " and answers with " + etag);
  if (r.status == kPartialContent) {
    uint64_t begin = 0, whole = 0;
    if (!parse_range(header("content-range"), begin, whole) || begin != held_)
      return bad_input("the server was asked for the bytes from " + number(held_) +
                       " on and answers with \"" + header("content-range") + "\"");
    if (whole == size_) return {};
    return bad_input("the hub lists " + number(size_) + " bytes, the server has " + number(whole));
  }
  if (r.status != kOk)
    return bad_input("HTTP status " + number(static_cast<uint64_t>(r.status)) + " with a content");
  const std::string length = header("content-length");
  if (!length.empty() && length != number(size_))
    return bad_input("the hub lists " + number(size_) + " bytes, the server sends " + length);
  return held_ > 0 ? restart() : Status();  // the server does not know ranges
}

Status BlobReceiver::take(std::string_view piece) {
  if (piece.size() > size_ - held_)
    return bad_input("the hub lists " + number(size_) + " bytes, the server sends more");
  hash_.update(piece);
  while (!piece.empty()) {
    const ssize_t n = ::pwrite(fd_, piece.data(), piece.size(), static_cast<off_t>(held_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("write");
    held_ += static_cast<uint64_t>(n);
    piece.remove_prefix(static_cast<size_t>(n));
  }
  if (progress_(held_)) return {};
  return bad_input("interrupted: what has come is kept, and the next download goes on from there");
}

Result<bool> BlobReceiver::finish() {
  if (!full()) return false;
  const std::string digest = hash_.finish();
  if (digest == digest_) return true;
  if (earlier_ > 0) {  // what an earlier process left may be what is wrong
    INVAR_CHECK_OK(restart());
    return false;
  }
  ::unlink(incomplete_.c_str());
  return bad_input("what came has the " + std::string(digest_.size() == 64 ? "SHA-256 " : "git SHA-1 ") +
                   digest + ", the hub lists " + digest_ +
                   ": it was removed; try again, or ask whoever runs the hub");
}

Status BlobReceiver::keep() {
  if (::fsync(fd_) != 0) return failed("write");
  if (::close(std::exchange(fd_, -1)) != 0) return failed("write");
  if (std::rename(incomplete_.c_str(), blob_.c_str()) != 0) return failed("rename");
  return {};
}

}  // namespace invar::hub
