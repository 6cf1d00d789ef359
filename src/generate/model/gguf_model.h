// GGUF files as models.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "generate/model/model_folder.h"

namespace invar::generate {

// The model of a GGUF file: a folder of the user's cache with the texts that the file stands for
// and links to it and its other parts, made again where it is not what the file says.
Result<ModelLocation> open_gguf_model(const std::string& path);
// The one GGUF model of a folder: its file, or the first part of it. bad_input: there are several;
// the message lists them by size.
Result<std::string> gguf_in(const std::string& folder);

}  // namespace invar::generate
