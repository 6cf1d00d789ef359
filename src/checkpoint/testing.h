// Helpers of tests: a tiny Llama checkpoint and safetensors files.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/json.h"
#include "onnx/testing.h"

namespace invar::checkpoint {

using onnx::expect_error;
using onnx::FolderTest;

// A safetensors file with this header and `data_bytes` bytes of data.
inline std::string safetensors(const std::string& header, size_t data_bytes) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header + std::string(data_bytes, 'w');
}

// A safetensors file with consecutive tensors of two-byte elements.
inline std::string bf16_file(const std::map<std::string, std::vector<int64_t>>& tensors,
                             const std::string& dtype = "BF16") {
  std::string header = "{\"__metadata__\":{\"format\":\"pt\"}";
  size_t at = 0;
  for (const auto& [name, shape] : tensors) {
    size_t bytes = 2;
    std::string dims;
    for (int64_t d : shape)
      bytes *= static_cast<size_t>(d), dims += (dims.empty() ? "" : ",") + std::to_string(d);
    header += ",\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + dims + "],\"data_offsets\":[" +
              std::to_string(at) + "," + std::to_string(at + bytes) + "]}";
    at += bytes;
  }
  return safetensors(header + "}", at);
}

// A Llama of 1 layer: hidden 8, 2 query heads over 1 key head of 4, MLP 12, 10 tokens.
inline const char* const kTinyConfig =
    R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_act":"silu",
"vocab_size":10,"hidden_size":8,"intermediate_size":12,"num_hidden_layers":1,"num_attention_heads":2,"num_key_value_heads":1,
"max_position_embeddings":64,"rms_norm_eps":1e-05,"tie_word_embeddings":true,"bos_token_id":1,"eos_token_id":[2,3]})";
// The tiny config with these keys replaced; null removes one.
inline std::string tiny_config_with(std::string_view patch) {
  json::Value config = json::read_or_null(kTinyConfig).update(json::read_or_null(patch));
  std::erase_if(config.members, [](const json::Member& m) { return m.second.is_null(); });
  return json::dump(config);
}
inline std::map<std::string, std::vector<int64_t>> tiny_tensors() {
  const std::string l = "model.layers.0.";
  return {{"model.embed_tokens.weight", {10, 8}},  {"model.norm.weight", {8}},
          {l + "input_layernorm.weight", {8}},     {l + "post_attention_layernorm.weight", {8}},
          {l + "self_attn.q_proj.weight", {8, 8}}, {l + "self_attn.k_proj.weight", {4, 8}},
          {l + "self_attn.v_proj.weight", {4, 8}}, {l + "self_attn.o_proj.weight", {8, 8}},
          {l + "mlp.gate_proj.weight", {12, 8}},   {l + "mlp.up_proj.weight", {12, 8}},
          {l + "mlp.down_proj.weight", {8, 12}}};
}

}  // namespace invar::checkpoint
