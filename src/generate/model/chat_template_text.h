// The chat templates of a checkpoint, and the one text that stands for them in receipts
// (spec/receipt.md receipt.19).
#pragma once

#include <string>

#include "base/status.h"
#include "base/text/json.h"
#include "prompt/chat.h"

namespace invar::generate {

// The objects of FOLDER/tokenizer_config.json and, where that has no added_tokens_decoder, of
// special_tokens_map.json are given.
Result<prompt::ChatTemplates> read_chat_templates(const std::string& folder,
                                                  const json::Value& tokenizer_config,
                                                  const json::Value& special_tokens_map);
// "" where there is no template.
std::string chat_template_text(const prompt::ChatTemplates&);

}  // namespace invar::generate
