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

// A model whose text model is one that the exporter knows.
struct WholeModel {
  const char *model_type, *name;
  const char *text_type, *text_type_in_config;  // the second: another name of it, or null
  bool flat = false;                            // old files have the text model's keys beside the others
  bool tied = false;                            // tie_word_embeddings where the file has none
  const char* defaults = "{}";                  // of the text model, which differ from the family's own
};
inline constexpr const char* kGemma3Sizes =
    R"({"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
        "num_attention_heads": 8})";
inline constexpr WholeModel kWholeModels[] = {
    {"gemma3", "Gemma3ForConditionalGeneration", "gemma3_text", nullptr, false, true, kGemma3Sizes},
    {"mistral3", "Mistral3ForConditionalGeneration", "mistral", nullptr, false, true},
    {"mistral3", "Mistral3ForConditionalGeneration", "ministral3", nullptr, false, true},
    {"mistral3", "Mistral3ForConditionalGeneration", "mistral4", nullptr, false, true},
    {"gemma3n", "Gemma3nForConditionalGeneration", "gemma3n_text", nullptr, false, true},
    {"gemma4", "Gemma4ForConditionalGeneration", "gemma4_text", nullptr, false, true},
    {"gemma4_unified", "Gemma4UnifiedForConditionalGeneration", "gemma4_unified_text", nullptr, false, true},
    {"llama4", "Llama4ForConditionalGeneration", "llama4_text", nullptr},
    {"llava", "LlavaForConditionalGeneration", "llama", nullptr},
    {"qwen2_vl", "Qwen2VLForConditionalGeneration", "qwen2", "qwen2_vl_text", true},
    {"qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", "qwen2", "qwen2_5_vl_text", true},
    {"qwen3_vl", "Qwen3VLForConditionalGeneration", "qwen3", "qwen3_vl_text"},
    {"qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration", "qwen3_moe", "qwen3_vl_moe_text"},
    {"llava_next", "LlavaNextForConditionalGeneration", "mistral", nullptr},
    {"llava_next", "LlavaNextForConditionalGeneration", "llama", nullptr},
    {"llava_next", "LlavaNextForConditionalGeneration", "qwen2", nullptr},
    {"llava_onevision", "LlavaOnevisionForConditionalGeneration", "qwen2", nullptr},
    {"internvl", "InternVLForConditionalGeneration", "qwen2", nullptr, false, true},
    {"internvl", "InternVLForConditionalGeneration", "qwen3", nullptr, false, true},
    {"internvl", "InternVLForConditionalGeneration", "llama", nullptr, false, true},
    {"aya_vision", "AyaVisionForConditionalGeneration", "cohere2", nullptr, false, true},
    {"cohere2_vision", "Cohere2VisionForConditionalGeneration", "cohere2", nullptr, false, true},
    {"idefics3", "Idefics3ForConditionalGeneration", "llama", nullptr},
    {"smolvlm", "SmolVLMForConditionalGeneration", "llama", nullptr},
    {"lfm2_vl", "Lfm2VlForConditionalGeneration", "lfm2", nullptr, false, true},
    {"exaone4_5", "Exaone4_5_ForConditionalGeneration", "exaone4", "exaone4_5_text"},
    {"voxtral", "VoxtralForConditionalGeneration", "llama", nullptr},
    {"kimi_k25", "KimiK25ForConditionalGeneration", "deepseek_v3", "kimi_k2", false, true},
    {"kimi_k25", "Kimi_K25ForConditionalGeneration", "deepseek_v3", "kimi_k2", false, true},
    {"qwen3_5", "Qwen3_5ForConditionalGeneration", "qwen3_5_text", nullptr},
    {"qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe_text", nullptr},
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
  // Some have one of several text models.
  const auto given = config.find("text_config");
  const auto given_type = given && given->is_object() ? given->find("model_type") : nullptr;
  for (const WholeModel& m : kWholeModels)
    if (fits(m) && given_type && *given_type == m.text_type) whole = &m;
  TextConfig text{json::read_or_null(whole->defaults), &*whole};
  const auto inner = config.find("text_config");
  if (!inner && !whole->flat)
    return bad_input(where + ": there is no \"text_config\", which describes the language model");
  if (inner && !inner->is_object()) return bad_input(where + ": \"text_config\" is not an object");
  text.config.update(inner ? *inner : config);
  const auto inner_type = text.config.find("model_type");
  if (inner && inner_type && *inner_type != whole->text_type &&
      !(whole->text_type_in_config && *inner_type == whole->text_type_in_config))
    return not_covered(where + ": text_config: model_type " + short_text(*inner_type) +
                       " is not covered within " + whole->name + "; \"" + whole->text_type + "\" is");
  const auto known = std::ranges::find_if(kArchitectures, [&](const Architecture& a) {
    return std::string_view(a.model_type) == whole->text_type;
  });
  text.config["model_type"] = whole->text_type;
  text.config["architectures"] = json::list({known->name});
  // The outer object has the keys about the vocabulary.
  for (const char* key : {"bos_token_id", "eos_token_id"})
    if (auto given = config.find(key); given && !given->is_null()) text.config[key] = *given;
  const auto tied = config.find("tie_word_embeddings");
  text.config["tie_word_embeddings"] = tied ? *tied : json::Value(whole->tied);
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
