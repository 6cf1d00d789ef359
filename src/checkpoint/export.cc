// The export: checks everything, places the weight files, then writes the model.
#include <algorithm>
#include <filesystem>
#include <set>
#include <span>
#include <variant>

#include "base/file/file.h"
#include "checkpoint/adapter/adapter.h"
#include "checkpoint/adapter/merge.h"
#include "checkpoint/architecture.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/config.h"
#include "checkpoint/config_reading/encoder_config.h"
#include "checkpoint/config_reading/seq2seq_config.h"
#include "checkpoint/files/json.h"
#include "checkpoint/files/mxfp4.h"
#include "checkpoint/files/weight_files.h"
#include "checkpoint/folder.h"
#include "checkpoint/recipes/decoder_graph.h"
#include "checkpoint/recipes/encoder/encoder_graph.h"
#include "checkpoint/recipes/seq2seq/seq2seq_graph.h"
#include "num/env.h"
#include "onnx/error_text.h"
#include "onnx/onnx.h"
#include "onnx/proto.h"
#include "onnx/recipe.h"

namespace invar::checkpoint {
namespace {

namespace fs = std::filesystem;

// Replacing an earlier export is fine. Replacing a file that invar did not write is not.
Result<bool> has_earlier_export(const std::string& model) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(model, error))) return false;
  auto earlier = onnx::parse_model(model);
  if (!earlier || earlier->producer_name() != onnx::kProducer)
    return bad_input(model + ": exists and was not made by invar export; remove it or choose another folder");
  return true;
}

bool same_content(const fs::path& a, const fs::path& b) {
  const auto left = MappedFile::open(a.string()), right = MappedFile::open(b.string());
  return left && right && left->text() == right->text();
}

Status link_or_copy_weights(const fs::path& source, const fs::path& path, bool earlier_export,
                            const ExportOptions& options) {
  std::error_code error;
  const fs::file_status existing = fs::symlink_status(path, error);
  const fs::path target = fs::canonical(source, error);
  if (error) return bad_input("cannot find " + onnx::quote(source.string()) + ": " + error.message());
  if (fs::is_symlink(existing)) {
    // An export into the checkpoint's own folder keeps its symlinks, which a Hugging Face cache
    // consists of.
    const bool own = fs::equivalent(source.parent_path(), path.parent_path(), error);
    if (own && !options.colocate_tensors) return {};
  } else if (fs::exists(existing)) {
    if (fs::equivalent(target, path, error)) return {};  // the file itself
    // An interrupted export leaves complete copies without a model. They are reused.
    if (!earlier_export && same_content(target, path)) return {};
    if (!earlier_export || !fs::is_regular_file(existing))
      return bad_input(
          path.string() +
          ": is in the way and no earlier export put it there; remove it or choose another folder");
  }
  return options.colocate_tensors ? make_copy(target.string(), path.string())
                                  : make_link(target.string(), path.string());
}

using Settings = std::variant<Decoder, Encoder, Seq2Seq>;

Result<Settings> settings_of(const std::string& folder, bool long_context, Quantization& packed) {
  const std::string path = folder + "/config.json";
  INVAR_TRY(const std::string text, read_file(path));
  INVAR_TRY(const json::Value config, parse_json(text, path));
  if (encoder_type(config)) {
    if (long_context) return bad_input(path + ": an encoder has no LongRoPE: leave --long-context out");
    INVAR_TRY(Encoder encoder, read_encoder_config(config, folder));
    return Settings(std::move(encoder));
  }
  const auto architecture = find_architecture(config, path);
  if (architecture && (*architecture)->has_encoder) {
    INVAR_TRY(Seq2Seq model, read_seq2seq_config(config, folder));
    return Settings(std::move(model));
  }
  INVAR_TRY(Decoder decoder, read_config(folder, long_context, &packed));
  return Settings(std::move(decoder));
}

}  // namespace

Status check_recipe(const std::string& folder) {
  const num::ArithmeticEnv env;
  Quantization packed;
  INVAR_CHECK_OK(settings_of(folder, false, packed));
  return {};
}

namespace {

Result<onnx::Graph> graph_of(const Settings& settings, const Checkpoint& checkpoint, bool prediction_head) {
  const auto* decoder = std::get_if<Decoder>(&settings);
  if (prediction_head && !decoder)
    return not_covered(checkpoint.folder + ": the model is no decoder, so it has no head for several tokens");
  if (prediction_head) return prediction_head_graph(*decoder, checkpoint);
  if (const auto* model = std::get_if<Seq2Seq>(&settings)) return seq2seq_graph(*model, checkpoint);
  const auto* encoder = std::get_if<Encoder>(&settings);
  return encoder ? encoder_graph(*encoder, checkpoint) : decoder_graph(*decoder, checkpoint);
}

}  // namespace

