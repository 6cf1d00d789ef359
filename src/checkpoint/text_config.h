// The language model within a config.json that describes more, such as one of images and text
// (spec/families.md decoder.32), and how many positions it has. Header-only, since builds without
// the exporter ask it, too.
#pragma once

#include <algorithm>
#include <string>

#include "base/status.h"
#include "base/text/json.h"
#include "checkpoint/architecture.h"

namespace invar::checkpoint {

// What a row below says of its models.
enum : unsigned {
  kAnyText = 1,  // the text model is of any family, as text_config says
  kFlat = 2,     // old files have the text model's keys beside the others
  kTied = 4,     // tie_word_embeddings is true where the file has none
};

// A model whose text model is one that the exporter knows.
struct WholeModel {
  const char *model_type, *name;
  const char *text_type, *text_type_in_config;  // the second: another name of it, or null
  unsigned how = 0;
  const char* defaults = "{}";  // of the text model, which differ from the family's own
  const char* part = nullptr;   // the key of the object that has text_config; null: it is the file's own
};
// Defaults of classes of the text model that are not those of its family.
inline constexpr const char* kVoxtralText =
    R"({"vocab_size": 131072, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 30,
        "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5, "rope_theta": 100000000.0})";
inline constexpr const char* kQwen2VlText =
    R"({"vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568, "num_hidden_layers": 80,
        "num_attention_heads": 64, "num_key_value_heads": 8, "rms_norm_eps": 1e-5,
        "max_window_layers": 80, "rope_theta": 1000000.0})";
inline constexpr const char* kQwen3VlText = R"({"max_position_embeddings": 128000, "rope_theta": 500000.0})";
inline constexpr const char* kQwen3VlMoeText =
    R"({"intermediate_size": 5632, "num_attention_heads": 16, "num_key_value_heads": 16,
        "num_experts_per_tok": 4, "norm_topk_prob": true, "max_position_embeddings": 128000,
        "rope_theta": 500000.0})";
inline constexpr const char* kQwen2OmniText =
    R"({"vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
        "num_attention_heads": 28, "num_key_value_heads": 4, "rope_theta": 1000000.0})";
inline constexpr const char* kQwen3OmniText =
    R"({"vocab_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
        "num_attention_heads": 28, "norm_topk_prob": true, "rope_theta": 1000000.0})";
inline constexpr const char* kGlm4vMoeText = R"({"max_position_embeddings": 65536, "attention_bias": true})";
inline constexpr const char* kThinker = "thinker_config";
inline constexpr WholeModel kWholeModels[] = {
    {"gemma3", "Gemma3ForConditionalGeneration", "gemma3_text", nullptr, kTied},
    {"mistral3", "Mistral3ForConditionalGeneration", "mistral", nullptr, kAnyText | kTied},
    {"gemma3n", "Gemma3nForConditionalGeneration", "gemma3n_text", nullptr, kTied},
    {"gemma4", "Gemma4ForConditionalGeneration", "gemma4_text", nullptr, kTied},
    {"gemma4_unified", "Gemma4UnifiedForConditionalGeneration", "gemma4_unified_text", nullptr, kTied},
    {"llama4", "Llama4ForConditionalGeneration", "llama4_text", nullptr},
    {"mllama", "MllamaForConditionalGeneration", "mllama_text_model", nullptr},
    {"llava", "LlavaForConditionalGeneration", "llama", nullptr, kAnyText},
    {"llava_next", "LlavaNextForConditionalGeneration", "llama", nullptr, kAnyText},
    {"llava_next_video", "LlavaNextVideoForConditionalGeneration", "llama", nullptr, kAnyText},
    {"llava_onevision", "LlavaOnevisionForConditionalGeneration", "qwen2", nullptr, kAnyText},
    {"vipllava", "VipLlavaForConditionalGeneration", "llama", nullptr, kAnyText},
    {"video_llava", "VideoLlavaForConditionalGeneration", "llama", nullptr, kAnyText},
    {"qwen2_vl", "Qwen2VLForConditionalGeneration", "qwen2", "qwen2_vl_text", kFlat, kQwen2VlText},
    {"qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", "qwen2", "qwen2_5_vl_text", kFlat, kQwen2VlText},
    {"qwen3_vl", "Qwen3VLForConditionalGeneration", "qwen3", "qwen3_vl_text", 0, kQwen3VlText},
    {"qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration", "qwen3_moe", "qwen3_vl_moe_text", 0,
     kQwen3VlMoeText},
    {"qwen2_audio", "Qwen2AudioForConditionalGeneration", "qwen2", nullptr, kAnyText},
    {"qwen2_5_omni", "Qwen2_5OmniForConditionalGeneration", "qwen2", "qwen2_5_omni_text", 0, kQwen2OmniText,
     kThinker},
    {"qwen2_5_omni", "Qwen2_5OmniModel", "qwen2", "qwen2_5_omni_text", 0, kQwen2OmniText, kThinker},
    {"qwen3_omni_moe", "Qwen3OmniMoeForConditionalGeneration", "qwen3_moe", "qwen3_omni_moe_text", 0,
     kQwen3OmniText, kThinker},
    {"internvl", "InternVLForConditionalGeneration", "qwen2", nullptr, kAnyText | kTied},
    {"aya_vision", "AyaVisionForConditionalGeneration", "cohere2", nullptr, kAnyText | kTied},
    {"cohere2_vision", "Cohere2VisionForConditionalGeneration", "cohere2", nullptr, kAnyText | kTied},
    {"idefics2", "Idefics2ForConditionalGeneration", "mistral", nullptr, kAnyText},
    {"idefics3", "Idefics3ForConditionalGeneration", "llama", nullptr, kAnyText},
    {"smolvlm", "SmolVLMForConditionalGeneration", "llama", nullptr, kAnyText},
    {"lfm2_vl", "Lfm2VlForConditionalGeneration", "lfm2", nullptr, kAnyText | kTied},
    {"lfm3_vl", "Lfm3VlForConditionalGeneration", "lfm3", nullptr, kAnyText | kTied},
    {"exaone4_5", "Exaone4_5_ForConditionalGeneration", "exaone4", "exaone4_5_text"},
    {"voxtral", "VoxtralForConditionalGeneration", "llama", nullptr, kAnyText, kVoxtralText},
    {"granite_speech", "GraniteSpeechForConditionalGeneration", "granite", nullptr, kAnyText | kTied},
    {"glm4v", "Glm4vForConditionalGeneration", "glm4v_text", nullptr},
    {"glm46v", "Glm46VForConditionalGeneration", "glm4v_text", nullptr},
    {"glm4v_moe", "Glm4vMoeForConditionalGeneration", "glm4_moe", "glm4v_moe_text", 0, kGlm4vMoeText},
    {"kimi_k25", "KimiK25ForConditionalGeneration", "deepseek_v3", "kimi_k2", kTied},
    {"kimi_k25", "Kimi_K25ForConditionalGeneration", "deepseek_v3", "kimi_k2", kTied},
    {"qwen3_5", "Qwen3_5ForConditionalGeneration", "qwen3_5_text", nullptr},
    {"qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe_text", nullptr},
};

