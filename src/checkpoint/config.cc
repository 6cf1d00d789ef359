// Reads and validates config.json (spec/llama.md llama.1 to llama.3, spec/decoder.md decoder.1 to
// decoder.3).
#include "checkpoint/config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/file/file.h"
#include "base/hash/sha256.h"
#include "checkpoint/architecture.h"
#include "checkpoint/families/family.h"
#include "checkpoint/files/json.h"
#include "checkpoint/text_config.h"

namespace invar::checkpoint {
namespace {

using json::Value;

// Keys that change the results of architectures that support them. A model of transformers whose
// family does not read one ignores it, but a checkpoint that sets one was trained with arithmetic
// that the recipe does not have. Only neutral values are accepted where the family does not read
// the key. Keys that are neither here nor read are ignored, as in transformers.
// tools/docs/check_counts.py compares the list with spec/checkpoint.md onnx.4.
struct UnsupportedKey {
  const char* key;
  Value neutral;  // besides null, false and empty containers
};
const std::vector<UnsupportedKey>& unsupported_keys() {
  static const std::vector<UnsupportedKey> keys = {{"quantization_config", {}},
                                                   {"compression_config", {}},
                                                   {"auto_map", {}},
                                                   {"pruned_heads", {}},
                                                   {"is_encoder_decoder", {}},
                                                   {"add_cross_attention", {}},
                                                   {"chunk_size_feed_forward", 0},
                                                   {"sliding_window", {}},
                                                   {"use_sliding_window", {}},
                                                   {"layer_types", {}},
                                                   {"attention_chunk_size", {}},
                                                   {"no_rope_layers", {}},
                                                   {"partial_rotary_factor", 1.0},
                                                   {"rotary_pct", 1.0},
                                                   {"rope_interleaved", {}},
                                                   {"rotary_dim", {}},
                                                   {"rope_local_base_freq", {}},
                                                   {"attn_logit_softcapping", {}},
                                                   {"final_logit_softcapping", {}},
                                                   {"attn_temperature_tuning", {}},
                                                   {"query_pre_attn_scalar", {}},
                                                   {"attention_multiplier", {}},
                                                   {"embedding_multiplier", 1.0},
                                                   {"residual_multiplier", 1.0},
                                                   {"logits_scaling", 1.0},
                                                   {"logit_scale", 1.0},
                                                   {"scale_emb", 1.0},
                                                   {"scale_depth", {}},
                                                   {"dim_model_base", {}},
                                                   {"clip_qkv", {}},
                                                   {"use_qk_norm", {}},
                                                   {"qk_layernorm", {}},
                                                   {"qk_norm", {}},
                                                   {"parallel_attn", {}},
                                                   {"use_parallel_residual", {}},
                                                   {"alibi", {}},
                                                   {"qkv_bias", {}},
                                                   {"use_bias", {}},
                                                   {"bias", {}},
                                                   {"num_experts", {}},
                                                   {"num_local_experts", {}},
                                                   {"n_routed_experts", {}},
                                                   {"kv_lora_rank", {}},
                                                   {"q_lora_rank", {}},
                                                   {"num_nextn_predict_layers", 0},
                                                   {"moe_layer_freq", 1},
                                                   {"block_configs", {}},
                                                   {"use_post_norm", {}},
                                                   {"use_mem_rope", {}},
                                                   {"tie_encoder_decoder", {}},
                                                   {"attn_implementation_kwargs", {}},
                                                   {"use_bidirectional_attention", {}},
                                                   {"sparse_attention", {}},
                                                   {"per_layer_config", {}},
                                                   {"attribute_map", {}},
                                                   {"transformers_weights", {}},
                                                   {"text_config", {}},
                                                   {"text_encoder", {}},
                                                   {"decoder", {}},
                                                   {"generator", {}},
                                                   {"kv_sharing_modes", {}},
                                                   {"mlp_layer_types", {}},
                                                   {"num_mtp_layers", 0},
                                                   {"mtp_layer_types", {}},
                                                   {"mtp_mlp_layer_types", {}},
                                                   {"mtp_per_layer_config", {}}};
  return keys;
}

// Whether auto_map names the code of which transformers has its own copy, under the architecture's
// name: files of the hub keep the key from the time before.
bool names_own_code(const Value& object) {
  const auto map = object.find("auto_map"), names = object.find("architectures");
  if (!map || !map->is_object() || !names) return false;
  const Value model = map->get("AutoModelForCausalLM");
  return names->size() == 1 && names->is_array() && names->items[0].is_string() && model.is_string() &&
         model.text.ends_with("." + names->items[0].text);
}

// Whether the value says what the model does anyway, though its family does not read the key.
// Families name one and the same thing in several ways; what is not listed here only has the
// neutral values above.
bool says_what_is(std::string_view key, const Value& value, const Decoder& d) {
  const auto is_number = [&](double x) { return value.is_number() && value.to_double() == x; };
  const auto is_factor = [&](float x) {
    return x != 0 && value.is_number() && static_cast<float>(value.to_double()) == x;
  };
  const auto has_size = [&](int64_t n) { return n != 0 && is_number(static_cast<double>(n)); };
  const auto is_list = [&](const auto& of_layer) {
    if (!value.is_array() || value.size() != d.layers.size()) return false;
    for (size_t i = 0; i < d.layers.size(); ++i)
      if (value.items[i] != Value(of_layer(d.layers[i]))) return false;
    return true;
  };
  const bool parallel = d.block == Block::parallel || d.block == Block::parallel_two;
  const bool all_windowed = std::ranges::all_of(d.layers, &Layer::window);
  if (key == "use_qk_norm" || key == "qk_norm" || key == "qk_layernorm")
    return value == (d.qk_norm != QkNorm::none);
  if (key == "qkv_bias") return value == d.qkv_bias;
  if (key == "use_bias" || key == "bias") return value == (d.qkv_bias && d.output_bias && d.mlp_bias);
  if (key == "parallel_attn" || key == "use_parallel_residual") return value == parallel;
  if (key == "alibi") return value == (d.alibi_bias_max != 0);
  if (key == "rope_interleaved") return value == d.rope_interleaved;
  if (key == "sliding_window") return d.window != 0 && all_windowed && has_size(d.window);
  if (key == "use_sliding_window") return value == (d.window != 0 && all_windowed);
  if (key == "layer_types")
    return is_list([](const Layer& l) { return l.window ? "sliding_attention" : "full_attention"; });
  if (key == "mlp_layer_types") return is_list([](const Layer& l) { return l.sparse ? "sparse" : "dense"; });
  if (key == "no_rope_layers") return is_list([](const Layer& l) { return l.rope >= 0 ? 1 : 0; });
  if (key == "rotary_dim") return !d.ropes.empty() && has_size(d.rotary_dim);
  if (key == "partial_rotary_factor" || key == "rotary_pct")
    return !d.ropes.empty() && value.is_number() &&
           static_cast<int64_t>(static_cast<double>(d.head_dim) * value.to_double()) == d.rotary_dim;
  if (key == "attn_logit_softcapping") return is_factor(d.attention_softcap);
  if (key == "final_logit_softcapping") return is_factor(d.logits_softcap);
  if (key == "query_pre_attn_scalar")
    return value.is_number() && value.to_double() > 0 &&
           static_cast<float>(1 / std::sqrt(value.to_double())) == d.attention_scale;
  if (key == "attention_multiplier") return is_factor(d.attention_scale);
  if (key == "embedding_multiplier" || key == "scale_emb") return is_factor(d.embedding_scale);
  if (key == "residual_multiplier") return is_factor(d.residual_scale);
  if (key == "logits_scaling") return is_factor(d.logits_divisor);
  if (key == "logit_scale") return is_factor(d.logits_scale);
  if (key == "clip_qkv") return is_factor(d.qkv_clip);
  if (key == "kv_lora_rank") return has_size(d.kv_lora_rank);
  if (key == "q_lora_rank") return has_size(d.q_lora_rank);
  // One expert that every token takes is an MLP, and so are none.
  if (key == "num_experts" || key == "num_local_experts" || key == "n_routed_experts")
    return d.experts.count == 0 && (is_number(1) || is_number(0));
  return false;
}

}  // namespace

Status check_settings(const Value& object, const ConfigReader& read, const Decoder* model) {
  ConfigReader keys(object, read.where());
  for (const char* key : {"dtype", "torch_dtype"}) {
    // Weights keep their stored type. The key is checked because other types need another recipe.
    const std::string dtype = keys.text(key, "float32");
    if (dtype != "float32" && dtype != "bfloat16" && dtype != "float16" && dtype != "auto")
      keys.refuse(onnx::quote(key) + " = " + onnx::quote(dtype) +
                  " is not covered; float32, bfloat16 and float16 are");
  }
  if (!keys.flag("is_causal", true)) keys.refuse("'is_causal' = false is not covered");
  const Value* quantized = keys.find("quantization_config");
  if (quantized && quantized->is_object() && !quantized->empty() && !read.was_read("quantization_config")) {
    ConfigReader inner(*quantized, read.where() + ": quantization_config");
    keys.refuse("'quantization_config': weights quantised by " +
                onnx::quote(inner.text("quant_method", "a method without a name")) +
                " are not covered: pass the checkpoint that they were made of, or save the model in "
                "bfloat16 (docs/guide/models.md)");
  }
  for (const UnsupportedKey& k : unsupported_keys())
    if (!read.was_read(k.key) && !(names_own_code(object) && k.key == std::string_view("auto_map")) &&
        !(model && object.contains(k.key) && says_what_is(k.key, object.get(k.key), *model)))
      keys.require_neutral(k.key, k.neutral);
  return keys.status();
}

namespace {

// Tensors of a whole model behind or before its language model.
void place_in_whole_model(Decoder& d) {
  d.names.other_places = {{"language_model.model.", "language_model.lm_head"},
                          {"model.language_model.", "lm_head"},
                          {"model.text_model.", "lm_head"},
                          {"thinker.model.", "thinker.lm_head"},
                          {"thinker.model.language_model.", "thinker.lm_head"}};
  for (const char* part :
       {"vision_tower.", "vision_model.", "visual.", "multi_modal_projector.", "audio_tower.",
        "vision_embedder.", "embed_vision.", "embed_audio.", "connector.", "image_newline", "mm_projector.",
        "video_tower.", "image_tower.", "encoder.", "projector."})
    for (const char* prefix : {"", "model.", "thinker.", "thinker.model."})
      d.names.ignored_begins.push_back(std::string(prefix) + part);
  for (const char* speech : {"talker.", "token2wav.", "code2wav."}) d.names.ignored_begins.push_back(speech);
}

// Formats a token id or a list of token ids as "1,2"; absent as "".
Result<std::string> token_ids(const Value* value, const char* key, const std::string& where, int64_t vocab) {
  if (!value) return std::string();
  std::string out;
  for (const Value& id : value->is_array() ? value->items : std::vector<Value>{*value}) {
    if (!id.is_integer() || id.to_int64() < 0 || id.to_int64() >= vocab)
      return bad_input(where + ": " + onnx::quote(key) + " = " + short_text(*value) +
                       " is not a token id below " + std::to_string(vocab));
    out += (out.empty() ? "" : ",") + std::to_string(id.to_int64());
  }
  return out;
}

Status read_special_tokens(const Value& top, const std::string& folder, Decoder& config) {
  Value generation;
  const std::string path = folder + "/generation_config.json";
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    INVAR_TRY(std::string text, read_file(path));
    INVAR_TRY(generation, parse_json(text, path));
  }
  for (const char* key : {"bos_token_id", "eos_token_id"}) {
    ConfigReader first(generation, path), second(top, folder + "/config.json");
    const bool generated = first.find(key) != nullptr;
    INVAR_TRY(std::string ids, token_ids(generated ? first.find(key) : second.find(key), key,
                                         generated ? path : folder + "/config.json", config.vocab_size));
    if (!ids.empty()) config.metadata[std::string("invar.") + key] = ids;
  }
  return {};
}

}  // namespace

