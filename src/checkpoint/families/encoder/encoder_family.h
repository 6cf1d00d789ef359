// A family of encoders: one small recipe from its config.json to an Encoder (spec/encoder.md).
#pragma once

#include <span>

#include "checkpoint/config_reading/config_reader.h"
#include "checkpoint/families/family.h"
#include "checkpoint/recipes/encoder/encoder.h"

namespace invar::checkpoint {

struct EncoderFamily {
  const char* model_type;
  void (*describe)(ConfigReader&, Encoder&);
};
std::span<const EncoderFamily> encoder_families();

// Sizes and the activation, under these keys.
void read_blocks(ConfigReader&, Encoder&, const SizeKeys&, const char* activation_key);
// Reads what BERT and later families share: sizes, hidden_act, layer_norm_eps, position_rows.
void read_bert_like(ConfigReader&, Encoder&);

}  // namespace invar::checkpoint
