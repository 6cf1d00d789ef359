// Exports a Hugging Face checkpoint folder as an ONNX model with external weights.
#pragma once

#include <string>

#include "base/hash/sha256.h"
#include "base/status.h"

namespace invar::checkpoint {

struct ExportOptions {
  bool colocate_tensors = false;  // copy the weight files beside the .onnx instead of linking them
  // Of a model with LongRoPE: the program of prompts beyond the original length (decoder.29).
  bool long_context = false;
  // Tensors that lie in blocks of a format stay there, and weights/weight_file.h reads them: other
  // programs cannot.
  bool keep_packed = false;
  bool prediction_head = false;  // the head for several tokens alone (recipes/decoder_graph.h)
  std::string adapter = {};      // the folder of an adapter of peft (weights.23); "": none
};
// Writes OUT/model.onnx and links or copies the weight files beside it (onnx.4 to onnx.9). Returns
// the path of the model. An unsupported architecture or option is refused by name (not_covered).
Result<std::string> export_checkpoint(const std::string& folder, const std::string& out,
                                      const ExportOptions& = {});
// What export_checkpoint would say of FOLDER/config.json, without a look at the weights.
Status check_recipe(const std::string& folder);

// Writes the checkpoint with the adapter merged into its weights to the folder OUT, which is new or
// empty (weights.26). Returns OUT.
Result<std::string> merge_adapter(const std::string& folder, const std::string& adapter,
                                  const std::string& out);
// The digest of an adapter's files (receipt.44), which are read whole, and checked as far as they
// say what they are.
Result<Digest> adapter_digest(const std::string& folder);

}  // namespace invar::checkpoint
