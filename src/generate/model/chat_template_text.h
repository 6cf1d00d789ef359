// The chat templates of a checkpoint as one text, for the digest in receipts (spec/receipt.md
// receipt.19).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"

namespace invar::generate {

// The object of FOLDER/tokenizer_config.json is given. "" where there is no template.
Result<std::string> read_chat_template(const std::string& folder, const nlohmann::json& tokenizer_config);

}  // namespace invar::generate
