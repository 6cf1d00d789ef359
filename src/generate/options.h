// What a caller chooses: the model and its compiled form, how it runs, how tokens are chosen.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/operation_set.h"

namespace invar::generate {

struct ModelOptions {      // where the model and its compiled form are
  std::string model_name;  // folder, or org/name in the local Hugging Face cache
  std::string plan;        // an existing plan: nothing is exported or compiled
  std::string task_dir;    // where exports and plans go; "" = one per model under tasks_root
  std::string tasks_root;  // "" = $XDG_CACHE_HOME/invar/tasks
  bool colocate_tensors = false;
  // Of the plan; absent = that of an existing plan, reproducible for a new one.
  std::optional<OperationSet> operation_set;
};

struct ExecutionOptions {  // tuning: never changes a bit
  std::string device = "cpu";
  bool cpu_only = false;
  std::string isa;
  int threads = 0;
  int64_t prefill_chunk = 0;
  bool no_kv_cache = false;
  // Gets, as text, what each pass of the preparation leaves. Empty: nobody asks.
  std::function<void(std::string_view)> explain;
};

constexpr int64_t kMaxNewTokens = 128;  // where neither the user nor the checkpoint says it

struct ChatOptions {                  // what the user adds to messages (spec/chat.md)
  std::string tools;                  // a JSON list; "" = those of the messages' file
  std::string tools_file;             // what messages call it
  std::optional<std::string> system;  // a system message in front of the others
  std::optional<bool> enable_thinking;
  std::string date;  // 2026-11-24T15:04:05, for templates that ask; "" = the clock's
};

struct SamplingOptions {  // absent = the checkpoint's generation_config.json, else greedy
  std::optional<int64_t> max_new_tokens;
  std::optional<float> temperature, top_p;
  std::optional<int32_t> top_k;
  uint64_t seed = 0;
  // false: greedy, and nothing of sampling is read from the checkpoint. true: tokens are drawn.
  // Absent: drawn where temperature, top_k or top_p is given or the checkpoint says so.
  std::optional<bool> do_sample;
  bool no_generation_config = false;  // take no defaults from it
};

}  // namespace invar::generate
