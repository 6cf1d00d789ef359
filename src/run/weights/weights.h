// The weights of a plan in the memory of the host or of a GPU: memory-mapped, checked against their
// SHA-256, and packed for the kernels that read them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file/byte_progress.h"
#include "base/hash/digest_cache.h"
#include "base/thread_pool.h"
#include "device/memory.h"
#include "kernels/registry.h"
#include "plan/plan.h"
#include "weights/tiles/code_tiles.h"
#include "weights/weight_file.h"

namespace invar::run {

struct WeightLoader;
struct UploadQueues;

class Weights {
 public:
  // A use of a weight: operand `operand` of a node that `kernel` runs.
  struct Use {
    int weight;
    ops::KernelRef kernel;
    int operand;
    const Attributes* attrs;
  };
  // Gets weights that have their places on a GPU and not yet their bytes.
  using OnAllocated = std::function<void(const Weights&)>;
  // Whether the bytes are checked, and the digests that are known already.
  struct Check {
    bool wanted = true;
    const DigestCache* known = nullptr;
    ByteProgress progress = {};       // of hashing, copying and packing
    DigestCache* computed = nullptr;  // receives the others, once all are right
    OnAllocated allocated = {};       // called on a thread of its own while weights are copied
  };
  // views()[i] is the view of uses[i]. Equal packings of a weight are shared; on the host with
  // those of other loads of this process, too, where the bytes are checked. queues: to the device,
  // kept for later loads; null: made for this one.
  static Result<Weights> load(const plan::Plan&, const std::string& folder, std::span<const Use> uses, Pool&,
                              const Check&, const std::shared_ptr<Device>& device = {},
                              UploadQueues* queues = nullptr);
  // The bytes that load() would take, as bytes() counts them. Reads no weight.
  static Result<uint64_t> needed(const plan::Plan&, const std::string& folder, std::span<const Use> uses,
                                 bool on_device);
  std::span<const ops::View> views() const { return views_; }
  // Whether the mapped files still hold what was checked. Code failed: a file that kernels read, or
  // that weights were packed from, may have been written to meanwhile, even if it is as it was now.
  Status unchanged(const plan::Plan&);
  // Resident bytes: packed and copied ones, and mapped ones that a kernel reads. Packed ones of an
  // earlier load are not among them.
  size_t bytes() const { return bytes_; }

 private:
  static Result<Weights> upload(const std::shared_ptr<Device>&, WeightLoader&, std::span<const Use> uses,
                                Pool&, const Check&, UploadQueues*);
  std::vector<weights::WeightFile> files_;
  std::vector<std::unique_ptr<weights::PackedRows>> blocks_;  // that views_ refer to
  std::vector<std::unique_ptr<weights::CodeTiles>> tiles_;    // the same, on a GPU
  std::vector<int> file_of_;                                  // per weight
  std::vector<Allocation> allocations_;
  // Of packed weights on the host, which loads of equal ones read, too.
  std::vector<std::shared_ptr<const Allocation>> packed_;
  std::vector<ops::View> views_;
  size_t bytes_ = 0;
};

}  // namespace invar::run
