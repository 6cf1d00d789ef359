// Small files for the tests of this stage.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace invar::onnx {

class FolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "invar onnx XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void put(const std::string& name, const std::string& content) {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    // Not write_file, and not over the old file: file systems wait for the disk then, and tests write
    // thousands.
    std::filesystem::remove(path(name));
    std::ofstream(path(name), std::ios::binary) << content;
  }
  std::string folder_;
};

// One line, with this code, that holds every one of the texts.
template <class T>
void expect_error(const Result<T>& result, Code code, const std::vector<std::string>& texts) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, code) << result.error().message;
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos) << result.error().message;
  for (const auto& text : texts)
    EXPECT_NE(result.error().message.find(text), std::string::npos)
        << "no \"" << text << "\" in: " << result.error().message;
}

// The bytes of a safetensors file with this header and so many bytes of data.
inline std::string safetensors(const std::string& header, size_t data_bytes) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header + std::string(data_bytes, 'w');
}

// Tensors of two-byte elements, one after the other.
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
inline std::map<std::string, std::vector<int64_t>> tiny_tensors() {
  const std::string l = "model.layers.0.";
  return {{"model.embed_tokens.weight", {10, 8}},  {"model.norm.weight", {8}},
          {l + "input_layernorm.weight", {8}},     {l + "post_attention_layernorm.weight", {8}},
          {l + "self_attn.q_proj.weight", {8, 8}}, {l + "self_attn.k_proj.weight", {4, 8}},
          {l + "self_attn.v_proj.weight", {4, 8}}, {l + "self_attn.o_proj.weight", {8, 8}},
          {l + "mlp.gate_proj.weight", {12, 8}},   {l + "mlp.up_proj.weight", {12, 8}},
          {l + "mlp.down_proj.weight", {8, 12}}};
}

}  // namespace invar::onnx
