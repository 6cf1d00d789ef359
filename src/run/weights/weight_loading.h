// What is known of the weights before a byte of them is read, wherever they go then (weights.cc, weights_device.cc).
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/hash/sha256.h"
#include "run/weights/weights.h"

namespace invar::run {

struct Loading {
  struct Packing {
    Weights::Use use;
    uint64_t at;  // in the block of all packed weights
  };
  const plan::Plan* plan = nullptr;
  std::string folder;
  std::vector<MappedFile> files;
  std::vector<int> file_of;  // of each weight
  // Per weight: where it is stored, a view of it there, whether a node uses it, and whether one reads it as it is.
  std::vector<const std::byte*> stored;
  std::vector<ops::View> raw;
  std::vector<bool> used, read_raw;
  std::vector<Packing> packings;
  std::vector<std::vector<int>> packings_by_weight;
  std::vector<int> packing_of;  // per use; -1: reads the weight as it is
  uint64_t packed_bytes = 0;
  // Per weight where they are to be checked: its digest, and whether that is to be computed.
  std::vector<Digest> found;
  std::vector<bool> unknown;
  bool hashes(size_t weight) const { return !found.empty() && unknown[weight]; }
  bool hashes() const { return std::find(unknown.begin(), unknown.end(), true) != unknown.end(); }

  // Opens the files and decides what is packed.
  static Result<Loading> begin(const plan::Plan&, const std::string& folder,
                               std::span<const Weights::Use> uses, const Weights::Check&);
  std::vector<const Packing*> packings_of(int weight) const;
  // Whether every weight was the plan's.
  Status verdict() const;
  // The view of every use, once raw says where weights lie and `packed` where packings do.
  std::vector<ops::View> views(std::span<const Weights::Use> uses, std::byte* packed) const;
};

// Jobs of very different sizes: the largest first, each taken by the next free worker. Who does which is left to chance
// here, which is why it does nothing but hash and copy. Those `apart` are for the first `own` workers alone, and come first.
using Jobs = std::vector<std::pair<uint64_t, std::function<void(int worker)>>>;
void run_jobs(Pool& pool, Jobs jobs, Jobs apart = {}, int own = 0);

}  // namespace invar::run
