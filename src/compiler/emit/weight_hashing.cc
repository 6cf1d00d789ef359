// Hashes byte ranges of weight files with a pool of threads.
#include "compiler/emit/weight_hashing.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <system_error>
#include <thread>
#include <tuple>

#include "base/file/file.h"

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
    by_location[{r.file, r.offset, r.length}].push_back(&r);
  }
  std::vector<std::vector<HashRequest*>> work;
  for (auto& [key, list] : by_location)
    if (threads >= 0 || list[0]->bytes.data()) work.push_back(std::move(list));
  if (threads < 0) cache = nullptr;
  // Largest first, so that threads finish at about the same time.
  std::stable_sort(work.begin(), work.end(), [](auto& a, auto& b) { return a[0]->length > b[0]->length; });
  std::atomic<size_t> next{0};
  uint64_t total = 0;
  for (const auto& list : work) total += list[0]->length;
  ByteMeter meter(progress, total);
  const std::thread::id caller = std::this_thread::get_id();
  auto worker = [&] {
    for (size_t i; (i = next++) < work.size();) {
      const HashRequest& r = *work[i][0];
      Digest d =
          r.bytes.data() ? sha256(r.bytes) : sha256(files.at(r.file).bytes().data() + r.offset, r.length);
      for (HashRequest* range : work[i]) range->sha256 = d;
      meter.add(r.length, std::this_thread::get_id() == caller);
    }
  };
  size_t wanted = threads > 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> pool;
  try {
    for (size_t i = 1; i < std::min(wanted, work.size()); ++i) pool.emplace_back(worker);
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
