// The plan's weights in memory, the host's or a GPU's: mapped, checked against their SHA-256, packed for the kernels that
// read them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/hash/digest_cache.h"
#include "base/thread_pool.h"
#include "kernels/kernel.h"
#include "plan/plan.h"
#include "run/execute/memory.h"

namespace invar::run {

struct Loading;

class Weights {
 public:
  // One use of a weight: operand `operand` of a node that `kernel` runs.
  struct Use {
    int weight;
    const ops::Kernel* kernel;
    int operand;
    const Attrs* attrs;
  };
  // Whether their bytes are hashed, and which need not be.
  struct Check {
    bool wanted = true;
    const Hashed* known = nullptr;
  };
  // The view of uses[i] is views()[i]. Uses that pack alike share one packing.
  static Result<Weights> load(const plan::Plan&, const std::string& folder, std::span<const Use> uses, Pool&,
                              const Check&, const std::shared_ptr<Device>& device = {});
  std::span<const ops::View> views() const { return views_; }
  // Whether the files still hold what was checked, for those whose maps kernels read and those that were packed from.
  // Code failed: a file was written to or cut off meanwhile.
  Status unchanged(const plan::Plan&);
  size_t bytes() const {
    return bytes_;
  }  // resident: packed, copied, and mapped where a kernel reads the map

 private:
  static Result<Weights> load_on(const std::shared_ptr<Device>&, Loading&, std::span<const Use> uses, Pool&);
  std::vector<MappedFile> files_;
  std::vector<int> file_of_;  // of each weight
  std::vector<Block> blocks_;
  std::vector<ops::View> views_;
  size_t bytes_ = 0;
};

}  // namespace invar::run
