// The validated config.json of an encoder-decoder (spec/seq2seq.md).
#pragma once

#include <string>

#include "base/status.h"
#include "base/text/json.h"
#include "checkpoint/recipes/seq2seq/seq2seq.h"

namespace invar::checkpoint {

// `object` is the content of FOLDER/config.json, whose architecture has an encoder.
Result<Seq2Seq> read_seq2seq_config(const json::Value& object, const std::string& folder);

}  // namespace invar::checkpoint
