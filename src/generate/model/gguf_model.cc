#include "generate/model/gguf_model.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/file/file.h"
#include "base/file/listing.h"
#include "base/file/temporary_file.h"
#include "base/hash/sha256.h"
#include "base/text/size_text.h"
#include "generate/cache/task_cache.h"
#include "generate/cache/task_folder.h"
#ifdef INVAR_COMPILER
#include "checkpoint/gguf.h"
#endif

namespace invar::generate {
namespace {

namespace fs = std::filesystem;

// NAME-00002-of-00003.gguf is a later part of a model.
bool is_later_part(const std::string& name) {
  constexpr size_t kEnd = sizeof("-00001-of-00003.gguf") - 1;
  if (name.size() <= kEnd) return false;
  const std::string end = name.substr(name.size() - kEnd);
  const auto digits = [&](size_t at) {
    return end.substr(at, 5).find_first_not_of("0123456789") == end.npos;
  };
  return end[0] == '-' && end.substr(6, 4) == "-of-" && digits(1) && digits(10) &&
         end.substr(1, 5) != "00001";
}

#ifdef INVAR_COMPILER
Status put_text(const std::string& path, const std::string& text) {
  const auto present = read_file(path);
  if (present && *present == text) return {};
  return write_file(path, text);
}

Status put_link(const std::string& target, const std::string& path) {
  std::error_code ec;
  if (fs::read_symlink(path, ec) == target) return {};
  const int error = replace_file(path, [&](const std::string& temporary) {
    return ::symlink(target.c_str(), temporary.c_str()) == 0 ? 0 : errno;
  });
  if (error) return bad_input("cannot write '" + path + "': " + std::strerror(error));
  return {};
}

// The folder of the cache for these texts of this file; a temporary one where there is no cache.
Result<std::string> folder_for(const checkpoint::GgufFolder& content, const std::string& file,
                               ModelLocation& made) {
  Sha256 hash;
  hash.update("gguf 1, " INVAR_VERSION "\n" + file);
  for (const auto& [name, text] : content.texts) hash.update("\n" + name + " " + to_hex(sha256(text)));
  const std::string cache = cache_folder();
  if (!cache.empty()) {
    const std::string path =
        cache + "/gguf/" + made.name.substr(0, 128) + "-" + to_hex(hash.finish()).substr(0, 16);
    if (make_private_folders(path)) return path;
  }
  INVAR_TRY(TemporaryFolder temporary, TemporaryFolder::make());
  const auto kept = std::make_shared<const TemporaryFolder>(std::move(temporary));
  made.kept = kept;
  return kept->path();
}
#endif

}  // namespace

Result<ModelLocation> open_gguf_model(const std::string& path) {
#ifndef INVAR_COMPILER
  return not_covered("model " + path + ": this build opens no GGUF file");
#else
  INVAR_TRY(const checkpoint::GgufFolder content, checkpoint::read_gguf(path));
  std::error_code ec;
  // A file of the hub's cache is a link; its other parts lie beside the link.
  const fs::path file = fs::absolute(path, ec);
  if (ec) return bad_input("model " + path + ": " + ec.message());
  ModelLocation made;
  made.name = content.files[0], made.gguf = path;
  INVAR_TRY(made.folder, folder_for(content, file.string(), made));
  for (const std::string& name : content.files) {
    const fs::path target = fs::canonical(file.parent_path() / name, ec);
    if (ec) return bad_input("model " + path + ": cannot find its part '" + name + "': " + ec.message());
    INVAR_CHECK_OK(put_link(target.string(), made.folder + "/" + name));
  }
  for (const auto& [name, text] : content.texts) INVAR_CHECK_OK(put_text(made.folder + "/" + name, text));
  return made;
#endif
}

Result<std::string> gguf_in(const std::string& folder) {
  std::vector<std::pair<uint64_t, std::string>> models;
  std::vector<std::string> places = {""};  // repositories of the hub have a folder for each quantisation
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec))
    if (entry.is_directory(ec)) places.push_back(entry.path().filename().string() + "/");
  for (const std::string& place : places) {
    const auto names = names_in(folder + "/" + place);
    if (!names && place.empty()) return names.error();
    if (!names) continue;  // a folder that cannot be listed
    for (const std::string& name : *names)
      if (name.ends_with(".gguf") && !is_later_part(name) && !name.starts_with("mmproj"))
        models.emplace_back(fs::file_size(folder + "/" + place + name, ec), place + name);
  }
  if (models.empty()) return std::string();
  if (models.size() == 1) return folder + "/" + models[0].second;
  std::ranges::sort(models);
  std::string list;
  for (const auto& [bytes, name] : models)
    list += (list.empty() ? "" : ", ") + name + " (" + size_text(bytes) + ")";
  return no_model(folder, "several GGUF files are in it: give one of them: " + list);
}

}  // namespace invar::generate
