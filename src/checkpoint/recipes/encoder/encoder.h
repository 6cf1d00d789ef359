// The description of an encoder: the switches that a family of models sets, and the names of its
// tensors (spec/encoder.md). The neutral value of a switch is that of BERT.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/recipes/decoder.h"
#include "checkpoint/sentence.h"

namespace invar::checkpoint {

// learned: row i for the token at place i. behind_padding: the row behind that of the padding token
// for the first token, and so on; a padding token in the text has its own row and is not counted.
enum class Positions { none, learned, behind_padding };

// Parts of names between the prefix and ".weight" or ".bias".
struct EncoderNames {
  std::string prefix = "bert.";  // checkpoints of the model without a head lack it
  std::string words = "embeddings.word_embeddings", positions = "embeddings.position_embeddings",
              token_types = "embeddings.token_type_embeddings", embedding_norm = "embeddings.LayerNorm",
              projection = "embeddings_project", position_bias = "encoder.relative_attention_bias";
  std::string layers = "encoder.layer.";
  std::string q = "attention.self.query", k = "attention.self.key", v = "attention.self.value", qkv,
              o = "attention.output.dense", attention_norm = "attention.output.LayerNorm";
  std::string up = "intermediate.dense", down = "output.dense", mlp_norm = "output.LayerNorm";
  std::string final_norm;
};

// Scores of a text or a pair of texts: a linear layer, an activation, perhaps a norm, and a linear
// layer of the labels, each of them on one vector.
struct Classifier {
  std::string dense = "bert.pooler.dense", norm, out = "classifier";
  enum Activation { tanh, relu, gelu } activation = tanh;
  bool dense_bias = true;
  std::string pooling = "cls";
  int64_t labels = 0;    // 0: the model has no classifier
  bool sigmoid = false;  // of the scores
};

struct Encoder {
  std::string family, architecture;  // model_type and class of transformers
  EncoderNames names;
  int64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0, heads = 0, head_dim = 0;
  int64_t embedding_size = 0;  // other than hidden_size: the embeddings are projected
  int64_t position_rows = 0, token_types = 0, padding = 0;
  std::vector<Layer> layers;
  int64_t window = 0;  // keys that a query of a windowed layer sees on each side of itself

  float norm_epsilon = 0;
  bool norm_bias = true, pre_norm = false;
  bool attention_bias = true, mlp_bias = true;
  bool gated_mlp = false;  // the first half of `up` is activated and multiplied with the other
  Activation activation = Activation::gelu;
  Positions positions = Positions::learned;
  int64_t position_buckets = 0;  // of a bias of scores by distance; 0: none
  std::vector<RopeParameters> ropes;

  Classifier classifier;
  SentenceConfig sentence;  // without a classifier
  std::map<std::string, std::string> metadata;
};

}  // namespace invar::checkpoint
