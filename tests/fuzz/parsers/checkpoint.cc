// Fuzzes the files of a checkpoint folder. An input: config.json, generation_config.json, the
// header of model.safetensors without its length, model.safetensors.index.json.
#include <filesystem>

#include "checkpoint/config.h"
#include "checkpoint/folder.h"
#include "fuzz/parsers/parts.h"
#include "generate/settings/generation_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace invar;
  const auto parts = parts_of(data, size);
  std::error_code none;
  for (const char* name : {"generation_config.json", "model.safetensors", "model.safetensors.index.json"})
    std::filesystem::remove(folder() + "/" + name, none);
  put("config.json", parts[0]);
  if (parts.size() > 1) put("generation_config.json", parts[1]);
  if (const auto config = checkpoint::read_config(folder()); !config) expect(config.error());
  if (const auto read = generate::read_generation_config(folder() + "/"); !read) expect(read.error());
  if (const auto read = generate::read_stop_tokens(folder() + "/"); !read) expect(read.error());
  if (parts.size() < 3) return 0;
  if (parts.size() > 3) put("model.safetensors.index.json", parts[3]);
  put_weights(parts.size() > 3 ? "s.safetensors" : "model.safetensors", parts[2]);
  const auto opened = checkpoint::open_checkpoint(folder());
  if (!opened) return expect(opened.error()), 0;
  for (const auto& [name, t] : opened->tensors)
    if (t.offset + t.length > std::filesystem::file_size(folder() + "/" + t.file))
      defect("a tensor outside its file");
  return 0;
}
