#include "checkpoint/gguf.h"
#include "checkpoint/gguf/gguf_model.h"
#include "num/env.h"

namespace invar::checkpoint {

Result<GgufFolder> read_gguf(const std::string& path) {
  const num::ArithmeticEnv env;
  INVAR_TRY(const Gguf gguf, open_gguf(path));
  INVAR_TRY(const json::Value config, gguf_config(gguf));
  GgufFolder folder;
  INVAR_TRY(folder.texts, gguf_tokenizer(gguf));
  folder.texts["config.json"] = json::dump(config, {.indent = 2}) + "\n";
  folder.files = gguf.files;
  return folder;
}

}  // namespace invar::checkpoint
