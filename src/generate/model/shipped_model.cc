#include "generate/model/shipped_model.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace invar::generate {
namespace {

namespace fs = std::filesystem;

// The file of this code: the program, or the module that Python has loaded. "": it cannot be known.
fs::path own_file() {
  const auto here = reinterpret_cast<uintptr_t>(&shipped_model);
  std::ifstream maps("/proc/self/maps");  // BEGIN-END rwxp OFFSET DEVICE INODE   PATH
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    if (!(words >> std::hex >> begin >> dash >> end) || here < begin || here >= end) continue;
    const size_t path = line.find('/');
    return path == line.npos ? "" : line.substr(path);
  }
  return {};
}

fs::path installation_prefix() {
  const fs::path file = own_file();
  if (file.empty()) return {};
  return file.parent_path() / (file.extension() == ".so" ? "../../../.." : "..");
}

}  // namespace

std::string shipped_model(const std::string& model_name) {
  constexpr std::string_view kFolder = "models/";
  const std::string name = model_name.substr(model_name.starts_with(kFolder) ? kFolder.size() : 0);
  if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos) return "";
  const fs::path prefix = installation_prefix();
  if (prefix.empty()) return "";
  std::error_code ec;
  const fs::path folder = (prefix / "share/invar/models" / name).lexically_normal();
  return fs::is_regular_file(folder / "config.json", ec) ? folder.string() : "";
}

}  // namespace invar::generate
