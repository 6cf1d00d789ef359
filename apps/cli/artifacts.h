// The artifacts that stages exchange, as options name them: token ids, tensors, results.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/text/json.h"
#include "run/function.h"

namespace invar::cli {

// The text of an option; of "-" what stands on standard input, without the line break at its end.
Result<std::string> text_from(const std::string& option, const std::string& given);
// The message of a user with this text, as JSON: a chat of one message.
Result<std::string> messages_from(const std::string& option, const std::string& given);
// The file of an option; of "-" standard input.
std::string file_from(const std::string& given);
// Prints to stdout, or writes the file.
Status deliver(const std::string& output, const std::string& text);
// Reads ids from a file: a JSON list, or an object with "tokens".
Result<json::Value> tokens_in(const std::string& file);
Result<std::vector<int32_t>> ids_of(const json::Value& list, const std::string& file);
Result<std::vector<int32_t>> tokens_from(const std::vector<int32_t>& given, const std::string& file);
// NAME=FILE.npy, each.
Result<run::Function::NamedTensors> tensors_from(const std::string& option,
                                                 const std::vector<std::string>& given);
// NAME=N, each. Names may hold '='.
Result<std::vector<std::pair<std::string, int64_t>>> sizes_from(const std::string& option,
                                                                const std::vector<std::string>& given);

}  // namespace invar::cli
