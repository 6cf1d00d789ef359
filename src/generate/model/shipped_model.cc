#include "generate/model/shipped_model.h"

#include <dlfcn.h>

#include <filesystem>

namespace invar::generate {
namespace {

namespace fs = std::filesystem;

// "": it cannot be known.
fs::path installation_prefix() {
  std::error_code ec;
  Dl_info object;
  const bool known = ::dladdr(reinterpret_cast<const void*>(&shipped_model), &object) != 0;
  const fs::path file = known && object.dli_fname ? object.dli_fname : "";
  if (file.extension() == ".so") {
    const fs::path module = fs::canonical(file, ec);
    return ec ? fs::path() : module.parent_path() / "../../../..";
  }
  const fs::path program = fs::read_symlink("/proc/self/exe", ec);
  return ec ? fs::path() : program.parent_path() / "..";
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
