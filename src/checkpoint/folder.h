// The tensors of a Hugging Face checkpoint folder and their byte ranges.
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

// Opens model.safetensors, or the shards of model.safetensors.index.json. Errors name a missing
// shard, and a tensor that is missing, in a shard other than the index says, or not in the index.
Result<Checkpoint> open_checkpoint(const std::string& folder);

}  // namespace invar::checkpoint
