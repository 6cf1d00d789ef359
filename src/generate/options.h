// What a caller chooses: the model and its compiled form, how it runs, how tokens are chosen.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/operation_set.h"
#include "base/profile.h"

namespace invar::generate {

struct ModelOptions {      // where the model and its compiled form are
  std::string model_name;  // folder, org/name or org/name@revision of the Hugging Face hub
  std::string plan;        // an existing plan: nothing is exported or compiled
  std::string task_dir;    // where exports and plans go; "" = one per model under tasks_root
  std::string tasks_root;  // "" = $XDG_CACHE_HOME/invar/tasks
  bool colocate_tensors = false;
  // Of the plan; absent = that of an existing plan, reproducible for a new one.
  std::optional<OperationSet> operation_set;
  std::string revision = {};  // branch, tag or commit of a hub model; "" = that in the name, or main
  bool offline = false;       // nothing is downloaded
  // Of the plan; absent = that of an existing plan, fp32 for a new one.
  std::optional<Profile> profile = {};
  std::string name = {};  // what receipts call the model; "" = the name of the folder or of the hub
  bool operator==(const ModelOptions&) const = default;
};

struct ExecutionSettings {  // tuning: never changes a bit
  std::string device = "cpu";
  bool cpu_only = false;
  std::string isa;
  int threads = 0;
  int64_t prefill_chunk = 0;
  bool no_kv_cache = false;
  int partitions = 0;           // parts of a decoder; 0 = one for each device
  uint64_t weights_memory = 0;  // bytes; 0 = all
  int tensor_parallel = 1;      // ranks that divide each part
  std::string workers = {};     // processes of their own: "processes" here, or hosts; "" = none
  int worker_timeout = 60;      // seconds without a sign of life
  bool operator==(const ExecutionSettings&) const = default;
};
struct ExecutionOptions : ExecutionSettings {
  // Gets, as text, what each pass of the preparation leaves. Empty: nobody asks.
  std::function<void(std::string_view)> explain = {};
};

constexpr int64_t kMaxNewTokens = 128;  // where neither the user nor the checkpoint says it

struct ChatOptions {                  // what the user adds to messages (spec/chat.md)
  std::string tools;                  // a JSON list; "" = those of the messages' file
  std::string tools_file;             // what messages call it
  std::optional<std::string> system;  // a system message in front of the others
  std::optional<bool> enable_thinking;
  std::string date;  // 2026-11-24T15:04:05, for templates that ask; "" = the clock's
};

// How tokens are chosen, each named as in transformers (spec/sampling.md). Absent: nobody says it.
struct GenerationSettings {
  std::optional<bool> do_sample;
  std::optional<float> temperature, top_p, min_p, epsilon_cutoff, repetition_penalty;
  std::optional<int32_t> top_k, no_repeat_ngram_size, forced_bos_token_id;
  std::optional<int64_t> max_new_tokens, min_new_tokens, short_circuit_length;
  std::optional<int32_t> short_circuit_token;
  std::optional<bool> remove_invalid_values;
  std::optional<std::vector<int32_t>> forced_eos_token_id, suppress_tokens, begin_suppress_tokens;
  std::optional<std::vector<std::vector<int32_t>>> bad_words_ids;
  std::optional<std::vector<std::string>> stop_strings;
};

// Absent: the checkpoint's generation_config.json, else off. do_sample is false: greedy, and what
// shapes draws is not read from the checkpoint. do_sample is absent: tokens are drawn where
// temperature, top_k, top_p or min_p is given or the checkpoint says so.
struct SamplingOptions : GenerationSettings {
  uint64_t seed = 0;
  bool no_generation_config = false;  // take no defaults from it
};

}  // namespace invar::generate
