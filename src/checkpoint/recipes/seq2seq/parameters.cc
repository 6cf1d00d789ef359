// The parameters of seq2seq-1, which seq2seq.4 lists.
#include "checkpoint/recipes/seq2seq/seq2seq.h"

namespace invar::checkpoint {

using onnx::parameter;
using onnx::Parameters;

static void add_side(const Seq2SeqSide& s, const std::string& prefix, Parameters& p) {
  p[prefix + "head_dim"] = parameter(s.head_dim);
  p[prefix + "intermediate_size"] = parameter(s.intermediate_size);
  p[prefix + "num_attention_heads"] = parameter(s.heads);
  p[prefix + "num_layers"] = parameter(s.layers);
  p[prefix + "vocab_size"] = parameter(s.vocab_size);
  if (s.attention_scale != default_attention_scale(s.head_dim))
    p[prefix + "attention_scale"] = parameter(s.attention_scale);
}

// A parameter is there if it differs from that of a Seq2Seq that nobody has set.
onnx::Recipe recipe_of(const Seq2Seq& m) {
  static constexpr const char* kPositions[] = {"learned", "sinusoidal", "sinusoidal_f32", "buckets"};
  static constexpr const char* kActivations[] = {"silu", "gelu", "gelu_tanh", "relu", "relu_squared"};
  const Seq2Seq neutral;
  Parameters p;
  p["family"] = m.family;
  p["hidden_size"] = parameter(m.hidden_size);
  p["norm_epsilon"] = parameter(m.norm_epsilon);
  p["tie_word_embeddings"] = parameter(m.tied);
  add_side(m.encoder, "encoder_", p), add_side(m.decoder, "decoder_", p);
  const auto add = [&](const char* name, auto member) {
    if (m.*member != neutral.*member) p[name] = parameter(m.*member);
  };
  p["positions"] = kPositions[static_cast<size_t>(m.positions)];
  if (m.activation != neutral.activation) p["activation"] = kActivations[static_cast<size_t>(m.activation)];
  if (m.norm != neutral.norm) p["norm"] = "rms";
  if (m.embedding_norm.empty()) p["embedding_norm"] = parameter(false);
  if (!m.final_norm.empty()) p["final_norm"] = parameter(true);
  if (!m.decoder.names.gate.empty()) p["gated_mlp"] = parameter(true);
  add("max_position_embeddings", &Seq2Seq::max_positions);
  add("position_offset", &Seq2Seq::position_offset);
  add("pad_token_id", &Seq2Seq::padding);
  add("relative_attention_num_buckets", &Seq2Seq::buckets);
  add("relative_attention_max_distance", &Seq2Seq::farthest);
  add("biases_of_layers", &Seq2Seq::biases_of_layers);
  add("pre_norm", &Seq2Seq::pre_norm);
  add("bias", &Seq2Seq::bias);
  add("embedding_scale", &Seq2Seq::embedding_scale);
  add("head_scale", &Seq2Seq::head_scale);
  add("key_bias", &Seq2Seq::key_bias);
  add("num_mel_bins", &Seq2Seq::mel_bands);
  add("max_source_positions", &Seq2Seq::source_positions);
  return {"seq2seq-1", std::move(p)};
}

}  // namespace invar::checkpoint
