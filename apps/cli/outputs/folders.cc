#include "outputs/folders.h"

#include <filesystem>
#include <system_error>

namespace invar::cli {
namespace fs = std::filesystem;

OutputFolders::~OutputFolders() {
  std::error_code ec;
  for (size_t i = made_.size(); i-- > 0;) fs::remove(made_[i], ec);  // of a folder only an empty one
}

Status OutputFolders::make_above(const std::string& option, const std::string& file) {
  const std::string folder = fs::path(file).parent_path().string();
  return make_all(folder, option + " " + file);
}

Status OutputFolders::make(const std::string& option, const std::string& folder) {
  return make_all(folder, option + " " + folder);
}

Status OutputFolders::make_all(const std::string& folder, const std::string& what) {
  std::error_code ec;
  fs::path at;
  for (const fs::path& part : fs::path(folder)) {
    at /= part;
    if (fs::is_directory(at, ec)) continue;
    if (fs::create_directory(at, ec)) made_.push_back(at.string());
    if (ec) return bad_input(what + ": the folder " + at.string() + " cannot be made: " + ec.message());
  }
  return {};
}

}  // namespace invar::cli
