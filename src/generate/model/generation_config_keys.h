// The keys of generation_config.json by what they do to an answer (docs/reference/cli.md, "Defaults
// of a checkpoint").
#pragma once

#include <string_view>

namespace invar::generate {

// Keys of transformers' GenerationConfig (5.23, and those of 4.x) that change which tokens come out
// and are not implemented. They pass with null and with the value that switches them off: a number,
// a word, [] for what is empty.
struct Switch {
  std::string_view name, off;
  bool drawing = false;  // it only matters where tokens are drawn
};
inline constexpr Switch kSwitches[] = {{"min_length", "0"},
                                       {"min_new_tokens", "0"},
                                       {"max_time", ""},
                                       {"stop_strings", "[]"},
                                       {"num_beams", "1"},
                                       {"num_beam_groups", "1"},
                                       {"diversity_penalty", "0"},
                                       {"penalty_alpha", "0"},
                                       {"dola_layers", ""},
                                       {"constraints", "[]"},
                                       {"force_words_ids", "[]"},
                                       {"min_p", "0", true},
                                       {"top_h", "", true},
                                       {"typical_p", "1", true},
                                       {"epsilon_cutoff", "0", true},
                                       {"eta_cutoff", "0", true},
                                       {"repetition_penalty", "1"},
                                       {"encoder_repetition_penalty", "1"},
                                       {"no_repeat_ngram_size", "0"},
                                       {"encoder_no_repeat_ngram_size", "0"},
                                       {"bad_words_ids", "[]"},
                                       {"renormalize_logits", "false"},
                                       {"forced_bos_token_id", ""},
                                       {"forced_eos_token_id", ""},
                                       {"remove_invalid_values", "false"},
                                       {"exponential_decay_length_penalty", ""},
                                       {"suppress_tokens", "[]"},
                                       {"begin_suppress_tokens", "[]"},
                                       {"sequence_bias", "[]"},
                                       {"token_healing", "false"},
                                       {"guidance_scale", "1"},
                                       {"watermarking_config", ""},
                                       {"num_return_sequences", "1"},
                                       {"is_assistant", "false"},
                                       {"assistant_ensemble_weight", ""},
                                       {"cache_config", "[]"}};

// Keys that change no token of an answer: what is returned beside it, ids of other roles, speed,
// beams where there is one.
inline constexpr std::string_view kHarmless[] = {"early_stopping",
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

// Where keys and values are kept in memory; a quantised cache has other bits.
inline constexpr std::string_view kCaches[] = {
    "dynamic", "static",         "offloaded",        "offloaded_static",        "sliding_window",
    "hybrid",  "hybrid_chunked", "offloaded_hybrid", "offloaded_hybrid_chunked"};

}  // namespace invar::generate
