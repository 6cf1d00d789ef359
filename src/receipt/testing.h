// A small receipt whose answer a toy model really gives, for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "receipt/receipt.h"

namespace invar::receipt::testing {

inline constexpr int32_t kVocab = 11;

// The logits after a prefix: some function of all its tokens.
inline std::vector<float> toy_row(std::span<const int32_t> prefix) {
  uint32_t state = 1;
  for (int32_t t : prefix) state = (state ^ static_cast<uint32_t>(t)) * 2654435761u + 12345u;
  std::vector<float> row(kVocab);
  for (float& x : row)
    state = state * 1664525u + 1013904223u, x = static_cast<float>(state >> 16) / 16384 - 2;
  return row;
}

inline Status toy_forward(std::span<const int32_t> tokens, std::span<const int64_t>,
                          const std::function<void(const Rows&)>& deliver) {
  for (size_t i = 0; i < tokens.size(); ++i)
    deliver({static_cast<int64_t>(i), 1, toy_row(tokens.first(i + 1))});
  return {};
}

inline plan::Plan plan_of(const std::vector<TensorDigest>& tensors) {
  plan::Plan p;
  for (const TensorDigest& t : tensors) {
    plan::Weight& w = p.weights.emplace_back();
    w.name = t.name, w.dtype = *dtype_from(t.dtype), w.shape = t.shape, w.sha256 = t.sha256;
  }
  return p;
}

// Generates up to n tokens, as `run` does.
inline Receipt toy_receipt(int64_t n = 5, std::vector<int32_t> stop = {1, 2},
                           uint64_t seed = 18446744073709551557u, sample::Processors processors = {},
                           uint64_t stream = 0) {
  Receipt r{};
  r.model_name = "models/toy", r.revision = "main";
  r.tensors = {{"embed", "bf16", {11, 2}, sha256("embed")}, {"norm", "f32", {2}, sha256("norm")}};
  r.weights = plan::weights_digest(plan_of(r.tensors).weights);
  r.config = sha256("config"), r.tokenizer = sha256("tokenizer"), r.chat_template = sha256("");
  r.recipe = "toy-1", r.program = sha256("program"), r.profile = "fp32";
  r.numerics = "invar-1", r.operation_set = "reproducible", r.unicode = "15.1.0";
  r.prompt = "RO\"ME\\O:\n\t\x01\x7f \xc3\xa9\xe2\x82\xac\xf0\x9f\x8e\xad";
  r.prompt_tokens = {0, 7, 5};
  r.max_new_tokens = n, r.stop_tokens = std::move(stop);
  r.sampling = {
      .do_sample = true, .temperature = 0.8f, .top_k = 9, .top_p = 0.95f, .seed = seed, .stream = stream};
  r.sampling.processors = std::move(processors);
  std::vector<int32_t> all = r.prompt_tokens;
  r.finish_reason = "length";
  while (static_cast<int64_t>(r.tokens.size()) < n && r.finish_reason == "length") {
    auto row = toy_row(all);
    r.logits.push_back(commit(row));
    r.tokens.push_back(*sample::pick(row, r.sampling, {r.prompt_tokens, r.tokens, r.stop_tokens, n}));
    all.push_back(r.tokens.back());
    for (int32_t s : r.stop_tokens)
      if (s == all.back()) r.finish_reason = "stop";
  }
  r.text = "a rose\xef\xbf\xbd";
  r.execution = {{"device", "cpu"}, {"isa", "avx2"}, {"threads", "2"}, {"version", "0.1.0"}};
  return r;
}

inline std::string fields_of(const std::vector<Finding>& findings) {
  std::string s;
  for (const Finding& f : findings) s += (s.empty() ? "" : " ") + f.field;
  return s;
}

// The fields that validate() finds wrong in a receipt, or why there is none.
inline std::string found(const std::string& json, Receipt* out = nullptr) {
  const auto f = validate(json, "r.json", out);
  return f ? fields_of(*f) : f.error().message;
}

inline std::string edited(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

}  // namespace invar::receipt::testing
