// Fuzzes what stands beside a checkpoint. An input: adapter_config.json, the header of
// adapter_model.safetensors without its length, then for sentence-transformers modules.json,
// 1_Pooling/config.json, sentence_bert_config.json, config_sentence_transformers.json, config.json.
#include <filesystem>

#include "checkpoint/adapter/adapter.h"
#include "checkpoint/sentence.h"
#include "fuzz/parsers/parts.h"

namespace invar {
namespace {

void try_adapter() {
  auto adapter = checkpoint::Adapter::open(folder());
  if (!adapter) return expect(adapter.error());
  if (adapter->scales().size() != adapter->modules().size()) defect("a module without a scale");
  for (const auto& [name, low] : adapter->modules()) {
    if (low.rank < 1) defect("a module without a rank: " + name);
    if (const auto found = adapter->find("model." + name, "model.", name); !found) expect(found.error());
  }
  if (const auto used = adapter->check_used(); !used) expect(used.error());
}

}  // namespace
}  // namespace invar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace invar;
  constexpr const char* kFiles[] = {"modules.json", "1_Pooling/config.json", "sentence_bert_config.json",
                                    "config_sentence_transformers.json", "config.json"};
  const auto parts = parts_of(data, size);
  std::error_code none;
  std::filesystem::create_directory(folder() + "/1_Pooling", none);
  put(checkpoint::kAdapterConfig, parts[0]);
  put_weights(checkpoint::kAdapterFile, parts.size() > 1 ? parts[1] : "{}");
  for (size_t i = 0; i < std::size(kFiles); ++i) {
    std::filesystem::remove(folder() + "/" + kFiles[i], none);
    if (parts.size() > i + 2) put(kFiles[i], parts[i + 2]);
  }
  try_adapter();
  if (const auto read = checkpoint::read_sentence_config(folder()); !read)
    expect(read.error());
  else if (read->pooling.empty() || read->max_length < 0)
    defect("no pooling, or fewer than no tokens");
  if (const auto length = checkpoint::read_max_length(folder()); !length) expect(length.error());
  if (const auto encoder = checkpoint::read_text_encoder(folder()); !encoder) expect(encoder.error());
  return 0;
}
