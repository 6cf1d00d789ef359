// Adapters of PEFT (spec/weights.md weights.23 to weights.25): adapter_config.json and
// adapter_model.safetensors.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash/sha256.h"
#include "base/status.h"
#include "checkpoint/folder.h"

namespace invar::checkpoint {

inline constexpr const char* kAdapterConfig = "adapter_config.json";
inline constexpr const char* kAdapterFile = "adapter_model.safetensors";
// The names of an adapter's tensors begin so.
inline constexpr std::string_view kAdapterPrefix = "base_model.model.";

// Which modules adapter_config.json names: a list of ends of paths, or a pattern of whole paths.
struct ModulePattern {
  bool is_list = true;
  std::vector<std::string> names;  // of a pattern: it alone
};

// The low-rank matrices of one module, by the names of their tensors.
struct LowRank {
  std::string a, b;  // [rank, in] and [out, rank]
  int64_t rank = 0;  // as the configuration has it
  float scale = 1;   // of b(a(x))
};

class Adapter {
 public:
  // Reads the configuration and the header of the tensors. bad_input: a file is missing or not what
  // it should be. not_covered: another adapter than LoRA, or a key that changes what it computes.
  static Result<Adapter> open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  std::string config_file() const { return folder_ + "/" + kAdapterConfig; }
  std::string tensor_file() const { return folder_ + "/" + kAdapterFile; }
  // SHA-256 of the digests of both files (receipt.44).
  Result<Digest> digest() const;

  // Takes the tensors into those of the checkpoint: low-rank matrices by their own names, those of
  // modules_to_save in the place of the checkpoint's.
  struct Tables {
    std::string embedding, head;  // ends of the names of the tables of tokens and of logits
    bool tied = false;            // one table may be both
  };
  Status place(Checkpoint&, const Tables&);
  // The matrices of the linear module that the checkpoint calls `tensor`, without ".weight".
  // `prefix`: what `tensor` begins with, which the adapter's paths may spell in another way;
  // `spelled`: as transformers spells it. Null: the adapter leaves the module as it is. bad_input:
  // target_modules names it and its tensors are missing.
  Result<const LowRank*> find(const std::string& tensor, const std::string& prefix,
                              const std::string& spelled);
  // Whether find() was asked for every module of the adapter.
  Status check_used() const;
  // What find() found: module of the adapter -> name that the checkpoint has for it.
  const std::map<std::string, std::string>& used() const { return used_; }
  const std::map<std::string, LowRank>& modules() const { return modules_; }
  // The scales, as a program's parameter has them (weights.24).
  std::vector<float> scales() const;

 private:
  Status read_config();
  Status read_tensors();
  Status add_tensor(const std::string& name, const StoredTensor&);
  Result<bool> targets(const std::string& module) const;

  std::string folder_;
  ModulePattern targets_, excluded_;
  std::vector<std::string> saved_modules_, layers_pattern_;
  std::vector<int64_t> layers_;
  int64_t rank_ = 0;
  double alpha_ = 0;
  bool root_ = false;  // scales are alpha / sqrt(rank)
  std::vector<std::pair<std::string, int64_t>> ranks_;
  std::vector<std::pair<std::string, double>> alphas_;

  std::map<std::string, LowRank> modules_;           // by path, without kAdapterPrefix
  std::map<std::string, std::string> replaced_;      // path of a tensor -> its name in the file
  std::map<std::string, CheckpointTensor> tensors_;  // by their names in the file
  std::map<std::string, std::string> used_;
};

}  // namespace invar::checkpoint
