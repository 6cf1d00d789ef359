// The part of loading weights that is the same for the host and a GPU: opens the files and decides
// what is hashed and packed, before a byte is read. A page for browsers maps no files: it has a
// find_bytes() and a Weights::load() of its own, read_weights.cc.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/hash/sha256.h"
#include "run/weights/weights.h"
#include "weights/weight_file.h"

namespace invar::run {

struct WeightLoader {
  struct Packing {
    Weights::Use use;
    uint64_t offset;  // in the memory of all packed weights
    bool of_blocks;   // else of numbers
  };
  const plan::Plan* plan = nullptr;
  std::string folder;
  std::vector<weights::WeightFile> files;
  std::vector<int> file_of;  // per weight
  // Per weight: its bytes in the mapped file, a view of them or of a copy, whether a node uses it,
  // and whether one reads it unpacked, or its blocks where they lie. Those of an index have no
  // bytes, and rows of blocks if they are whole rows.
  std::vector<const std::byte*> stored;
  std::vector<std::unique_ptr<weights::PackedRows>> blocks;
  std::vector<ops::View> unpacked;
  std::vector<bool> used, read_unpacked, read_in_blocks;
  std::vector<Packing> packings;
  std::vector<std::vector<int>> packings_by_weight;
  std::vector<int> packing_of;     // per use; -1: reads the weight unpacked
  std::vector<bool> reads_blocks;  // per use
  uint64_t packed_bytes = 0;
  // Per weight, if they are checked: its digest, and whether that must be computed.
  std::vector<Digest> digests;
  std::vector<bool> must_hash;
  bool needs_hash(size_t weight) const { return !digests.empty() && must_hash[weight]; }
  bool needs_hash() const { return std::find(must_hash.begin(), must_hash.end(), true) != must_hash.end(); }

  static Result<WeightLoader> begin(const plan::Plan&, const std::string& folder,
                                    std::span<const Weights::Use> uses, const Weights::Check&);
  // Opens the files, fills `stored`, and looks up which digests are known.
  Status find_bytes(const Weights::Check&);
  std::vector<const Packing*> packings_of(int weight) const;
  // Gives the bytes of a weight, as they are in the file or unpacked.
  Status read(size_t weight, const weights::WeightFile::Take&) const;
  // Takes the bytes of a weight in its file out of memory, unless a kernel reads them there.
  void release(size_t weight) const;
  // The view of a weight for a use: of its blocks or of numbers.
  ops::View view_for(size_t use, const Weights::Use&) const;
  // Whether every digest is the plan's; then the cache receives those that were computed.
  Status check_digests(DigestCache* computed) const;
  // The view of every use, once `unpacked` points to the weights and `packed` to the packings.
  std::vector<ops::View> views(std::span<const Weights::Use> uses, std::byte* packed) const;

 private:
  void plan_packings(std::span<const Weights::Use> uses);
};
// The first error of several threads.
class FirstError {
 public:
  void add(const Status& status) {
    const std::lock_guard lock(mutex_);
    if (!status && status_) status_ = status;
  }
  Status take() { return std::move(status_); }

 private:
  std::mutex mutex_;
  Status status_;
};
// Whether the file at `path`, of so many bytes, holds the weight.
Status check_place(const plan::Weight&, const std::string& path, uint64_t file_bytes);

using Jobs = std::vector<std::pair<uint64_t, std::function<void(int worker)>>>;
// The jobs that hash the weights that must be hashed: several of about one length at a time, where
// that leaves enough for all threads.
Jobs hash_jobs(WeightLoader&, int threads, FirstError&);
// Runs jobs of very different sizes, the largest first, each by the next free worker. Which worker
// runs a job is left to chance; this is allowed because jobs only hash, copy and pack. The
// `reserved` jobs are for the first `reserved_workers` workers only, which run them before the
// others. The calling thread reports their progress.
void run_jobs(Pool& pool, const ByteProgress& progress, Jobs jobs, Jobs reserved = {},
              int reserved_workers = 0);

}  // namespace invar::run
