// The tables of keys and values.
#include "generate/settings/generation_config_keys.h"

namespace invar::generate {

std::span<const UnsupportedKey> unsupported_keys() {
  static constexpr UnsupportedKey kKeys[] = {{"max_time", ""},
                                             {"num_beams", "1"},
                                             {"num_beam_groups", "1"},
                                             {"diversity_penalty", "0"},
                                             {"penalty_alpha", "0"},
                                             {"dola_layers", ""},
                                             {"constraints", "[]"},
                                             {"force_words_ids", "[]"},
                                             {"top_h", "", true},
                                             {"typical_p", "1", true},
                                             {"eta_cutoff", "0", true},
                                             {"encoder_repetition_penalty", "1"},
                                             {"encoder_no_repeat_ngram_size", "0"},
                                             {"exponential_decay_length_penalty", ""},
                                             {"sequence_bias", "[]"},
                                             {"token_healing", "false"},
                                             {"guidance_scale", "1"},
                                             {"watermarking_config", ""},
                                             {"num_return_sequences", "1"},
                                             {"is_assistant", "false"},
                                             {"assistant_ensemble_weight", ""},
                                             {"cache_config", "[]"}};
  return kKeys;
}

std::span<const UnsupportedKey> implemented_keys() {
  static constexpr UnsupportedKey kKeys[] = {{"min_p", "0", true},        {"epsilon_cutoff", "0", true},
                                             {"repetition_penalty", "1"}, {"no_repeat_ngram_size", "0"},
                                             {"bad_words_ids", "[]"},     {"min_length", "0"},
                                             {"min_new_tokens", "0"},     {"forced_bos_token_id", ""},
                                             {"forced_eos_token_id", ""}, {"remove_invalid_values", "false"},
                                             {"suppress_tokens", "[]"},   {"begin_suppress_tokens", "[]"},
                                             {"stop_strings", "[]"}};
  return kKeys;
}

std::span<const std::string_view> harmless_keys() {
  static constexpr std::string_view kKeys[] = {"early_stopping",
                                               "renormalize_logits",
                                               "length_penalty",
                                               "use_cache",
                                               "max_cache_len",
                                               "low_memory",
                                               "prefill_chunk_size",
                                               "compile_config",
                                               "disable_compile",
                                               "continuous_batching_config",
                                               "output_attentions",
                                               "output_hidden_states",
                                               "output_scores",
                                               "output_logits",
                                               "return_dict_in_generate",
                                               "pad_token_id",
                                               "bos_token_id",
                                               "decoder_start_token_id",
                                               "use_mtp",
                                               "num_assistant_tokens",
                                               "num_assistant_tokens_schedule",
                                               "assistant_confidence_threshold",
                                               "prompt_lookup_num_tokens",
                                               "max_matching_ngram_size",
                                               "assistant_early_exit",
                                               "assistant_lookbehind",
                                               "target_lookbehind",
                                               "speculation_type",
                                               "_from_model_config",
                                               "_commit_hash",
                                               "_original_object_hash",
                                               "transformers_version"};
  return kKeys;
}

std::span<const std::string_view> speech_keys() {
  static constexpr std::string_view kKeys[] = {"forced_decoder_ids",
                                               "is_multilingual",
                                               "lang_to_id",
                                               "task_to_id",
                                               "language",
                                               "task",
                                               "no_timestamps_token_id",
                                               "return_timestamps",
                                               "max_initial_timestamp_index",
                                               "alignment_heads",
                                               "prev_sot_token_id"};
  return kKeys;
}

std::span<const std::string_view> harmless_search_keys() {
  static constexpr std::string_view kKeys[] = {"past_present_share_buffer", "chunk_size", "batch_size"};
  return kKeys;
}

std::span<const std::string_view> harmless_caches() {
  static constexpr std::string_view kCaches[] = {
      "dynamic", "static",         "offloaded",        "offloaded_static",        "sliding_window",
      "hybrid",  "hybrid_chunked", "offloaded_hybrid", "offloaded_hybrid_chunked"};
  return kCaches;
}

}  // namespace invar::generate
