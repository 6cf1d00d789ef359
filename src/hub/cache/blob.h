// A file of the cache while it is received: BLOB.incomplete, which grows by whole pieces and
// becomes BLOB once its digest is the one in its name.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>

#include "base/hash/sha1.h"
#include "base/hash/sha256.h"
#include "hub/http/client.h"

namespace invar::hub {

// The digest by which the hub names a content: SHA-256 of large files, git's SHA-1 (of "blob SIZE",
// a zero byte and the content) of small ones.
class BlobHash {
 public:
  BlobHash(bool sha256, uint64_t size);
  void update(std::string_view piece);
  std::string finish();

 private:
  std::variant<Sha256, Sha1> hash_;
};

class BlobReceiver : public Receiver {
 public:
  // digest: 64 or 40 hexadecimal digits. progress: of bytes held, after each piece; false ends it.
  // What an earlier process received is taken over.
  static Result<BlobReceiver> open(const std::string& blob, const std::string& digest, uint64_t size,
                                   std::function<bool(uint64_t)> progress);
  BlobReceiver(BlobReceiver&& o) noexcept;
  ~BlobReceiver() override;
  uint64_t held() const override { return held_; }
  Status begin(const Response&) override;
  Status take(std::string_view piece) override;
  // False where bytes are missing, or where those of an earlier process were others: then all of
  // them are asked for again. bad_input: the content has another digest; it is removed.
  Result<bool> finish() override;
  bool full() const { return held_ == size_; }
  // Renames it to its name in the cache. Call it when finish() said true.
  Status keep();

 private:
  BlobReceiver(std::string blob, const std::string& digest, uint64_t size,
               std::function<bool(uint64_t)> progress);
  Status restart();
  Status read_earlier(uint64_t size);
  Status failed(const char* what) const;

  std::string blob_, incomplete_, digest_;
  uint64_t size_, held_ = 0;
  uint64_t earlier_ = 0;  // bytes that another process received
  int fd_ = -1;
  BlobHash hash_;
  std::function<bool(uint64_t)> progress_;
};

}  // namespace invar::hub
