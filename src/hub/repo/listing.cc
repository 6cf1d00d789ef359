#include "hub/repo/listing.h"

#include <algorithm>
#include <set>

#include "base/text/json.h"
#include "base/text/size_text.h"

namespace invar::hub {
namespace {

using json::Value;

constexpr uint64_t kLargestFile = uint64_t{1} << 50;

Result<RemoteFile> parse_file(const Value& entry, const std::string& where) {
  const auto name = entry.find("rfilename");
  if (!entry.is_object() || !name || !name->is_string())
    return bad_input(where + ": no object with the text \"rfilename\"");
  RemoteFile file{name->text, {}, ""};
  if (!is_plain_path(file.path))
    return bad_input(where + ": \"" + file.path + "\" is no path within the model's folder: refused");
  const auto digest = [&](const Value& object, const char* key) -> Status {
    const Value value = object.get(key);
    if (value.is_null()) return {};
    if (!value.is_string() || !is_digest(value.text)) return bad_input(where + ": " + key + " is no digest");
    file.digest = value.text;
    return {};
  };
  const Value lfs = entry.get("lfs");
  if (!lfs.is_null() && !lfs.is_object()) return bad_input(where + ": lfs is no object");
  INVAR_CHECK_OK(lfs.is_object() ? digest(lfs, "sha256") : digest(entry, "blobId"));
  Value size = lfs.is_object() ? lfs.get("size") : Value();
  if (size.is_null()) size = entry.get("size");
  if (size.is_null()) return file;
  if (!size.is_unsigned() || size.to_uint64() > kLargestFile)
    return bad_input(where + ": size is no size of a file");
  file.size = size.to_uint64();
  return file;
}

const RemoteFile* find_file(const Listing& listing, const std::string& path) {
  const auto found = std::find_if(listing.files.begin(), listing.files.end(),
                                  [&](const RemoteFile& f) { return f.path == path; });
  return found == listing.files.end() ? nullptr : &*found;
}

bool is_small(const std::string& path) {
  static const std::set<std::string> names = {"config.json",
                                              "generation_config.json",
                                              "vocab.json",
                                              "special_tokens_map.json",
                                              "added_tokens.json",
                                              "merges.txt",
                                              "vocab.txt",
                                              "modules.json",
                                              "sentence_bert_config.json",
                                              "config_sentence_transformers.json"};
  const bool template_folder = path.starts_with("additional_chat_templates/") && path.ends_with(".jinja");
  // 1_Pooling/config.json and others of sentence-transformers.
  const bool module =
      path[0] >= '0' && path[0] <= '9' && path.ends_with("/config.json") && path.find('/') == path.rfind('/');
  if (path.find('/') != path.npos) return template_folder || module;
  return names.contains(path) || (path.starts_with("tokenizer") && path.ends_with(".json")) ||
         path.ends_with(".model") || path.ends_with(".tiktoken") || path.starts_with("chat_template");
}

// Says what to do with a model whose weights no reader of Invar opens.
Error other_weights(const Listing& listing, const std::string& repository) {
  const auto first = [&](std::initializer_list<const char*> endings) -> std::string {
    for (const RemoteFile& f : listing.files)
      for (const char* ending : endings)
        if (f.path.ends_with(ending)) return f.path;
    return "";
  };
  const std::string model = "model " + repository + ": ";
  if (const std::string file = first({".bin", ".pt", ".pth", ".ckpt"}); !file.empty())
    return not_covered(model + "it has no " + kSingleFile + ", only " + file +
                       ", which runs code when it is opened: convert it with transformers, python3 -c "
                       "\"from transformers import AutoModelForCausalLM as M, AutoTokenizer as T; n = '" +
                       repository + "'; M.from_pretrained(n).save_pretrained('FOLDER'); " +
                       "T.from_pretrained(n).save_pretrained('FOLDER')\", and pass --model-name FOLDER");
  if (const std::string file = first({".onnx"}); !file.empty())
    return not_covered(model + "it has " + file + " and no " + kSingleFile +
                       ": download that file, then `invar compile` it");
  return not_covered(model + "it has neither " + kSingleFile + " nor " + kShardIndex);
}

std::string name_of_path(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

bool is_plain_path(const std::string& path) {
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    const bool printable =
        std::none_of(part.begin(), part.end(), [](unsigned char c) { return c < ' ' || c == 127; });
    if (part.empty() || part.size() > 255 || part == "." || part == ".." || !printable ||
        part.find('\\') != part.npos)
      return false;
    at = end + 1;
  }
  return true;
}

bool is_gguf(const Listing& listing) {
  return !find_file(listing, kSingleFile) && !is_sharded(listing) &&
         std::ranges::any_of(listing.files, [](const RemoteFile& f) { return f.path.ends_with(".gguf"); });
}

Result<std::vector<RemoteFile>> gguf_files(const Listing& listing, const ModelName& model) {
  std::string file = model.file;
  std::vector<std::pair<uint64_t, std::string>> known;
  std::set<std::string> later;  // parts of models
  for (const RemoteFile& f : listing.files) {
    const std::vector<std::string> parts = gguf_parts(f.path);
    if (parts.size() > 1) later.insert(parts.begin() + 1, parts.end());
  }
  for (const RemoteFile& f : listing.files)
    if (f.path.ends_with(".gguf") && !later.contains(f.path) && !name_of_path(f.path).starts_with("mmproj")) {
      uint64_t bytes = 0;
      for (const std::string& part : gguf_parts(f.path))
        if (const RemoteFile* one = find_file(listing, part)) bytes += one->size.value_or(0);
      known.emplace_back(bytes, f.path);
    }
  if (file.empty() && known.size() == 1) file = known[0].second;
  if (file.empty() || !find_file(listing, file)) {
    std::ranges::sort(known);
    std::string list;
    for (const auto& [bytes, path] : known)
      list += (list.empty() ? "" : ", ") + path + (bytes ? " (" + size_text(bytes) + ")" : "");
    return bad_input("model " + model.repository + ": " +
                     (file.empty() ? "it has several GGUF files" : "it has no file " + file) +
                     ": give one as " + model.repository + ":FILE: " + (list.empty() ? "it has none" : list));
  }
  std::vector<RemoteFile> files;
  for (const std::string& part : gguf_parts(file)) {
    const RemoteFile* found = find_file(listing, part);
    if (!found) return bad_input("model " + model.repository + ": it lacks " + part + ", a part of " + file);
    files.push_back(*found);
  }
  return files;
}

bool is_digest(const std::string& text) {
  return (text.size() == 40 || text.size() == 64) && text.find_first_not_of("0123456789abcdef") == text.npos;
}

Result<Listing> parse_listing(const std::string& text, const std::string& where) {
  const auto parsed = json::read(text, where);
  if (!parsed) return bad_input(where + ": the answer is not well-formed JSON");
  const Value& answer = *parsed;
  if (!answer.is_object()) return bad_input(where + ": the answer is no JSON object");
  const Value commit = answer.get("sha");
  if (!commit.is_string() || commit.text.size() != 40 || !is_digest(commit.text))
    return bad_input(where + ": \"sha\" in the answer is no commit");
  const auto siblings = answer.find("siblings");
  if (!siblings || !siblings->is_array())
    return bad_input(where + ": \"siblings\" in the answer is no list of files");
  Listing listing{commit.text, {}};
  std::set<std::string> paths;
  for (size_t i = 0; i < siblings->size(); ++i) {
    const std::string at = where + ": siblings[" + std::to_string(i) + "]";
    INVAR_TRY(RemoteFile file, parse_file(siblings->items[i], at));
    if (!paths.insert(file.path).second) return bad_input(at + ": \"" + file.path + "\" is listed twice");
    listing.files.push_back(std::move(file));
  }
  return listing;
}

bool is_sharded(const Listing& listing) {
  return !find_file(listing, kSingleFile) && find_file(listing, kShardIndex);
}

std::vector<RemoteFile> small_files(const Listing& listing) {
  std::vector<RemoteFile> files;
  for (const RemoteFile& f : listing.files)
    if (is_small(f.path) || (f.path == kShardIndex && is_sharded(listing))) files.push_back(f);
  return files;
}

Result<std::vector<std::string>> shards_of(const std::string& index, const std::string& where) {
  const Value answer = json::read_or_null(index);
  const Value map = answer.is_object() ? answer.get("weight_map") : Value();
  if (!map.is_object() || map.empty()) return bad_input(where + ": no weight_map");
  std::set<std::string> shards;
  for (const auto& [tensor, file] : map.members) {
    if (!file.is_string() || !is_plain_path(file.text) || file.text.find('/') != std::string::npos)
      return bad_input(where + ": the file of a tensor is not a plain file name");
    shards.insert(file.text);
  }
  return std::vector<std::string>(shards.begin(), shards.end());
}

Result<std::vector<RemoteFile>> weight_files(const Listing& listing, const std::string& index,
                                             const ModelName& model) {
  if (const RemoteFile* single = find_file(listing, kSingleFile)) return std::vector{*single};
  if (!is_sharded(listing)) return other_weights(listing, model.repository);
  const std::string where = "model " + model.repository + ": " + kShardIndex;
  INVAR_TRY(const std::vector<std::string> shards, shards_of(index, where));
  std::vector<RemoteFile> files;
  for (const std::string& shard : shards) {
    const RemoteFile* file = find_file(listing, shard);
    if (!file) return bad_input(where + ": it names the shard " + shard + ", which the model does not have");
    files.push_back(*file);
  }
  return files;
}

}  // namespace invar::hub
