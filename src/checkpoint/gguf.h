// A GGUF file of llama.cpp as the texts of a checkpoint folder (spec/weights.md weights.11): who
// puts them into a folder, with links to the files, has a checkpoint.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace invar::checkpoint {

struct GgufFolder {
  std::map<std::string, std::string> texts;  // config.json, the tokenizer's files, by name
  std::vector<std::string> files;            // names of the file and its other parts, in its folder
};
// Reads the file up to its tensors. bad_input: it is damaged; not_covered: an architecture, a
// tokenizer or a key that changes results and that no family has.
Result<GgufFolder> read_gguf(const std::string& path);

}  // namespace invar::checkpoint
