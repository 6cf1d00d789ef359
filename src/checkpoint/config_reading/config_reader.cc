#include "checkpoint/config_reading/config_reader.h"

#include <cmath>
#include <map>

#include "checkpoint/architecture.h"

namespace invar::checkpoint {
namespace {

using json::Value;

// The attribute_map of transformers' configuration classes: both spellings are read.
const char* other_spelling(std::string_view key) {
  static const std::map<std::string_view, const char*> spellings = {
      {"n_embd", "hidden_size"},
      {"n_embed", "hidden_size"},
      {"d_model", "hidden_size"},
      {"n_heads", "num_attention_heads"},
      {"n_layers", "num_hidden_layers"},
      {"n_head", "num_attention_heads"},
      {"n_layer", "num_hidden_layers"},
      {"n_positions", "max_position_embeddings"},
      {"num_experts", "num_local_experts"},
      {"num_local_experts", "num_experts"},
      {"n_routed_experts", "num_local_experts"},
      {"moe_num_experts", "num_experts"},
      {"moe_k", "num_experts_per_tok"},
      {"num_nextn_predict_layers", "num_mtp_layers"},
      {"model_max_length", "max_position_embeddings"},
  };
  auto it = spellings.find(key);
  return it == spellings.end() ? nullptr : it->second;
}

bool is_neutral(const Value& value, const Value& neutral) {
  if (value.is_null() || value == false || ((value.is_array() || value.is_object()) && value.empty()))
    return true;
  return !neutral.is_null() && value == neutral;
}

}  // namespace

const Value* ConfigReader::find(const char* key) {
  const auto look = [&](const char* name) {
    read_.insert(name);
    const Value* it = object_.find(name);
    return !it || it->is_null() ? nullptr : it;
  };
  const Value* value = look(key);
  const char* other = other_spelling(key);
  const Value* second = other ? look(other) : nullptr;
  if (value && second && *value != *second)
    reject(onnx::quote(key) + " and " + onnx::quote(other) + " are the same key and disagree");
  return value ? value : second;
}

bool ConfigReader::is_null(const char* key) const {
  auto it = object_.find(key);
  return it && it->is_null();
}

int64_t ConfigReader::size(const char* key, int64_t fallback) {
  const Value* v = find(key);
  if (!v && fallback) return fallback;
  // Below 2^31, so that no product of two sizes overflows.
  if (v && v->is_unsigned() && v->to_uint64() >= 1 && v->to_uint64() < (1u << 31)) return v->to_int64();
  reject(onnx::quote(key) +
         (v ? " = " + short_text(*v) + " is not a size from 1 to 2^31 - 1" : " is missing"));
  return 1;
}

double ConfigReader::positive(const char* key, double fallback) {
  const Value* v = find(key);
  if (!v && fallback != 0) return fallback;
  const double value = v && v->is_number() ? v->to_double() : 0;
  const auto rounded = static_cast<float>(value);
  if (rounded > 0 && std::isfinite(rounded)) return value;
  reject(onnx::quote(key) + (v ? " = " + short_text(*v) + " is not a positive number" : " is missing"));
  return 1;
}

double ConfigReader::optional(const char* key) {
  return find(key) ? positive(key, 0) : 0;
}

bool ConfigReader::flag(const char* key, bool fallback) {
  const Value* v = find(key);
  if (!v) return fallback;
  if (!v->is_boolean()) reject(onnx::quote(key) + " = " + short_text(*v) + " is neither true nor false");
  return v->is_boolean() && v->is_true();
}

std::string ConfigReader::text(const char* key, const char* fallback) {
  const Value* v = find(key);
  if (!v) return fallback;
  if (v->is_string()) return v->text;
  reject(onnx::quote(key) + " = " + short_text(*v) + " is not a string");
  return fallback;
}

void ConfigReader::require_neutral(const char* key, const Value& neutral) {
  const auto it = object_.find(key);
  if (it && !is_neutral(*it, neutral)) refuse(onnx::quote(key) + " = " + short_text(*it) + " is not covered");
}

}  // namespace invar::checkpoint
