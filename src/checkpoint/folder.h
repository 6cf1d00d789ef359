// A Hugging Face checkpoint folder: where every tensor lies.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/files/safetensors.h"

namespace invar::checkpoint {

struct CheckpointTensor : StoredTensor {
  std::string file;  // plain name inside the folder
};

struct Checkpoint {
  std::string folder;
  std::vector<std::string> files;  // that hold weights, sorted
  std::map<std::string, CheckpointTensor> tensors;
};

// model.safetensors, or the shards of model.safetensors.index.json. A missing shard, and a tensor that is
// missing, in another shard than the index says, or in no index, are errors by name.
Result<Checkpoint> open_checkpoint(const std::string& folder);

}  // namespace invar::checkpoint
