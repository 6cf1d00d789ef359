// resolve(), obtain(), download(): a model's name -> its folder.
#include <algorithm>
#include <filesystem>

#include "base/file/file.h"
#include "base/text/json.h"
#include "base/text/size_text.h"
#include "generate/model/gguf_model.h"
#include "generate/model/model.h"
#include "generate/model/model_folder.h"
#include "generate/model/shipped_model.h"
#include "hub/environment.h"

namespace invar::generate {
namespace {

namespace fs = std::filesystem;

// A name of a model that is a file says what the person has, and what to do with it.
Status check_no_file(const std::string& name) {
  std::error_code ec;
  if (name.ends_with(".gguf") && !fs::exists(name, ec))
    return no_model(name,
                    "no such file: give a GGUF file, a folder with config.json and safetensors files, or "
                    "org/name of a model on the hub");
  if (!fs::is_regular_file(name, ec)) return {};
  return no_model(name, "a file: pass the folder of the checkpoint, which holds config.json, or a GGUF file");
}

// A git clone without git-lfs holds texts about large files in their places.
Status check_no_lfs_pointers(const std::string& folder) {
  constexpr std::string_view kPointer = "version https://git-lfs.github.com/spec/";
  constexpr uintmax_t kLongest = 1024;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    const std::string name = entry.path().filename().string(), ending = entry.path().extension().string();
    const bool is_read = ending == ".json" || ending == ".model" || ending == ".tiktoken" ||
                         ending == ".jinja" ||
                         (ending == ".safetensors" && !name.starts_with("consolidated"));
    if (!is_read || !entry.is_regular_file(ec) || entry.file_size(ec) > kLongest) continue;
    const auto text = read_file(entry.path().string());
    if (text && text->starts_with(kPointer))
      return bad_input(
          "model " + folder + ": " + name +
          " is a pointer of git LFS, not the file: `git lfs install`, then `git lfs pull` in that "
          "folder, or `invar download ORG/NAME`");
  }
  return {};
}

// Whether the folder has weights in safetensors, or an ONNX model.
bool has_own_weights(const std::string& folder) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    const std::string ending = entry.path().extension().string();
    if (ending == ".safetensors" || ending == ".onnx") return true;
  }
  return false;
}

bool is_onnx_file(const std::string& name) {
  std::error_code ec;
  return name.ends_with(".onnx") && fs::is_regular_file(name, ec);
}

// The folder itself, or what it says of a model that Invar does not open.
Result<ModelLocation> local(const std::string& name) {
  std::error_code ec;
  fs::path p = fs::path(name).lexically_normal();
  if (!p.has_filename()) p = p.parent_path();
  if (p == "." || p.filename() == "..") p = fs::canonical(p, ec);
  if (!fs::exists(fs::path(name) / "config.json", ec) || !has_own_weights(name)) {
    INVAR_TRY(const std::string gguf, gguf_in(name));
    if (!gguf.empty()) return open_gguf_model(gguf);
  }
  INVAR_CHECK_OK(check_no_lfs_pointers(name));
  return ModelLocation{p.filename().string(), "", name};
}

// The hub's name in the words of `source`; absent: it is none.
Result<std::optional<hub::ModelName>> hub_name(const ModelSource& source) {
  std::optional<hub::ModelName> name = hub::parse_name(source.name);
  if (!name || source.revision.empty()) return name;
  if (!name->revision.empty() && name->revision != source.revision)
    return bad_input("model " + source.name + ": its name asks for the revision " + name->revision +
                     ", --revision for " + source.revision + ": give one");
  name = hub::parse_name(hub::text_of({name->repository, source.revision, name->file}));
  if (!name) return bad_input("--revision " + source.revision + ": no branch, tag or commit has such a name");
  return name;
}

Result<ModelLocation> unknown(const std::string& name) {
  return no_model(name,
                  "no such folder: give a checkpoint folder with config.json, or org/name of a model on "
                  "the Hugging Face hub");
}

