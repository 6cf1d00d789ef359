// The description of an encoder-decoder (spec/seq2seq.md): the switches that a family of models
// sets, and the names of its tensors. The neutral value of a switch is that of BART.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "checkpoint/recipes/decoder.h"

namespace invar::checkpoint {

// How a token knows its position.
enum class SourcePositions {
  learned,       // a table of the checkpoint
  sinusoidal,    // angles in binary64, sines before cosines
  sinusoidal32,  // the same in binary32, as fairseq has it, and 0 for padding
  buckets,       // none: attention adds a number for the bucket of a distance
};

// Names of a layer's tensors, behind "encoder.layers.0." and before ".weight" or ".bias".
struct Seq2SeqNames {
  std::string q = "self_attn.q_proj", k = "self_attn.k_proj", v = "self_attn.v_proj",
              o = "self_attn.out_proj";
  std::string attention_norm = "self_attn_layer_norm";
  std::string cross_q = "encoder_attn.q_proj", cross_k = "encoder_attn.k_proj",
              cross_v = "encoder_attn.v_proj", cross_o = "encoder_attn.out_proj";
  std::string cross_norm = "encoder_attn_layer_norm";
  std::string up = "fc1", gate, down = "fc2", mlp_norm = "final_layer_norm";
};

// The encoder, or the decoder.
struct Seq2SeqSide {
  int64_t layers = 0, heads = 0, head_dim = 0, intermediate_size = 0, vocab_size = 0;
  float attention_scale = 0;
  Seq2SeqNames names = {};
};

struct Seq2Seq {
  std::string family, architecture;                               // model_type and class of transformers
  std::string prefix = "model.", layers = "layers.", final_norm;  // final_norm "": none
  std::string embedding_norm = "layernorm_embedding";             // "": none
  std::string position_bias;                                      // of a layer
  bool biases_of_layers = false;                                  // each has its own, not that of the first
  Seq2SeqSide encoder, decoder;
  int64_t hidden_size = 0;
  int64_t max_positions = 0;  // of tables
  SourcePositions positions = SourcePositions::learned;
  int64_t position_offset = 0;  // rows before the first position
  int64_t padding = -1;         // of sinusoidal32
  int64_t buckets = 0, farthest = 0;
  Norm norm = Norm::layer;
  float norm_epsilon = 1e-5f;
  bool pre_norm = false, bias = true;
  Activation activation = Activation::gelu;
  float embedding_scale = 1, head_scale = 1;  // head: of what it reads
  bool tied = true;
  bool key_bias = true;
  std::string head = "lm_head";
  // Of an encoder that hears: bands of the spectrum, and its own positions; 0: it reads tokens.
  int64_t mel_bands = 0, source_positions = 0;
  std::map<std::string, std::string> metadata;
};

onnx::Recipe recipe_of(const Seq2Seq&);

}  // namespace invar::checkpoint
