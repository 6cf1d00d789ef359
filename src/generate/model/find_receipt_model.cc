#include "generate/model/find_receipt_model.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/file/file.h"
#include "base/hash/sha256.h"
#include "base/text/json.h"
#include "generate/cache/task_cache.h"
#include "generate/cache/task_folder.h"
#include "generate/model/chat_template_text.h"
#include "generate/model/model_folder.h"
#include "generate/model/shipped_model.h"
#ifdef INVAR_COMPILER
#include "checkpoint/checkpoint.h"
#endif

namespace invar::generate {
namespace {

namespace fs = std::filesystem;

constexpr size_t kRemembered = 8;  // folders with the same weights, the newest first

// CACHE/checkpoints/DIGEST: a folder in each line.
std::string record_path(const Digest& weights) {
  const std::string cache = cache_folder();
  return cache.empty() ? "" : cache + "/checkpoints/" + to_hex(weights);
}

// A record that others could have written says nothing.
bool is_private(const std::string& path) {
  struct stat file, folder;
  const auto own = [](const struct stat& s) {
    return s.st_uid == ::geteuid() && !(s.st_mode & (S_IWGRP | S_IWOTH));
  };
  return ::lstat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode) && file.st_uid == ::geteuid() &&
         ::stat(folder_of(path).c_str(), &folder) == 0 && own(folder);
}

std::vector<std::string> remembered(const Digest& weights) {
  std::vector<std::string> folders;
  const std::string path = record_path(weights);
  if (path.empty() || !is_private(path)) return folders;
  const auto text = read_file(path);
  for (size_t at = 0; text && at < text->size() && folders.size() < kRemembered;) {
    const size_t end = std::min(text->find('\n', at), text->size());
    if (end > at) folders.push_back(text->substr(at, end - at));
    at = end + 1;
  }
  return folders;
}

// Whether the folder's config.json and tokenizer.json, if it has them, and its chat template are
// those of the receipt.
bool has_files_of(const std::string& path, const receipt::Receipt& claimed) {
  const auto location = resolve(path);
  if (!location) return false;
  const auto fits = [&](const char* name, const Digest& wanted) {
    const auto text = read_file(location->folder + "/" + name);
    return !text || sha256(*text) == wanted;
  };
  if (!fits("config.json", claimed.config) || !fits("tokenizer.json", claimed.tokenizer)) return false;
  const auto templates = open_chat_templates(*location);
  return templates && sha256(chat_template_text(*templates)) == claimed.chat_template;
}

// org/name@revision of the hub, as the receipt claims it; "" where it is no such name.
std::string hub_model(const receipt::Receipt& claimed) {
  auto name = hub::parse_name(claimed.model_name);
  if (!name || !name->revision.empty()) return "";
  name->revision = claimed.revision;
  return hub::parse_name(hub::text_of(*name)) ? hub::text_of(*name) : "";
}

}  // namespace

Result<FoundModel> find_model(const ModelOptions& wanted, const receipt::Receipt& claimed,
                              Observer& observer) {
  if (!wanted.model_name.empty()) {
    INVAR_TRY(ModelLocation location,
              obtain({wanted.model_name, wanted.revision, wanted.offline}, observer, claimed.revision));
    return FoundModel{location, location.revision.empty() ? "given with --model-name"
                                                          : "the Hugging Face cache, by --model-name"};
  }
  if (is_hub_name(claimed.model_name))
    if (auto location = resolve(claimed.model_name, claimed.revision);
        location && !location->revision.empty())
      return FoundModel{*location, "the Hugging Face cache, by the receipt's model name"};
  std::error_code ec;
  // Folders with other settings around the same weights come last.
  std::vector<std::string> folders = remembered(claimed.weights);
  std::stable_partition(folders.begin(), folders.end(),
                        [&](const std::string& folder) { return has_files_of(folder, claimed); });
  for (const std::string& folder : folders)
    if (fs::exists(folder, ec))
      if (auto location = resolve(folder))
        return FoundModel{*location, "the folder of the last run here with these weights"};
  if (const std::string folder = shipped_model(claimed.model_name);
      !folder.empty() && has_files_of(folder, claimed))
    if (auto location = resolve(folder)) return FoundModel{*location, "the model that ships with Invar"};
  const auto path = claimed.execution.find("model_path");
  if (path != claimed.execution.end()) {
    auto location = resolve(path->second);
    if (location) {
      observer.note("folder", "the receipt's sender chose the folder " + location->folder +
                                  ", which is opened here; --model-name names another");
      return FoundModel{*location, "the path in the receipt, which its sender chose"};
    }
    Error wrong = location.error().around("", " (the receipt names it: pass the model with --model-name)");
    wrong.code = Code::bad_input;
    return wrong;
  }
  if (const std::string name = hub_model(claimed); !name.empty())
    return bad_input("no model to check the receipt against: " + name +
                     ", which it names, is not in the Hugging Face cache: --model-name " + name +
                     " downloads it, if you trust that name; or pass the checkpoint folder");
  return bad_input("no model to check the receipt against: no run here used these weights, and \"" +
                   claimed.model_name +
                   "\" is not in the Hugging Face cache: pass the checkpoint folder with --model-name");
}

Result<std::string> find_adapter(const ModelOptions& wanted, const receipt::Receipt& claimed) {
  Observer nobody;
  if (!wanted.adapter.empty() || claimed.adapter == Digest{})
    return obtain_adapter(wanted.adapter, wanted.offline, nobody);
#ifdef INVAR_COMPILER
  for (const std::string& folder : remembered(claimed.adapter))
    if (const auto digest = checkpoint::adapter_digest(folder); digest && *digest == claimed.adapter)
      return folder;
#endif
  return bad_input("no adapter to check the receipt against: its model has the adapter " +
                   json::quote(claimed.adapter_name) + " (" + to_hex(claimed.adapter).substr(0, 16) +
                   "), which no run here used: pass its folder with --adapter");
}

NameCheck check_name(const ModelLocation& location, const receipt::Receipt& claimed) {
  NameCheck check;
  check.text =
      "\"" + claimed.model_name + "\"" + (claimed.revision.empty() ? "" : ", revision " + claimed.revision);
  if (location.revision.empty()) {
    check.text += " in the receipt: not checked";
  } else if (location.name != claimed.model_name) {
    check.findings.push_back(
        {"model.name", location.name + " (as the Hugging Face cache has it)", claimed.model_name});
  } else if (location.revision != claimed.revision) {
    check.text += " in the receipt: the name is the Hugging Face cache's, the revision there is " +
                  location.revision + ": not checked";
  } else {
    check.text += ": as the Hugging Face cache has it", check.checked = true;
  }
  return check;
}

void remember_checkpoint(const Digest& weights, const std::string& folder) {
  const std::string path = record_path(weights);
  std::error_code ec;
  const std::string absolute = fs::weakly_canonical(folder, ec).string();
  if (path.empty() || ec || absolute.find('\n') != absolute.npos) return;
  std::vector<std::string> folders = remembered(weights);
  if (!folders.empty() && folders[0] == absolute) return;
  std::erase(folders, absolute);
  folders.insert(folders.begin(), absolute);
  std::string text;
  for (size_t i = 0; i < std::min(folders.size(), kRemembered); ++i) text += folders[i] + "\n";
  if (make_private_folders(folder_of(path))) (void)static_cast<bool>(write_file(path, text));
}

}  // namespace invar::generate