// Sizes that a text_config leaves out: transformers stores what differs from these defaults of its
// class. A file of a language model alone has them all.
struct TextSizes {
  const char* text_type;
  int64_t vocab_size, hidden_size, intermediate_size, num_hidden_layers, num_attention_heads;
};
inline constexpr TextSizes kTextSizes[] = {
    {"cohere2", 256000, 8192, 22528, 40, 64},    {"deepseek_v3", 129280, 7168, 18432, 61, 128},
    {"exaone4", 102400, 4096, 16384, 32, 32},    {"gemma", 256000, 3072, 24576, 28, 16},
    {"gemma2", 256000, 2304, 9216, 26, 8},       {"gemma3_text", 262208, 2304, 9216, 26, 8},
    {"glm4_moe", 151424, 4096, 10944, 46, 96},   {"glm4v_text", 151552, 4096, 13696, 40, 32},
    {"granite", 32000, 4096, 11008, 32, 32},     {"lfm2", 65536, 2560, 12288, 32, 32},
    {"lfm3", 128000, 2048, 7680, 24, 16},        {"llama", 32000, 4096, 11008, 32, 32},
    {"ministral3", 131072, 4096, 14336, 34, 32}, {"mllama_text_model", 128256, 4096, 14336, 40, 32},
    {"mistral", 32000, 4096, 14336, 32, 32},     {"mistral4", 131072, 4096, 12288, 36, 32},
    {"olmo2", 50304, 4096, 11008, 32, 32},       {"phi3", 32064, 3072, 8192, 32, 32},
    {"qwen2", 151936, 4096, 22016, 32, 32},      {"qwen3", 151936, 4096, 22016, 32, 32},
    {"qwen3_moe", 151936, 2048, 6144, 24, 32},   {"smollm3", 128256, 2048, 11008, 36, 16},
};

struct TextConfig {
  json::Value config;                 // of the language model, as its own config.json would be
  const WholeModel* whole = nullptr;  // null: the file describes nothing else
};

// Three positions a token, of time, height and width, are one and the same for text.
inline void drop_mrope(json::Value& config) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    auto rope = config.find(key);
    if (!rope || !rope->is_object() || !rope->contains("mrope_section")) continue;
    rope->erase("mrope_section"), rope->erase("mrope_interleaved");
    for (const char* type : {"type", "rope_type"})
      if (rope->contains(type) && rope->get(type) == "mrope") (*rope)[type] = "default";
  }
}

