// Which model architectures the exporter supports (spec/checkpoint.md onnx.4). Header-only, since
// builds without the exporter check it, too.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"

namespace invar::checkpoint {

// A JSON value as short text for errors.
inline std::string short_text(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

struct Architecture {
  const char *model_type, *name;
  int64_t max_positions = 2048;  // transformers' default
  const char* max_positions_key = "max_position_embeddings";
};
inline constexpr Architecture kArchitectures[] = {
    {"llama", "LlamaForCausalLM"},
    {"mistral", "MistralForCausalLM", 131072},
    {"qwen2", "Qwen2ForCausalLM", 32768},
    {"qwen3", "Qwen3ForCausalLM", 32768},
    {"gemma", "GemmaForCausalLM", 8192},
    {"gemma2", "Gemma2ForCausalLM", 8192},
    {"gemma3_text", "Gemma3ForCausalLM", 131072},
    {"phi", "PhiForCausalLM"},
    {"phi3", "Phi3ForCausalLM", 4096},
    {"smollm3", "SmolLM3ForCausalLM", 32768},
    {"olmo2", "Olmo2ForCausalLM"},
    {"olmo3", "Olmo3ForCausalLM"},
    {"granite", "GraniteForCausalLM"},
    {"cohere", "CohereForCausalLM", 8192},
    {"cohere2", "Cohere2ForCausalLM", 8192},
    {"stablelm", "StableLmForCausalLM", 4096},
    {"starcoder2", "Starcoder2ForCausalLM", 4096},
    {"nemotron", "NemotronForCausalLM", 4096},
    {"glm", "GlmForCausalLM", 131072},
    {"glm4", "Glm4ForCausalLM", 131072},
    {"ernie4_5", "Ernie4_5ForCausalLM", 131072},
    {"hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM"},
    {"gpt2", "GPT2LMHeadModel", 1024, "n_positions"},
    {"gptj", "GPTJForCausalLM", 2048, "n_positions"},
    {"gpt_neox", "GPTNeoXForCausalLM"},
    {"opt", "OPTForCausalLM"},
    {"falcon", "FalconForCausalLM"},
    {"bloom", "BloomForCausalLM", 2048, "seq_length"},
    {"mpt", "MptForCausalLM", 2048, "max_seq_len"},
    {"mpt", "MPTForCausalLM", 2048, "max_seq_len"},  // MosaicML's name
    {"olmo", "OlmoForCausalLM"},
};

// The architecture of the config.json object `config`; errors begin with its path `where`.
inline Result<const Architecture*> find_architecture(const nlohmann::json& config, const std::string& where) {
  const auto names = config.find("architectures"), type = config.find("model_type");
  const bool named = names != config.end() && !names->is_null();
  for (const Architecture& known : kArchitectures) {
    if (named && *names != nlohmann::json::array({known.name})) continue;
    if (type != config.end() && *type == known.model_type) return &known;
    if (named)
      return not_covered(where + ": model_type " + (type == config.end() ? "(absent)" : short_text(*type)) +
                         " is not covered with architecture " + known.name + "; \"" + known.model_type +
                         "\" is");
  }
  if (named)
    return not_covered(where + ": architecture " + short_text(*names) +
                       " is not covered; docs/reference/families.md lists those that are; "
                       "export another to ONNX (docs/guide/models.md)");
  return not_covered(where + ": model_type " + (type == config.end() ? "(absent)" : short_text(*type)) +
                     " is not covered; docs/reference/families.md lists those that are; "
                     "export another to ONNX (docs/guide/models.md)");
}

}  // namespace invar::checkpoint