// Checks what is no name of the hub, models that are installed with the program among it. Absent:
// it is one.
Result<std::optional<ModelLocation>> not_of_hub(const ModelSource& source) {
  std::error_code ec;
  if (source.name.find('\0') != source.name.npos)
    return bad_input("model " + json::quote(source.name) + ": a path without a NUL character is needed");
  const bool onnx_file = is_onnx_file(source.name), folder = onnx_file || fs::is_directory(source.name, ec);
  if (source.name.ends_with(".gguf") && fs::is_regular_file(source.name, ec)) {
    if (!source.revision.empty())
      return bad_input("model " + source.name + ": a file has no revisions: leave --revision out");
    INVAR_TRY(ModelLocation location, open_gguf_model(source.name));
    return std::optional(std::move(location));
  }
  if (const std::string shipped = shipped_model(source.name);
      !shipped.empty() && source.revision.empty() && !fs::exists(source.name, ec)) {
    INVAR_TRY(ModelLocation location, local(shipped));
    return std::optional(std::move(location));
  }
  const auto of_hub = hub::parse_name(source.name);
  INVAR_CHECK_OK(check_no_file(folder || (of_hub && !of_hub->file.empty()) ? "" : source.name));
  if (!folder && of_hub) return std::optional<ModelLocation>();
  if (!source.revision.empty())
    return bad_input("model " + source.name +
                     (folder ? ": a folder has no revisions: leave --revision out"
                             : ": --revision is for org/name of a model on the Hugging Face hub"));
  if (!folder) return unknown(source.name).error();
  INVAR_TRY(ModelLocation location, local(onnx_file ? folder_of(source.name) : source.name));
  if (onnx_file) location.onnx_model = source.name;
  return std::optional(std::move(location));
}

// The name with the revision of a receipt, where the user asks for none and it is a commit.
hub::ModelName at_claimed(const hub::ModelName& name, const std::string& claimed) {
  const bool hexadecimal = claimed.find_first_not_of("0123456789abcdef") == claimed.npos;
  if (!name.revision.empty() || claimed.empty() || !hexadecimal) return name;
  return hub::parse_name(hub::text_of({name.repository, claimed, name.file})).value_or(name);
}

// The model of a snapshot: its folder, or the GGUF file in it.
Result<ModelLocation> of_snapshot(const hub::ModelName& name, const hub::Snapshot& snapshot) {
  std::string file = name.file.empty() ? "" : snapshot.folder + "/" + name.file;
  std::error_code ec;
  if (file.empty() && !fs::exists(snapshot.folder + "/config.json", ec)) {
    INVAR_TRY(file, gguf_in(snapshot.folder));
  }
  if (file.empty()) return ModelLocation{name.repository, snapshot.commit, snapshot.folder};
  INVAR_TRY(ModelLocation location, open_gguf_model(file));
  location.name = hub::text_of({name.repository, "", file.substr(snapshot.folder.size() + 1)});
  location.revision = snapshot.commit;
  return location;
}

Result<hub::Snapshot> fetch(const hub::ModelName& name, hub::Content content, Observer& observer) {
  const auto phase = observer.phase("download");
  std::string size;
  hub::Watcher watcher;
  watcher.begin = [&](size_t files, uint64_t bytes) {
    size = std::to_string(files) + " files, " + size_text(bytes);
    phase->bytes(0, bytes);
  };
  watcher.bytes = [&](uint64_t done, uint64_t total) { return phase->bytes(done, total); };
  INVAR_TRY(hub::Snapshot snapshot, hub::download(name, content, watcher));
  phase->done(hub::text_of(name) + " at " + snapshot.commit + ", " + size);
  return snapshot;
}

Result<ModelLocation> download(const hub::ModelName& name, hub::Content content, Observer& observer) {
  INVAR_TRY(const hub::Snapshot snapshot, fetch(name, content, observer));
  return of_snapshot(name, snapshot);
}

}  // namespace

