// The choices of a caller: the model and its compiled form, how it runs, how tokens are chosen.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/operation_set.h"
#include "base/profile.h"
#include "sample/processors.h"

namespace invar::generate {

// Members that options.toml has a row for are made of it.
struct ModelOptions {  // where the model and its compiled form are
#include "options/model.inc"
  bool operator==(const ModelOptions&) const = default;
};

struct ExecutionSettings {  // tuning: never changes a bit
#include "options/execution.inc"
  bool operator==(const ExecutionSettings&) const = default;
};
struct ExecutionOptions : ExecutionSettings {
  // Gets, as text, what each pass of the preparation leaves. Empty: nobody asks.
  std::function<void(std::string_view)> explain = {};
};

constexpr int64_t kMaxNewTokens = 128;  // where neither the user nor the checkpoint says it

struct ChatOptions {       // what the user adds to messages (spec/chat.md)
  std::string tools;       // a JSON list; "" = those of the messages' file
  std::string tools_file;  // what messages call it
#include "options/chat.inc"
};

// How tokens are chosen, each named as in transformers (spec/sampling.md). Absent: nobody says it.
struct GenerationSettings {
#include "options/settings.inc"
  bool operator==(const GenerationSettings&) const = default;
};

// Absent: the checkpoint's generation_config.json, else off. do_sample is false: greedy, and what
// shapes draws is not read from the checkpoint. do_sample is absent: tokens are drawn where
// temperature, top_k, top_p or min_p is given or the checkpoint says so.
struct SamplingOptions : GenerationSettings {
#include "options/sampling.inc"
};

}  // namespace invar::generate
