// A family of encoder-decoders: one small recipe from its config.json to a Seq2Seq
// (spec/seq2seq.md).
#pragma once

#include <span>

#include "checkpoint/config_reading/config_reader.h"
#include "checkpoint/families/family.h"
#include "checkpoint/recipes/seq2seq/seq2seq.h"

namespace invar::checkpoint {

struct Seq2SeqFamily {
  const char* model_type;
  void (*describe)(ConfigReader&, Seq2Seq&);
};
std::span<const Seq2SeqFamily> seq2seq_families();

// The activation that transformers calls `name`, which stands under `key`.
void read_activation(ConfigReader&, Seq2Seq&, const char* key, const std::string& name);

}  // namespace invar::checkpoint
