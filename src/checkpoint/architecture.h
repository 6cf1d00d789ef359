// Which model architectures the exporter supports (spec/checkpoint.md onnx.4). Header-only, since
// builds without the exporter check it, too.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "base/text/json.h"

namespace invar::checkpoint {

// A JSON value as short text for errors.
inline std::string short_text(const json::Value& value) {
  std::string text = json::dump(value, {.ascii = true});
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

struct Architecture {
  const char *model_type, *name;
  int64_t max_positions = 2048;  // transformers' default
  const char* max_positions_key = "max_position_embeddings";
  bool has_encoder = false;  // max_positions: of the source, and of the answer
  bool hears = false;        // the source is a recording (spec/speech.md)
};
inline constexpr int64_t kAnyPositions = 1 << 20;  // where no position has a limit
inline constexpr Architecture kArchitectures[] = {
    {"llama", "LlamaForCausalLM"},
    {"mllama_text_model", "MllamaForCausalLM", 131072},
    {"mistral", "MistralForCausalLM", 131072},
    {"qwen2", "Qwen2ForCausalLM", 32768},
    {"qwen3", "Qwen3ForCausalLM", 32768},
    {"gemma", "GemmaForCausalLM", 8192},
    {"gemma2", "Gemma2ForCausalLM", 8192},
    {"recurrent_gemma", "RecurrentGemmaForCausalLM", kAnyPositions},
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
    {"glm4v_text", "Glm4vTextModel", 32768},  // within larger models alone
    {"ernie4_5", "Ernie4_5ForCausalLM", 131072},
    {"hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM"},
    {"minicpm3", "MiniCPM3ForCausalLM", 32768},
    {"youtu", "YoutuForCausalLM", 131072},
    {"deepseek_v2", "DeepseekV2ForCausalLM"},
    {"deepseek_v3", "DeepseekV3ForCausalLM", 4096},
    {"kimi_k2", "DeepseekV3ForCausalLM", 4096},
    {"glm4_moe_lite", "Glm4MoeLiteForCausalLM", 202752},
    {"deepseek_v32", "DeepseekV32ForCausalLM", 163840},
    {"glm_moe_dsa", "GlmMoeDsaForCausalLM", 202752},
    {"gpt2", "GPT2LMHeadModel", 1024, "n_positions"},
    {"gptj", "GPTJForCausalLM", 2048, "n_positions"},
    {"codegen", "CodeGenForCausalLM", 2048, "n_positions"},
    {"openai-gpt", "OpenAIGPTLMHeadModel", 512, "n_positions"},
    {"xglm", "XGLMForCausalLM"},
    {"gpt_neox", "GPTNeoXForCausalLM"},
    {"opt", "OPTForCausalLM"},
    {"falcon", "FalconForCausalLM"},
    {"qwen2_moe", "Qwen2MoeForCausalLM", 32768},
    {"qwen3_moe", "Qwen3MoeForCausalLM", 32768},
    {"mixtral", "MixtralForCausalLM", 131072},
    {"olmoe", "OlmoeForCausalLM", 4096},
    {"granitemoe", "GraniteMoeForCausalLM"},
    {"granitemoeshared", "GraniteMoeSharedForCausalLM"},
    {"granitemoehybrid", "GraniteMoeHybridForCausalLM"},
    {"ernie4_5_moe", "Ernie4_5_MoeForCausalLM", 131072},
    {"hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM"},
    {"glm4_moe", "Glm4MoeForCausalLM", 131072},
    {"gpt_oss", "GptOssForCausalLM", 131072},
    {"bloom", "BloomForCausalLM", 2048, "seq_length"},
    {"mpt", "MptForCausalLM", 2048, "max_seq_len"},
    {"mpt", "MPTForCausalLM", 2048, "max_seq_len"},  // MosaicML's name
    {"olmo", "OlmoForCausalLM"},
    {"seed_oss", "SeedOssForCausalLM", 524288},
    {"arcee", "ArceeForCausalLM", 4096},
    {"helium", "HeliumForCausalLM", 4096},
    {"internlm3", "InternLM3ForCausalLM", 32768},
    {"iquestcoder", "IQuestCoderForCausalLM", 131072},
    {"cwm", "CwmForCausalLM", 131072},
    {"apertus", "ApertusForCausalLM", 65536},
    {"nanochat", "NanoChatForCausalLM"},
    {"jais2", "Jais2ForCausalLM", 8192},
    {"exaone", "ExaoneForCausalLM", 4096},
    {"exaone4", "Exaone4ForCausalLM"},
    {"ministral", "MinistralForCausalLM", 131072},
    {"ministral3", "Ministral3ForCausalLM", 262144},
    {"vaultgemma", "VaultGemmaForCausalLM", 8192},
    {"hyperclovax", "HyperCLOVAXForCausalLM"},
    {"flex_olmo", "FlexOlmoForCausalLM", 4096},
    {"solar_open", "SolarOpenForCausalLM", 131072},
    {"dots1", "Dots1ForCausalLM"},
    {"exaone_moe", "ExaoneMoeForCausalLM"},
    {"minimax_m2", "MiniMaxM2ForCausalLM", 196608},
    {"llama4_text", "Llama4ForCausalLM", 131072},
    {"mistral4", "Mistral4ForCausalLM", 1048576},
    {"gemma4_text", "Gemma4ForCausalLM", 131072},
    {"phimoe", "PhimoeForCausalLM", 131072},
    {"phimoe", "PhiMoEForCausalLM", 131072},  // of the original files
    {"granite_swa", "GraniteSWAForCausalLM", 8192},
    {"qwen3_next", "Qwen3NextForCausalLM", 32768},
    {"qwen3_5_text", "Qwen3_5ForCausalLM", 32768},
    {"qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", 32768},
    {"olmo_hybrid", "OlmoHybridForCausalLM", 65536},
    {"lfm2", "Lfm2ForCausalLM", 128000},
    {"lfm2_moe", "Lfm2MoeForCausalLM", 128000},
    {"mamba2", "Mamba2ForCausalLM", kAnyPositions},
    {"bamba", "BambaForCausalLM", 262144},
    {"falcon_h1", "FalconH1ForCausalLM", 8192},
    {"nemotron_h", "NemotronHForCausalLM", 4096},
    {"gemma3n_text", "Gemma3nForCausalLM", 32768},
    {"kimi_linear", "KimiLinearForCausalLM", 1 << 20, "model_max_length"},
    {"mamba", "MambaForCausalLM", 1 << 20},
    {"falcon_mamba", "FalconMambaForCausalLM", 1 << 20},
    {"jamba", "JambaForCausalLM", 262144},
    {"afmoe", "AfmoeForCausalLM", 16384},
    {"bitnet", "BitNetForCausalLM"},
    {"bitnet", "BitnetForCausalLM"},  // of the original files
    {"bart", "BartForConditionalGeneration", 1024, "max_position_embeddings", true},
    {"mbart", "MBartForConditionalGeneration", 1024, "max_position_embeddings", true},
    {"marian", "MarianMTModel", 1024, "max_position_embeddings", true},
    {"pegasus", "PegasusForConditionalGeneration", 1024, "max_position_embeddings", true},
    {"m2m_100", "M2M100ForConditionalGeneration", 1024, "max_position_embeddings", true},
    {"t5", "T5ForConditionalGeneration", kAnyPositions, "", true},
    {"t5", "T5WithLMHeadModel", kAnyPositions, "", true},  // its name until transformers 4
    {"mt5", "MT5ForConditionalGeneration", kAnyPositions, "", true},
    {"umt5", "UMT5ForConditionalGeneration", kAnyPositions, "", true},
    {"blenderbot", "BlenderbotForConditionalGeneration", 128, "max_position_embeddings", true},
    {"whisper", "WhisperForConditionalGeneration", 448, "max_target_positions", true, true},
    {"gemma4_unified_text", "Gemma4UnifiedForCausalLM", 262144},
    {"cohere2_moe", "Cohere2MoeForCausalLM", 8192},
    {"longcat_flash", "LongcatFlashForCausalLM", 131072},
    {"sarvam_moe", "SarvamMoEForCausalLM", 131072},
    {"sarvam_moe", "Glm4MoeForCausalLM", 131072},
    {"sarvam_mla", "DeepseekV3ForCausalLM", 4096},
    {"sarvam_mla", "SarvamMLAForCausalLM", 4096},  // of the original files
    {"granitemoe_swa", "GraniteMoeSWAForCausalLM"},
    {"laguna", "LagunaForCausalLM", 131072},
    {"mimo_v2_flash", "MiMoV2FlashForCausalLM", 131072},
    {"minimax", "MiniMaxForCausalLM", 131072},
    {"zamba2", "Zamba2ForCausalLM", 4096},
    {"hy_v3", "HYV3ForCausalLM", 131072},
    {"mellum", "MellumForCausalLM", 131072},
    {"gpt_bigcode", "GPTBigCodeForCausalLM", 1024, "n_positions"},
    {"gpt_neo", "GPTNeoForCausalLM"},
    {"lfm3", "Lfm3ForCausalLM", 128000},
    // transformers has no classes of these
    {"mimo", "MiMoForCausalLM", 32768},
    {"minicpm", "MiniCPMForCausalLM"},
    {"internlm2", "InternLM2ForCausalLM"},
    {"internlm3", "LlamaForCausalLM", 32768},
    {"iquestcoder", "LlamaForCausalLM", 131072},
    {"exaone", "LlamaForCausalLM", 4096},
};

// Encoders: classes of transformers are STEM with an ending. That of a classifier has its scores as
// the output; with any other of them the model is the one without a head.
struct EncoderArchitecture {
  const char *model_type, *stem;
  bool classifies = false;
};
inline constexpr EncoderArchitecture kEncoders[] = {
    {"bert", "Bert"},           {"electra", "Electra"},        {"roberta", "Roberta"},
    {"camembert", "Camembert"}, {"xlm-roberta", "XLMRoberta"}, {"distilbert", "DistilBert"},
    {"mpnet", "MPNet"},         {"modernbert", "ModernBert"},
};

// Null: the model_type of the config.json object `config` is no encoder's.
inline const EncoderArchitecture* encoder_type(const json::Value& config) {
  const auto type = config.find("model_type");
  for (const EncoderArchitecture& known : kEncoders)
    if (type && *type == known.model_type) return &known;
  return nullptr;
}

inline Result<EncoderArchitecture> find_encoder_architecture(const json::Value& config,
                                                             const std::string& where) {
  const EncoderArchitecture* known = encoder_type(config);
  const auto names = config.find("architectures"), type = config.find("model_type");
  if (!known)
    return not_covered(where + ": model_type " + (type ? short_text(*type) : "(absent)") +
                       " is no encoder that is covered; docs/reference/encoders.md lists those; export "
                       "another to ONNX (docs/guide/models.md)");
  EncoderArchitecture found = *known;
  if (!names || names->is_null()) return found;
  for (const char* end : {"Model", "ForMaskedLM", "ForPreTraining", "ForSequenceClassification"})
    if (*names == json::list({known->stem + std::string(end)})) {
      found.classifies = std::string_view(end) == "ForSequenceClassification";
      return found;
    }
  return not_covered(where + ": architecture " + short_text(*names) + " is not covered with model_type \"" +
                     known->model_type + "\"; " + known->stem + "Model, " + known->stem + "ForMaskedLM, " +
                     known->stem + "ForPreTraining and " + known->stem + "ForSequenceClassification are");
}

// Models that transformers knows and this recipe cannot describe, and what sets them apart.
struct UncoveredArchitecture {
  const char *model_type, *layers;
};
inline constexpr UncoveredArchitecture kUncovered[] = {
    {"zamba", "attention whose weights several layers share"},
    {"rwkv", "recurrent layers"},
    {"deepseek_v4", "attention to compressed keys and to those that an indexer chooses"},
    {"kimi_k3", "residual connections that attention weighs"},
    {"hy_v4", "attention to keys that an indexer chooses"},
    {"cpmant", "a learned prompt before the tokens, and biases of positions"},
    {"xlnet", "attention in both directions"},
    {"xlstm", "recurrent layers"},
};

// Advice for a model that no family covers.
inline constexpr const char* kOtherModels =
    "docs/reference/families.md lists those that are; export another to ONNX (docs/guide/models.md)";

// The architecture of the config.json object `config`; errors begin with its path `where`.
inline Result<const Architecture*> find_architecture(const json::Value& config, const std::string& where) {
  const auto names = config.find("architectures"), type = config.find("model_type");
  const bool named = names && !names->is_null();
  if (encoder_type(config))
    return not_covered(where + ": model_type " + short_text(*type) +
                       " is an encoder, which writes no text: `invar embed` and `invar rerank` run it");
  for (const UncoveredArchitecture& known : kUncovered)
    if (type && *type == known.model_type)
      return not_covered(where + ": model_type \"" + known.model_type + "\" is not covered: it has " +
                         known.layers + "; " + kOtherModels);
  std::string types;  // of the architecture
  for (const Architecture& known : kArchitectures) {
    if (named && *names != json::list({known.name})) continue;
    if (type && *type == known.model_type) return &known;
    if (named) types += (types.empty() ? "\"" : ", \"") + std::string(known.model_type) + "\"";
  }
  if (!types.empty())
    return not_covered(where + ": model_type " + (type ? short_text(*type) : "(absent)") +
                       " is not covered with architecture " + short_text(names->items[0]) + "; " + types +
                       (types.find(',') == types.npos ? " is" : " are"));
  if (named)
    return not_covered(where + ": architecture " + short_text(*names) + " is not covered; " + kOtherModels);
  return not_covered(where + ": model_type " + (type ? short_text(*type) : "(absent)") + " is not covered; " +
                     kOtherModels);
}

}  // namespace invar::checkpoint
