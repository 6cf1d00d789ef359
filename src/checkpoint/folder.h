// The tensors of a Hugging Face checkpoint folder and their byte ranges.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/files/safetensors.h"
#include "weights/weight_file.h"

namespace invar::checkpoint {

struct CheckpointTensor : StoredTensor {
  std::string file;         // plain name inside the folder
  std::string folder = {};  // "": the checkpoint's
};

// The file with tensors that no kernel reads as they are stored, beside the model.
inline constexpr const char* kMadeFile = "unpacked-weights.bin";
// A tensor of that file: `write` gives its bytes in order, or says what is wrong with the stored
// ones.
using EmitBytes = std::function<Status(std::span<const uint8_t>)>;
struct MadeTensor {
  std::string name;
  uint64_t offset = 0, length = 0;
  std::function<Status(const EmitBytes&)> write;
  // Where blocks of a format lie that are these numbers, if they do.
  std::optional<weights::PackedTensor> packed = {};
};

class Adapter;

struct Checkpoint {
  std::string folder;
  std::vector<std::string> files;  // that hold weights, sorted
  std::map<std::string, CheckpointTensor> tensors;
  std::vector<MadeTensor> made = {};      // by offset, without gaps
  std::shared_ptr<Adapter> adapter = {};  // whose tensors are among these; null: none
};
// Adds a tensor of kMadeFile; bytes: of all its elements.
void add_made(Checkpoint&, const std::string& name, const std::string& dtype, std::vector<int64_t> shape,
              uint64_t bytes, std::function<Status(const EmitBytes&)> write);
// The same for the numbers of a matrix in parts, whose mapped files it keeps.
void add_made(Checkpoint&, const std::string& name, std::vector<int64_t> shape, weights::PackedMatrix,
              std::vector<std::shared_ptr<const MappedFile>> files);
// Writes kMadeFile to `path`, if there are such tensors; holes in the places of those that do not
// begin at one of these offsets.
Status write_made(const Checkpoint&, const std::set<uint64_t>& used, const std::string& path);
// Moves the tensors whose blocks lie in a file from kMadeFile to weights::kIndexFile, and writes
// those that begin at one of these offsets to `path`, if there are any.
void keep_packed(Checkpoint&);
Status write_index(const Checkpoint&, const std::set<uint64_t>& used, const std::string& path);

// Opens model.safetensors, the shards of model.safetensors.index.json, or else the GGUF file of the
// folder, its first part. Errors name a missing shard, and a tensor that is missing, in a shard
// other than the index says, or not in the index.
Result<Checkpoint> open_checkpoint(const std::string& folder);

}  // namespace invar::checkpoint
