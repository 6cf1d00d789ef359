// The configuration of an adapter, and which module each of its tensors belongs to.
#include "checkpoint/adapter/adapter.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/file/file.h"
#include "checkpoint/architecture.h"
#include "checkpoint/config_reading/config_reader.h"
#include "checkpoint/files/json.h"
#include "onnx/error_text.h"
#include "onnx/tensor.h"
#include "prompt/regex/regex.h"

namespace invar::checkpoint {
namespace {

namespace fs = std::filesystem;
using json::Value;

constexpr const char* kMergeIt =
    ": merge the adapter into its model with merge_and_unload() of peft, and save that with "
    "save_pretrained('FOLDER')";
constexpr std::string_view kA = ".lora_A.weight", kB = ".lora_B.weight", kBase = ".base_layer.";
constexpr const char* kAllLinear = "all-linear";
constexpr int64_t kMostSteps = 1 << 20;  // of a pattern on one name

// Whether the pattern matches the whole text. It is one of Python's re.
Result<bool> matches(const std::string& pattern, const std::string& text, const std::string& where) {
  auto regex = prompt::Regex::pattern(pattern);
  if (regex) regex = prompt::Regex::pattern("^(?:" + pattern + ")$");
  if (!regex)
    return Error{regex.error().code,
                 where + ": pattern " + onnx::quote(pattern) + ": " + regex.error().message};
  prompt::Regex::Scratch scratch;
  scratch.steps = kMostSteps;
  const auto found = regex->find(text, 0, scratch);
  if (!found && scratch.steps < 0)
    return not_covered(where + ": pattern " + onnx::quote(pattern) + " takes too many steps on " +
                       onnx::quote(text));
  return found && found->begin == 0 && found->end == text.size();
}

// Whether the path is `end`, or ends with it behind a point.
bool ends_with_path(std::string_view path, std::string_view end) {
  return path == end ||
         (path.size() > end.size() && path.ends_with(end) && path[path.size() - end.size() - 1] == '.');
}

std::vector<std::string> parts_of(const std::string& path);

// Whether what stands before `end` are names of a language model within larger ones, and not those
// of a part that reads pictures or sound.
bool is_of_text(const std::string& path, const std::string& end) {
  const std::vector<std::string> before = parts_of(path.substr(0, path.size() - end.size()));
  return std::ranges::all_of(before, [](const std::string& part) {
    return std::ranges::count(std::vector<std::string>{"", "model", "language_model", "text_model",
                                                       "transformer", "gpt_neox", "decoder", "backbone"},
                              part) > 0;
  });
}

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts(1);
  for (const char c : path) {
    if (c == '.')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() <= 9 && text.find_first_not_of("0123456789") == text.npos;
}

// A list of names; one name is a list where `one` says so.
std::vector<std::string> names_of(ConfigReader& r, const char* key, bool one) {
  const Value* v = r.find(key);
  std::vector<std::string> names;
  if (!v) return names;
  if (v->is_string() && one) return {v->text};
  if (!v->is_array()) r.reject(onnx::quote(key) + " = " + short_text(*v) + " is no list of names");
  for (const Value& name : v->items) {
    if (!name.is_string() || name.text.empty())
      r.reject(onnx::quote(key) + ": " + short_text(name) + " is no name of a module");
    names.push_back(name.text);
  }
  return names;
}

ModulePattern pattern_of(ConfigReader& r, const char* key) {
  const Value* v = r.find(key);
  if (v && v->is_string()) return {false, {v->text}};
  return {true, names_of(r, key, false)};
}

Result<bool> names(const ModulePattern& pattern, const std::string& module, const std::string& where) {
  if (!pattern.is_list) return matches(pattern.names[0], module, where);
  return std::ranges::any_of(pattern.names, [&](const auto& end) { return ends_with_path(module, end); });
}

// What a PEFT pattern of ranks or scales says of the module; absent: nothing.
template <class T>
Result<const T*> value_for(const std::vector<std::pair<std::string, T>>& values, const std::string& module,
                           const std::string& where) {
  for (const auto& [key, value] : values) {
    INVAR_TRY(const bool fits, matches("(?:.*\\.)?(?:" + key + ")", module, where));
    if (fits) return &value;
  }
  return static_cast<const T*>(nullptr);
}

// The keys that change what an adapter computes must say nothing.
void read_kind(ConfigReader& r, const Value& config) {
  const std::string kind = r.text("peft_type", "LORA");
  if (kind != "LORA") r.refuse("'peft_type' = " + json::quote(kind) + " is not covered; LORA is" + kMergeIt);
  const std::string task = r.text("task_type", "CAUSAL_LM");
  if (task != "CAUSAL_LM") r.refuse("'task_type' = " + json::quote(task) + " is not covered; CAUSAL_LM is");
  if (const std::string bias = r.text("bias", "none"); bias != "none")
    r.refuse("'bias' = " + json::quote(bias) + " is not covered; none is" + kMergeIt);
  // Methods that change the weights of the base model when they begin.
  if (const Value* how = r.find("init_lora_weights"); how && how->is_string())
    for (const char* method : {"pissa", "olora", "corda", "loftq", "lora_ga", "kasa"})
      if (how->text.starts_with(method))
        r.refuse("'init_lora_weights' = " + short_text(*how) +
                 " changes the weights of the base model, and is not "
                 "covered: save the adapter with path_initial_model_for_weight_conversion of peft");
  // Without effect on a trained adapter: names, training, how layers store their weights.
  for (const char* key :
       {"auto_mapping", "base_model_name_or_path", "revision", "inference_mode", "lora_dropout",
        "peft_version", "fan_in_fan_out", "megatron_core", "qalora_group_size", "init_lora_weights",
        "runtime_config", "eva_config", "corda_config", "loftq_config", "lora_ga_config"})
    r.find(key);
  for (const auto& [key, value] : config.members) {
    if (r.was_read(key.c_str())) continue;
    const bool neutral =
        value.is_null() || value == false || ((value.is_array() || value.is_object()) && value.empty());
    if (key == "trainable_token_indices" && !neutral)
      r.refuse("'trainable_token_indices' is not covered: the table of tokens has other rows" +
               std::string(kMergeIt));
    if (key == "use_dora" && !neutral) r.refuse("'use_dora': DoRA is not covered" + std::string(kMergeIt));
    if (!neutral) r.refuse(onnx::quote(key) + " = " + short_text(value) + " is not covered" + kMergeIt);
  }
}

}  // namespace

Status Adapter::read_config() {
  const std::string path = config_file();
  std::error_code error;
  if (!fs::exists(path, error))
    return bad_input(folder_ + ": no " + kAdapterConfig + " in it: give the folder of an adapter of peft");
  INVAR_TRY(const std::string text, read_file(path));
  INVAR_TRY(const Value config, parse_json(text, path));
  ConfigReader r(config, path);
  rank_ = r.size("r", 0);
  alpha_ = r.positive("lora_alpha", 0);
  root_ = r.flag("use_rslora");
  targets_ = pattern_of(r, "target_modules"), excluded_ = pattern_of(r, "exclude_modules");
  saved_modules_ = names_of(r, "modules_to_save", false);
  layers_pattern_ = names_of(r, "layers_pattern", true);
  if (const Value* layers = r.find("layers_to_transform"))
    for (const Value& layer : layers->is_array() ? layers->items : std::vector<Value>{*layers}) {
      if (!layer.is_unsigned())
        r.reject("'layers_to_transform': " + short_text(layer) + " is no number of a layer");
      layers_.push_back(layer.to_int64());
    }
  for (const char* key : {"rank_pattern", "alpha_pattern"}) {
    const Value* v = r.find(key);
    if (!v) continue;
    if (!v->is_object()) r.reject(onnx::quote(key) + " = " + short_text(*v) + " is not an object");
    ConfigReader values(*v, path + ": " + key);
    // The first that fits counts, so the order of the file does.
    INVAR_TRY(const Value as_written, json::read(text, path, json::Order::as_written));
    for (const auto& [name, value] : as_written.get(key).members) {
      if (std::string_view(key) == "rank_pattern")
        ranks_.emplace_back(name, values.size(name.c_str(), 0));
      else
        alphas_.emplace_back(name, values.positive(name.c_str(), 0));
    }
    if (!values.status()) r.fail(values.status().error());
  }
  read_kind(r, config);
  if (targets_.names.empty() && saved_modules_.empty()) r.reject("'target_modules' names no module");
  return r.status();
}

Status Adapter::add_tensor(const std::string& name, const StoredTensor& stored) {
  const std::string where = tensor_file() + ": tensor " + onnx::quote(name);
  if (!name.starts_with(kAdapterPrefix))
    return bad_input(where + " does not begin with " + std::string(kAdapterPrefix) + ", as those of peft do");
  const std::string path = name.substr(kAdapterPrefix.size());
  for (const auto& [part, what] : {std::pair{".lora_magnitude_vector", "of DoRA"},
                                   {".lora_embedding_", "of an embedding"},
                                   {".lora_B.bias", "a bias"},
                                   {".token_adapter.", "of trainable tokens"}})
    if (path.find(part) != path.npos)
      return not_covered(where + " is " + what + ", which is not covered" + kMergeIt);
  if (stored.dtype != "F32" && stored.dtype != "BF16" && stored.dtype != "F16")
    return not_covered(where + " is stored as " + stored.dtype +
                       ", which is not covered; F32, BF16 and F16 are");
  CheckpointTensor tensor{stored, kAdapterFile};
  tensor.folder = folder_;
  tensors_.emplace(name, std::move(tensor));
  const auto of = [&](std::string_view end) -> LowRank& {
    return modules_[path.substr(0, path.size() - end.size())];
  };
  if (path.ends_with(kA))
    of(kA).a = name;
  else if (path.ends_with(kB))
    of(kB).b = name;
  else if (const size_t at = path.find(kBase); at != path.npos)
    replaced_[path.substr(0, at + 1) + path.substr(at + kBase.size())] = name;
  else
    replaced_[path] = name;
  return {};
}

Status Adapter::read_tensors() {
  const std::string path = tensor_file(), where = config_file();
  std::error_code error;
  if (!fs::exists(path, error))
    return bad_input(
        folder_ + ": no " + kAdapterFile + " in it" +
        (fs::exists(folder_ + "/adapter_model.bin", error)
             ? ", only adapter_model.bin: load it with peft, and save_pretrained('FOLDER') writes "
               "safetensors"
             : ""));
  INVAR_TRY(const auto tensors, read_safetensors_header(path));
  for (const auto& [name, stored] : tensors) INVAR_CHECK_OK(add_tensor(name, stored));
  for (auto& [module, low] : modules_) {
    if (low.a.empty() || low.b.empty())
      return bad_input(
          path + ": tensor " +
          onnx::quote(std::string(kAdapterPrefix) + module + std::string(low.a.empty() ? kA : kB)) +
          " is missing, whose other half is there");
    INVAR_TRY(const bool named, targets(module));
    if (!named)
      return bad_input(path + ": tensor " + onnx::quote(low.a) +
                       " belongs to a module that target_modules of " + where + " does not name");
    INVAR_TRY(const int64_t* rank, value_for(ranks_, module, where));
    INVAR_TRY(const double* alpha, value_for(alphas_, module, where));
    low.rank = rank ? *rank : rank_;
    const auto r = static_cast<double>(low.rank);
    low.scale = static_cast<float>((alpha ? *alpha : alpha_) / (root_ ? std::sqrt(r) : r));
    if (!(low.scale > 0) || !std::isfinite(low.scale))
      return bad_input(where + ": 'lora_alpha' of " + onnx::quote(module) + " gives a scale beyond binary32");
  }
  if (modules_.empty() && replaced_.empty()) return bad_input(path + ": no tensor is in it");
  return {};
}

Result<Adapter> Adapter::open(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return bad_input("adapter " + onnx::quote(folder) + ": no such folder: give a folder with " +
                     kAdapterConfig + " and " + kAdapterFile);
  Adapter adapter;
  adapter.folder_ = folder;
  INVAR_CHECK_OK(adapter.read_config());
  INVAR_CHECK_OK(adapter.read_tensors());
  return adapter;
}

Result<Digest> Adapter::digest() const {
  Sha256 both;
  for (const std::string& path : {config_file(), tensor_file()}) {
    INVAR_TRY(const MappedFile file, MappedFile::open(path));
    const Digest one = sha256(file.text());
    both.update(one.data(), one.size());
  }
  return both.finish();
}

Result<bool> Adapter::targets(const std::string& module) const {
  const std::string where = config_file();
  INVAR_TRY(const bool excluded, names(excluded_, module, where));
  if (excluded) return false;
  for (const std::string& saved : saved_modules_)
    if (ends_with_path(module, saved)) return false;
  if (!targets_.is_list && targets_.names[0] == kAllLinear) return true;
  INVAR_TRY(const bool named, names(targets_, module, where));
  if (!named || !targets_.is_list || layers_.empty()) return named;
  if (std::ranges::count(targets_.names, module) > 0) return true;
  // The first number behind two names, or behind one of the names of layers_pattern, is the
  // layer's.
  const std::vector<std::string> parts = parts_of(module);
  for (size_t i = 1; i + 1 < parts.size(); ++i) {
    const bool behind =
        layers_pattern_.empty() ? i >= 2 : std::ranges::count(layers_pattern_, parts[i - 1]) > 0;
    if (behind && is_number(parts[i])) return std::ranges::count(layers_, std::stoll(parts[i])) > 0;
  }
  return false;
}

Status Adapter::place(Checkpoint& checkpoint, const Tables& tables) {
  if (std::ranges::count(checkpoint.files, kAdapterFile) > 0)
    return bad_input(checkpoint.folder + ": " + kAdapterFile + " is a file of the model itself");
  const auto has_head = [&] {
    return std::ranges::any_of(
        checkpoint.tensors, [&](const auto& t) { return ends_with_path(t.first, tables.head + ".weight"); });
  };
  const bool had_head = has_head();
  bool embedding = false;
  for (const auto& [path, name] : replaced_) {
    const CheckpointTensor& tensor = tensors_.at(name);
    const std::string where = tensor_file() + ": tensor " + onnx::quote(name);
    auto own = checkpoint.tensors.find(path);
    for (auto it = checkpoint.tensors.begin(); own == checkpoint.tensors.end() && it != own; ++it)
      if (ends_with_path(path, it->first) || ends_with_path(it->first, path)) own = it;
    const bool is_table =
        path == tables.head + ".weight" || ends_with_path(path, tables.embedding + ".weight");
    const bool saved = is_table || std::ranges::any_of(saved_modules_, [&](const std::string& module) {
                         return path.substr(0, path.rfind('.')).ends_with(module);  // as peft does
                       });
    if (!saved)
      return bad_input(where + " belongs to no module that target_modules or modules_to_save of " +
                       config_file() + " names");
    const bool new_head = own == checkpoint.tensors.end() && tables.tied && path == tables.head + ".weight";
    if (own == checkpoint.tensors.end() && !new_head)
      return bad_input(where + ": the model " + checkpoint.folder + " has no tensor " + onnx::quote(path));
    if (!new_head && own->second.shape != tensor.shape)
      return not_covered(where + " has shape " + onnx::shape_text(tensor.shape) + ", and that of the model " +
                         checkpoint.folder + " " + onnx::shape_text(own->second.shape) +
                         ": another model's adapter, or one with a resized vocabulary, which is not covered" +
                         kMergeIt);
    embedding = embedding || ends_with_path(path, tables.embedding + ".weight");
    checkpoint.tensors[new_head ? path : own->first] = tensor;
  }
  for (const std::string& module : saved_modules_)
    for (const auto& [name, tensor] : checkpoint.tensors)
      if (tensor.folder.empty() && name.ends_with(module + ".weight"))
        return bad_input(tensor_file() + ": the tensor of " + onnx::quote(name.substr(0, name.rfind('.'))) +
                         " is missing: 'modules_to_save' of " + config_file() + " names its module");
  if (tables.tied && embedding && !had_head && !has_head())
    return not_covered(tensor_file() +
                       ": the table of tokens is replaced, and the model's table of logits is the "
                       "same tensor: which of them counts is not said" +
                       kMergeIt);
  for (const auto& [name, tensor] : tensors_)
    if (name.ends_with(kA) || name.ends_with(kB)) checkpoint.tensors.emplace(name, tensor);
  return {};
}

Result<const LowRank*> Adapter::find(const std::string& tensor, const std::string& prefix,
                                     const std::string& spelled) {
  const std::string rest = tensor.substr(prefix.size());
  auto found = modules_.find(tensor);
  if (found == modules_.end()) found = modules_.find(spelled + rest);
  for (auto it = modules_.begin(); found == modules_.end() && it != modules_.end(); ++it)
    if (ends_with_path(it->first, rest) && is_of_text(it->first, rest)) found = it;
  if (found != modules_.end()) {
    used_[found->first] = tensor;
    return &found->second;
  }
  if (!targets_.is_list && targets_.names[0] == kAllLinear) return static_cast<const LowRank*>(nullptr);
  INVAR_TRY(const bool named, targets(spelled + rest));
  if (named)
    return bad_input(tensor_file() + ": tensor " +
                     onnx::quote(std::string(kAdapterPrefix) + spelled + rest + std::string(kA)) +
                     " is missing: 'target_modules' of " + config_file() + " names its module");
  return static_cast<const LowRank*>(nullptr);
}

Status Adapter::check_used() const {
  for (const auto& [module, low] : modules_)
    if (!used_.contains(module))
      return not_covered(tensor_file() + ": tensor " + onnx::quote(low.a) +
                         ": the model has no linear layer " + onnx::quote(module) +
                         " that an adapter may change: another model's adapter, or matrices "
                         "of experts" +
                         kMergeIt);
  return {};
}

std::vector<float> Adapter::scales() const {
  std::vector<float> all;
  for (const auto& [module, low] : modules_) all.push_back(low.scale);
  return all;
}

}  // namespace invar::checkpoint
