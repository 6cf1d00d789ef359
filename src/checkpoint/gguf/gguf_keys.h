// Reads the keys of a GGUF file's architecture for its config.json (spec/weights.md weights.12).
#pragma once

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/gguf/gguf_model.h"
#include "onnx/error_text.h"

namespace invar::checkpoint {

// Reads the keys of one architecture and remembers which; keeps the first error.
class GgufKeys {
 public:
  GgufKeys(const Gguf& g, std::string architecture) : g_(g), prefix_(std::move(architecture) + ".") {}

  const GgufValue* find(const std::string& key) {
    read_.insert(prefix_ + key);
    return g_.find(prefix_ + key);
  }
  // One size, or a list of equal ones, as llama.cpp has one a layer. 0: absent.
  uint64_t size(const std::string& key, bool needed = false) {
    const GgufValue* v = find(key);
    if (!v) {
      if (needed) fail(bad_input(g_.path + ": the key " + onnx::quote(prefix_ + key) + " is missing"));
      return 0;
    }
    const auto all = v->numbers();
    const bool equal =
        all && !all->empty() && std::ranges::all_of(*all, [&](double x) { return x == all->front(); });
    if (v->is_list && all && !all->empty() && !equal)
      fail(not_covered(g_.path + ": the key " + onnx::quote(prefix_ + key) +
                       " has other values in some layers, which is not covered for this architecture"));
    else if (!equal || all->front() < 0 || all->front() >= 2147483648.0 ||
             all->front() != std::floor(all->front()))
      fail(bad_input(g_.path + ": the key " + onnx::quote(prefix_ + key) +
                     " is not a size from 0 to 2^31 - 1"));
    return status_ ? static_cast<uint64_t>(all->front()) : 0;
  }
  // A size, or a list of sizes or flags, one a layer. Empty: absent.
  std::vector<double> sizes(const std::string& key, uint64_t layers) {
    const GgufValue* v = find(key);
    if (!v) return {};
    std::vector<double> all;
    if (v->type == GgufValue::boolean)
      for (const char c : v->bytes) all.push_back(c != 0);
    else
      all = v->numbers().value_or(std::vector<double>());
    if (!v->is_list && all.size() == 1) all.resize(layers, all[0]);
    const bool whole =
        std::ranges::all_of(all, [](double x) { return x >= 0 && x < 2147483648.0 && x == std::floor(x); });
    if (all.size() != layers || !whole) {
      fail(bad_input(g_.path + ": the key " + onnx::quote(prefix_ + key) + " is not a size for each of " +
                     std::to_string(layers) + " layers"));
      all.assign(layers, 0);
    }
    return all;
  }
  double number(const std::string& key, double otherwise) {
    const GgufValue* v = find(key);
    const auto number = v ? v->number() : otherwise;
    if (number && std::isfinite(*number)) return *number;
    fail(bad_input(g_.path + ": the key " + onnx::quote(prefix_ + key) + " is not a number"));
    return otherwise;
  }
  std::string text(const std::string& key) {
    const GgufValue* v = find(key);
    if (v && !v->string())
      fail(bad_input(g_.path + ": the key " + onnx::quote(prefix_ + key) + " is not a text"));
    return v ? std::string(v->string().value_or("")) : "";
  }
  void refuse(const std::string& key, const std::string& why) {
    fail(not_covered(g_.path + ": the key " + onnx::quote(prefix_ + key) + " " + why));
  }
  void fail(Error error) {
    if (status_) status_ = std::move(error);
  }
  // Refuses keys of the architecture that nobody has read.
  Status finish() {
    for (const auto& [key, value] : g_.metadata)
      if (status_ && key.starts_with(prefix_) && !read_.contains(key))
        refuse(key.substr(prefix_.size()), "is not covered for this architecture");
    return status_;
  }
  const Gguf& file() const { return g_; }

 private:
  const Gguf& g_;
  std::string prefix_;
  std::set<std::string> read_;
  Status status_;
};

inline bool gguf_has(const Gguf& g, const char* tensor) {
  return g.tensors.contains(std::string_view(tensor));
}

// deepseek2: multi-head latent attention and its experts. The family that computes them, and what
// its config.json has beside the sizes of every decoder.
GgufArchitecture latent_family(GgufKeys&);
void read_latent_keys(GgufKeys&, std::string_view model_type, json::Value& config);

}  // namespace invar::checkpoint