// What llama.cpp's converter makes of weights (weights.12): norms have the 1 added; recurrent
// layers have joined projections, -exp(A_log), and of Qwen 3.5 heads of values in another order.
static void describe_gguf(const std::string& architecture, Decoder& d) {
  const bool recurrent = architecture.starts_with("qwen3next") || architecture.starts_with("qwen35");
  if (recurrent || architecture.starts_with("gemma")) d.norm_offset = false;
  if (!recurrent) return;
  d.delta.layout = DeltaLayout::joined;
  d.delta.stored_decays = true;
  d.delta.tiled_heads = architecture.starts_with("qwen35") && d.delta.key_heads != d.delta.value_heads;
}

Result<Decoder> read_config(const std::string& folder, bool long_context, Quantization* packed) {
  const std::string path = folder + "/config.json";
  INVAR_TRY(std::string text, read_file(path));
  INVAR_TRY(Value whole, parse_json(text, path));
  INVAR_TRY(const TextConfig text_config, text_config_of(whole, path));
  const Value& object = text_config.config;
  INVAR_TRY(const Architecture* architecture, find_architecture(object, path));
  if (architecture->has_encoder) return not_covered(path + ": an encoder-decoder, not a decoder");
  ConfigReader reader(object, path);
  Decoder d;
  d.family = architecture->model_type;
  d.architecture = architecture->name;
  d.max_positions = reader.size(architecture->max_positions_key, architecture->max_positions);
  d.long_context = long_context;
  std::ranges::find(families(), d.family, &Family::model_type)->describe(reader, d);
  const bool family_reads = reader.was_read("quantization_config");  // gpt-oss and BitNet
  if (packed && !family_reads &&
      (object.contains("quantization_config") || object.contains("compression_config")))
    *packed = read_quantization(reader);
  describe_gguf(object.get("gguf").get("architecture").text, d);
  INVAR_CHECK_OK(check_settings(object, reader, &d));  // what is not covered is said first
  if (text_config.whole) {
    place_in_whole_model(d);
    const char* part = text_config.whole->part;
    for (Value about : part ? std::vector<Value>{whole.get(part), whole} : std::vector<Value>{whole}) {
      about.erase("text_config");
      ConfigReader outer(about, path);  // where the language model has these keys, too
      for (const char* key : {"quantization_config", "compression_config"})
        if (reader.was_read(key)) outer.require_neutral(key);
      INVAR_CHECK_OK(outer.status());
      INVAR_CHECK_OK(check_settings(about, reader));
    }
  }
  INVAR_CHECK_OK(reader.status());
  if (long_context && std::ranges::none_of(d.ropes, &RopeParameters::long_factors))
    return bad_input(path + ": no LongRoPE, so one program is for all lengths: leave --long-context out");
  INVAR_CHECK_OK(read_special_tokens(object, folder, d));
  d.metadata["invar.model_type"] = d.family;
  d.metadata["invar.vocab_size"] = std::to_string(d.vocab_size);
  d.metadata["invar.max_position_embeddings"] = std::to_string(d.max_positions);
  d.metadata["invar.config_sha256"] = to_hex(sha256(text));
  onnx::add_recipe(recipe_of(d), d.metadata);
  return d;
}

}  // namespace invar::checkpoint
