// Structured outputs of a model: what an answer has to fit, over the model's vocabulary
// (spec/grammar.md).
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "generate/model/model_folder.h"
#include "generate/options.h"
#include "receipt/receipt.h"
#include "sample/processors.h"

namespace invar::generate {

// Makes the constraint that structured_outputs says, if it says one. not_covered: the tokenizer's
// tokens have no bytes of their own.
Status bind_constraint(const ModelFolder&, sample::Processors&);
// The same behind the reasoning of a chat, where this model's template has some (grammar.16).
// `text` is the prompt.
Status bind_behind_reasoning(const ModelFolder&, const std::string& text, sample::Processors&);
// Bounds the reasoning that a prompt opens: behind so many tokens </think> comes (sampling.33).
// `input` is the chat that the text is made of, "" of no chat; `max_new_tokens` the most tokens of
// the answer, whose form is bound already.
Status bound_reasoning(const ModelFolder&, const std::string& text, const std::string& input, int64_t most,
                       int64_t max_new_tokens, sample::Processors&);
// The stop tokens of a run of this model with the settings that a receipt binds (receipt.20).
std::vector<int32_t> stop_tokens_for(const ModelFolder&, const receipt::Receipt&);
// The option of a file with a schema, or of an object of JSON, as structured_outputs.
Status take_json_options(const std::string& schema_path, bool object, SamplingOptions&);
// The texts around a call of a tool, as this model's template writes them (grammar.14).
struct CallSyntax {
  std::string begin, end;
};
CallSyntax call_syntax(const ModelFolder&);

}  // namespace invar::generate
