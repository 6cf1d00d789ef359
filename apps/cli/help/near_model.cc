#include "help/near_model.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "help/suggest.h"

namespace invar::cli {
namespace {

namespace fs = std::filesystem;

// Names of folders with config.json, of at most so many entries.
std::vector<std::string> checkpoints_in(const fs::path& folder) {
  constexpr int kMost = 1000;
  std::vector<std::string> names;
  std::error_code ec;
  fs::directory_iterator entries(folder, ec);
  for (int i = 0; !ec && i < kMost && entries != fs::directory_iterator(); entries.increment(ec), ++i)
    if (fs::is_regular_file(entries->path() / "config.json", ec))
      names.push_back(entries->path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace

std::string near_models(const std::string& model) {
  fs::path name = fs::path(model).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  std::error_code ec;
  const bool within = fs::is_directory(name, ec);
  const fs::path folder = within ? name : name.parent_path();
  std::vector<std::string> found = checkpoints_in(folder.empty() ? "." : folder);
  if (!within) found = nearest(name.filename().string(), found);
  found.resize(std::min<size_t>(found.size(), 3));
  for (std::string& one : found) one = (folder / one).string();
  return did_you_mean(found);
}

}  // namespace invar::cli
