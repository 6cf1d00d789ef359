// Hashes byte ranges of weight files with a pool of threads.
#include "compiler/emit/weight_hashing.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>
#include <tuple>

#include "base/hash/hash_groups.h"
#include "base/hash/sha256_blocks.h"
#include "weights/weight_file.h"

namespace invar::compiler {

namespace {

using weights::WeightFile;
using Files = std::map<std::string, WeightFile>;

std::span<const std::byte> bytes_of(const HashRequest& r, const Files& files) {
  return std::as_bytes(
      std::span(r.bytes.data() ? r.bytes : files.at(r.file).text().substr(r.offset, r.length)));
}
uint64_t length_of(const HashRequest& r) {
  return r.bytes.data() ? r.bytes.size() : r.length;
}

}  // namespace

Status hash_ranges(const std::string& folder, std::span<HashRequest> ranges, int threads, DigestCache* cache,
                   const ByteProgress& progress) {
  Files files;
  std::map<std::tuple<std::string, uint64_t, uint64_t>, std::vector<HashRequest*>> by_location;
  for (HashRequest& r : ranges) {
    if (r.bytes.data()) {
      by_location[{r.file, r.offset, r.length}].push_back(&r);
      continue;
    }
    auto file = files.find(r.file);
    if (file == files.end()) {
      INVAR_TRY(WeightFile opened, WeightFile::open(folder.empty() ? r.file : folder + "/" + r.file));
      file = files.emplace(r.file, std::move(opened)).first;
    }
    const uint64_t size = file->second.size();
    if (r.offset > size || r.length > size - r.offset)
      return bad_input(r.file + ": has " + std::to_string(size) + " bytes, a weight lies at " +
                       std::to_string(r.offset) + " + " + std::to_string(r.length));
    if (r.presumed) continue;
    by_location[{r.file, r.offset, r.length}].push_back(&r);
  }
  std::vector<std::vector<HashRequest*>> work;
  for (auto& [key, list] : by_location)
    if (threads >= 0 || list[0]->bytes.data()) work.push_back(std::move(list));
  if (threads < 0) cache = nullptr;
  const size_t wanted = threads > 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
  // Ranges that are packed come after those whose bytes lie in memory, each in a group of its own.
  const auto packed = std::stable_partition(work.begin(), work.end(), [&](const auto& list) {
    return list[0]->bytes.data() || !files.at(list[0]->file).is_packed();
  });
  std::vector<std::span<const std::byte>> bytes;
  for (auto list = work.begin(); list != packed; ++list) bytes.push_back(bytes_of(*(*list)[0], files));
  std::vector<uint64_t> lengths;
  for (const auto& list : work) lengths.push_back(length_of(*list[0]));
  std::vector<HashGroup> groups =
      hash_groups(std::span(lengths).first(bytes.size()), static_cast<int>(wanted));
  for (size_t i = bytes.size(); i < work.size(); ++i) groups.push_back({i});
  std::mutex mutex;
  Status status;
  std::atomic<size_t> next{0};
  const auto total = std::accumulate(lengths.begin(), lengths.end(), uint64_t{0});
  ByteMeter meter(progress, total);
  const std::thread::id caller = std::this_thread::get_id();
  const auto take = [&](size_t i, const Digest& digest) {
    for (HashRequest* range : work[i]) range->sha256 = digest;
    meter.add(lengths[i], std::this_thread::get_id() == caller);
  };
  const auto worker = [&] {
    for (size_t g; (g = next++) < groups.size();) {
      if (groups[g][0] >= bytes.size()) {
        const HashRequest& r = *work[groups[g][0]][0];
        const Result<Digest> digest = files.at(r.file).sha256(r.offset, r.length);
        if (digest) {
          take(groups[g][0], *digest);
          continue;
        }
        const std::lock_guard lock(mutex);
        if (status) status = digest.error();
        return;
      }
      std::vector<std::span<const std::byte>> messages;
      for (size_t i : groups[g]) messages.push_back(bytes[i]);
      std::vector<Digest> digests(messages.size());
      sha256_of_many(messages, digests);
      for (size_t i = 0; i < digests.size(); ++i) take(groups[g][i], digests[i]);
    }
  };
  std::vector<std::jthread> pool;
  try {
    for (size_t i = 1; i < std::min(wanted, groups.size()); ++i) pool.emplace_back(worker);
  } catch (const std::system_error&) {  // No more threads: those that started do all of the work.
  }
  worker();
  pool.clear();
  INVAR_CHECK_OK(status);
  if (progress && total) progress(total, total);  // the last ranges may have been another thread's
  for (const auto& list : work)
    if (const HashRequest& r = *list[0]; cache && !r.bytes.data())
      files.at(r.file).remember(*cache, r.offset, r.length, r.sha256);
  return {};
}

}  // namespace invar::compiler