bool is_hub_name(const std::string& name) {
  const auto parsed = hub::parse_name(name);
  return parsed && parsed->revision.empty();
}

Result<ModelLocation> resolve(const std::string& model_name, const std::string& claimed) {
  Observer nobody;
  return obtain({model_name, "", /*offline=*/true}, nobody, claimed);
}

Result<ModelLocation> obtain(const ModelSource& source, Observer& observer, const std::string& claimed) {
  INVAR_TRY(std::optional<ModelLocation> here, not_of_hub(source));
  if (here) return *std::move(here);
  INVAR_TRY(std::optional<hub::ModelName> name, hub_name(source));
  const hub::ModelName exact = at_claimed(*name, claimed);
  auto snapshot = hub::find(exact, source.content);
  if (!snapshot) snapshot = hub::find(*name, source.content);
  const bool offline = source.offline || hub::offline();
  // The reader names the file that an incomplete snapshot lacks.
  if (snapshot && (snapshot->complete || offline)) return of_snapshot(*name, *snapshot);
  if (offline)
    return no_model(hub::text_of(*name),
                    "no such folder, and not in the Hugging Face cache " + hub::cache_folder() +
                        ": `invar download " + hub::text_of(*name) +
                        "` where there is a network (HF_HUB_OFFLINE and --offline forbid it), or give a "
                        "checkpoint folder");
  hub::ModelName wanted = exact;
  if (snapshot) wanted.revision = snapshot->commit;  // what is begun is completed
  return download(wanted, source.content, observer);
}

Result<std::string> obtain_adapter(const std::string& adapter, bool offline, Observer& observer) {
  std::error_code ec;
  const auto name = hub::parse_name(adapter);
  if (!name || !name->file.empty() || fs::exists(adapter, ec)) return adapter;  // its reader says what it is
  auto snapshot = hub::find(*name, hub::Content::adapter);
  if (snapshot && snapshot->complete) return snapshot->folder;
  if (offline || hub::offline())
    return bad_input("adapter " + adapter + ": no such folder, and not in the Hugging Face cache " +
                     hub::cache_folder() + ", which --offline and HF_HUB_OFFLINE keep as it is");
  INVAR_TRY(snapshot, fetch(*name, hub::Content::adapter, observer));
  return snapshot->folder;
}

Result<ModelLocation> download(const ModelSource& source, Observer& observer) {
  INVAR_TRY(std::optional<ModelLocation> here, not_of_hub(source));
  if (here)
    return bad_input("model " + source.name + ": a folder that is here: there is nothing to download");
  INVAR_TRY(const std::optional<hub::ModelName> name, hub_name(source));
  if (source.offline || hub::offline())
    return bad_input("model " + hub::text_of(*name) + ": HF_HUB_OFFLINE forbids to download it: unset it");
  return download(*name, source.content, observer);
}

Result<std::shared_ptr<Model>> Model::open(ModelOptions options, Observer& observer) {
  INVAR_TRY(ModelLocation location,
            obtain({options.model_name, options.revision, options.offline}, observer));
  INVAR_TRY(options.adapter, obtain_adapter(options.adapter, options.offline, observer));
  return open(std::move(location), std::move(options));
}

Result<std::shared_ptr<Model>> Model::open_with_adapter(ModelLocation location, ModelOptions options,
                                                        const std::string& module, Observer& observer) {
  const size_t end = module.find('=');
  if (end == module.npos || end == 0 || end + 1 == module.size())
    return bad_input("--lora-modules " + module + ": NAME=FOLDER or NAME=ORG/NAME is needed");
  const std::string name = module.substr(0, end);
  INVAR_TRY(options.adapter, obtain_adapter(module.substr(end + 1), options.offline, observer));
  options.plan.clear(), options.task_dir.clear();  // those of the model without it
  INVAR_TRY(std::shared_ptr<Model> model, open(std::move(location), std::move(options)));
  model->location.name = model->folder.identity.adapter_name = name;
  return model;
}

}  // namespace invar::generate