// Opens the adapter and takes its tensors into the checkpoint.
static Status add_adapter(const std::string& folder, const Settings& settings, Checkpoint& checkpoint) {
  const auto* d = std::get_if<Decoder>(&settings);
  if (!d)
    return not_covered(checkpoint.folder +
                       ": the model is no decoder, and adapters of others are not covered");
  INVAR_TRY(Adapter adapter, Adapter::open(folder));
  INVAR_CHECK_OK(adapter.place(checkpoint, {d->names.embedding, d->names.head, d->tied}));
  checkpoint.adapter = std::make_shared<Adapter>(std::move(adapter));
  return {};
}

// Adds what the adapter changes in the program (weights.24).
static void bind_adapter(const Adapter& adapter, onnx::Graph& graph) {
  const std::vector<float> scales = adapter.scales();
  if (scales.empty()) return;
  std::string words;
  const bool one = std::ranges::all_of(scales, [&](float s) { return s == scales[0]; });
  for (const float s : one ? std::span(scales).first(1) : std::span(scales))
    words += (words.empty() ? "" : " ") + onnx::parameter(s);
  onnx::Recipe recipe = onnx::recipe_of(graph.metadata);
  recipe.parameters["lora_scale"] = words;
  onnx::add_recipe(recipe, graph.metadata);
}

Result<std::string> merge_adapter(const std::string& folder, const std::string& adapter,
                                  const std::string& out) {
  const num::ArithmeticEnv env;
  Quantization packed;
  INVAR_TRY(const Settings settings, settings_of(folder, false, packed));
  INVAR_TRY(const Checkpoint base, open_checkpoint(folder));
  Checkpoint placed = base;
  INVAR_CHECK_OK(replace_packed(placed, packed));
  INVAR_CHECK_OK(add_adapter(adapter, settings, placed));
  INVAR_CHECK_OK(graph_of(settings, placed, false));  // every check of an adapter that is run
  const auto& decoder = std::get<Decoder>(settings);
  INVAR_CHECK_OK(write_merged(base, placed, decoder.transposed_weights, decoder.names.head, out));
  return out;
}

Result<Digest> adapter_digest(const std::string& folder) {
  INVAR_TRY(const Adapter adapter, Adapter::open(folder));
  return adapter.digest();
}

Result<std::string> export_checkpoint(const std::string& folder, const std::string& out,
                                      const ExportOptions& options) {
  const num::ArithmeticEnv env;  // for parsing numbers and computing frequencies
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return bad_input("cannot export " + onnx::quote(folder) + ": not a folder");
  // All checks come before the first write.
  Quantization packed;
  INVAR_TRY(const Settings settings, settings_of(folder, options.long_context, packed));
  INVAR_TRY(Checkpoint checkpoint, open_checkpoint(folder));
  INVAR_CHECK_OK(replace_packed(checkpoint, packed));
  const auto* decoder = std::get_if<Decoder>(&settings);
  if (decoder && decoder->experts.mxfp4) {
    INVAR_CHECK_OK(replace_mxfp4(checkpoint));
  }
  if (options.keep_packed) keep_packed(checkpoint);
  std::vector<TernaryTensor> ternary;
  if (decoder && decoder->ternary != Ternary::none) ternary = replace_ternary(checkpoint);
  if (!options.adapter.empty()) {
    INVAR_CHECK_OK(add_adapter(options.adapter, settings, checkpoint));
  }
  INVAR_TRY(onnx::Graph graph, graph_of(settings, checkpoint, options.prediction_head));
  if (checkpoint.adapter) bind_adapter(*checkpoint.adapter, graph);
  const fs::path base(out.empty() ? "." : out);
  const std::string model = (base / "model.onnx").string();
  INVAR_TRY(const bool earlier, has_earlier_export(model));
  fs::create_directories(base, error);
  if (!fs::is_directory(base, error))
    return bad_input("cannot create the folder " + onnx::quote(base.string()) + ": " + error.message());
  for (const std::string& file : checkpoint.files)
    INVAR_CHECK_OK(link_or_copy_weights(fs::path(folder) / file, base / file, earlier, options));
  if (checkpoint.adapter) {
    INVAR_CHECK_OK(link_or_copy_weights(fs::path(options.adapter) / kAdapterFile, base / kAdapterFile,
                                        earlier, options));
  }
  INVAR_CHECK_OK(write_ternary_as_bf16(folder, ternary, (base / kTernaryFile).string()));
  std::set<uint64_t> made, packed_in_place;
  for (const onnx::TensorRef& t : graph.initializers) {
    if (t.file == kMadeFile) made.insert(t.offset);
    if (weights::is_index(t.file)) packed_in_place.insert(t.offset);
  }
  INVAR_CHECK_OK(write_made(checkpoint, made, (base / kMadeFile).string()));
  INVAR_CHECK_OK(write_index(checkpoint, packed_in_place, (base / weights::kIndexFile).string()));
  INVAR_CHECK_OK(write(graph, model));  // last, so that a model never lacks its weights
  return model;
}

}  // namespace invar::checkpoint