// Errors begin with the file's path `where`.
inline Result<TextConfig> text_config_of(const json::Value& config, const std::string& where) {
  const auto names = config.find("architectures"), type = config.find("model_type");
  const auto fits = [&](const WholeModel& m) {
    return type && *type == m.model_type && (!names || names->is_null() || *names == json::list({m.name}));
  };
  auto whole = std::ranges::find_if(kWholeModels, fits);
  if (whole == std::end(kWholeModels)) {
    TextConfig text{config};
    if (type && (*type == "qwen3_5_text" || *type == "qwen3_5_moe_text")) drop_mrope(text.config);
    return text;
  }
  TextConfig text{json::Value(json::Value::object), &*whole};
  const json::Value* about = whole->part ? config.find(whole->part) : &config;
  if (!about || !about->is_object())
    return bad_input(where + ": there is no \"" + whole->part + "\", which describes the language model");
  const auto inner = about->find("text_config");
  if (!inner && !(whole->how & kFlat))
    return bad_input(where + ": there is no \"text_config\", which describes the language model");
  if (inner && !inner->is_object()) return bad_input(where + ": \"text_config\" is not an object");
  const auto inner_type = inner ? inner->find("model_type") : nullptr;
  const bool other = inner_type && *inner_type != whole->text_type &&
                     !(whole->text_type_in_config && *inner_type == whole->text_type_in_config);
  const auto known = std::ranges::find_if(kArchitectures, [&](const Architecture& a) {
    return other ? *inner_type == a.model_type && !a.has_encoder
                 : std::string_view(a.model_type) == whole->text_type;
  });
  if (other && (!(whole->how & kAnyText) || known == std::end(kArchitectures)))
    return not_covered(where + ": text_config: model_type " + short_text(*inner_type) +
                       " is not covered within " + whole->name +
                       (whole->how & kAnyText ? "; docs/reference/families.md lists those that are"
                                              : "; \"" + std::string(whole->text_type) + "\" is"));
  for (const TextSizes& sizes : kTextSizes)
    if (std::string_view(sizes.text_type) == known->model_type)
      for (const auto& [key, size] : {std::pair{"vocab_size", sizes.vocab_size},
                                      {"hidden_size", sizes.hidden_size},
                                      {"intermediate_size", sizes.intermediate_size},
                                      {"num_hidden_layers", sizes.num_hidden_layers},
                                      {"num_attention_heads", sizes.num_attention_heads}})
        text.config[key] = size;
  text.config.update(json::read_or_null(whole->defaults));
  const json::Value& said = inner ? *inner : config;
  for (const char* key : {"rope_scaling", "rope_parameters"})  // rope_theta may stand within
    if (!said.get(key).get("rope_theta").is_null()) text.config.erase("rope_theta");
  text.config.update(said);
  text.config["model_type"] = known->model_type;
  text.config["architectures"] = json::list({known->name});
  // The outer object has the keys about the vocabulary. Some files of tied tables say so within
  // alone.
  for (const char* key : {"bos_token_id", "eos_token_id"})
    if (auto given = about->find(key); given && !given->is_null()) text.config[key] = *given;
  const auto tied = about->find("tie_word_embeddings");
  const auto tied_within = inner ? inner->find("tie_word_embeddings") : nullptr;
  if (!tied_within || *tied_within != true || (tied && !tied->is_boolean()))
    text.config["tie_word_embeddings"] = tied ? *tied : json::Value((whole->how & kTied) != 0);
  for (const char* key : {"vision_config", "text_config"}) text.config.erase(key);
  drop_mrope(text.config);
  return text;
}

// How many positions the sequences of a text model have.
struct ServedPositions {
  int64_t most = 0;
  // With LongRoPE that of the sequences whose prompts have no more (decoder.29); else `most`.
  int64_t original = 0;
};

// index_topk where it is absent (decoder.73).
inline constexpr int64_t kIndexedPositions = 2048;

// `value`: the number in the config, P of families.1.
inline ServedPositions served_positions(const json::Value& config, int64_t value) {
  const auto type = config.find("model_type");
  if (type && (*type == "deepseek_v32" || *type == "glm_moe_dsa")) {
    const auto chosen = config.find("index_topk");
    value = std::min(value, chosen && chosen->is_unsigned() ? chosen->to_int64() : kIndexedPositions);
  }
  // Llama 4: the first chunk of positions (decoder.35). 8192 is transformers' default.
  if (type && *type == "llama4_text") {
    const auto chunk = config.find("attention_chunk_size"), types = config.find("layer_types");
    const bool chunked =
        !types || !types->is_array() ||
        std::ranges::find(types->items, json::Value("chunked_attention")) != types->items.end();
    if (chunked && !(chunk && chunk->is_null()))
      value = std::min(value, chunk && chunk->is_unsigned() ? chunk->to_int64() : 8192);
  }
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto rope = config.find(key);
    if (!rope || !rope->is_object()) continue;
    const json::Value& type = rope->get(rope->contains("rope_type") ? "rope_type" : "type");
    if (type != "longrope" && type != "su") continue;
    for (const json::Value* object : {rope, &config})
      if (auto n = object->find("original_max_position_embeddings"); n && n->is_unsigned())
        return {value, std::min(value, n->to_int64())};
    return {value, std::min<int64_t>(value, 4096)};  // transformers' default for Phi-3
  }
  return {value, value};
}

}  // namespace invar::checkpoint
