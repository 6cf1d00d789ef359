// Hashes byte ranges of weight files with a pool of threads.
#include "compiler/emit/weight_hashing.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>
#include <system_error>
#include <thread>
#include <tuple>

#include "base/file/file.h"
#include "base/hash/hash_groups.h"
#include "base/hash/sha256_blocks.h"

namespace invar::compiler {

Status hash_ranges(const std::string& folder, std::span<HashRequest> ranges, int threads, DigestCache* cache,
                   const ByteProgress& progress) {
  std::map<std::string, MappedFile> files;
  std::map<std::tuple<std::string, uint64_t, uint64_t>, std::vector<HashRequest*>> by_location;
  for (HashRequest& r : ranges) {
    if (r.bytes.data()) {
      by_location[{r.file, r.offset, r.length}].push_back(&r);
      continue;
    }
    auto file = files.find(r.file);
    if (file == files.end()) {
      INVAR_TRY(MappedFile opened, MappedFile::open(folder.empty() ? r.file : folder + "/" + r.file));
      file = files.emplace(r.file, std::move(opened)).first;
    }
    size_t size = file->second.bytes().size();
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
  std::vector<std::span<const std::byte>> bytes;
  std::vector<uint64_t> lengths;
  for (const auto& list : work) {
    const HashRequest& r = *list[0];
    bytes.push_back(r.bytes.data() ? std::as_bytes(std::span(r.bytes))
                                   : files.at(r.file).bytes().subspan(r.offset, r.length));
    lengths.push_back(bytes.back().size());
  }
  const std::vector<HashGroup> groups = hash_groups(lengths, static_cast<int>(wanted));
  std::atomic<size_t> next{0};
  ByteMeter meter(progress, std::accumulate(lengths.begin(), lengths.end(), uint64_t{0}));
  const std::thread::id caller = std::this_thread::get_id();
  const auto take = [&](size_t i, const Digest& digest) {
    for (HashRequest* range : work[i]) range->sha256 = digest;
    meter.add(lengths[i], std::this_thread::get_id() == caller);
  };
  const auto worker = [&] {
    for (size_t g; (g = next++) < groups.size();) {
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
  } catch (const std::system_error&) {
    // The system refuses more threads. Those that started do all of the work.
  }
  worker();
  pool.clear();
  for (const auto& list : work)
    if (const HashRequest& r = *list[0]; cache && !r.bytes.data())
      cache->add(files.at(r.file), r.offset, r.length, r.sha256);
  return {};
}

}  // namespace invar::compiler
