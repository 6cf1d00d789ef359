// What the metadata and the names of a GGUF file say, in the words of a checkpoint folder of
// transformers (spec/weights.md weights.11 to weights.14).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/text/json.h"
#include "checkpoint/folder.h"
#include "checkpoint/gguf/gguf_file.h"

namespace invar::checkpoint {

// An architecture of llama.cpp and the family that computes the same.
struct GgufArchitecture {
  const char *name, *model_type, *class_name;
  bool pairs_rows = false;  // rows of queries and keys are in the order of interleaved rotation
};
Result<const GgufArchitecture*> find_gguf_architecture(const Gguf&);

// config.json. Keys of the architecture that would change results and that the family does not
// have are refused by name.
Result<json::Value> gguf_config(const Gguf&);

// Where a tensor of the family lies.
struct GgufSource {
  const GgufTensor* tensor = nullptr;
  std::string stored;                   // its name in the file
  std::vector<int64_t> shape;           // of the family's tensor
  int64_t expert = -1;                  // the part of a stack; -1: the whole
  int64_t heads = 0;                    // whose rows are paired; 0: rows are in order
  std::vector<int64_t> row_order = {};  // the rows of the file that are those of the tensor; empty: all
  // Stacks of experts as gpt-oss has them: each matrix [in, out], and with `second` the columns of
  // both in turns.
  bool turned = false;
  const GgufTensor* second = nullptr;
  // Of each head the keys, whose rows and columns are exchanged, and behind them the values of
  // `second`.
  bool latent_heads = false;
};
Result<std::map<std::string, GgufSource>> gguf_sources(const Gguf&);

// The same as the tensors of a checkpoint: in place where a kernel reads the bytes, else in
// kMadeFile, with a Checkpoint::made for each.
Result<Checkpoint> gguf_checkpoint(const std::string& folder, Gguf);

// The tokenizer's files, by name: tokenizer.json or tokenizer.model, and tokenizer_config.json.
Result<std::map<std::string, std::string>> gguf_tokenizer(const Gguf&);

}  // namespace invar::checkpoint
