// Path and size checks of external data files.
#include "onnx/read/external_data.h"

#include <algorithm>
#include <filesystem>

#include "onnx/error_text.h"
#include "weights/weight_file.h"

namespace invar::onnx {

namespace fs = std::filesystem;

Result<uint64_t> ExternalFiles::size_of_file(const std::string& location, const std::string& where) {
  if (auto it = sizes_.find(location); it != sizes_.end()) return it->second;
  // A symlink directly beside the model is followed wherever it leads. The exporter makes such
  // links, and whoever placed the model placed the link. Deeper links have no use and are refused.
  const fs::path relative(location);
  std::error_code error;
  if (relative.has_parent_path()) {
    fs::path prefix = folder_;
    for (const fs::path& part : relative) {
      prefix /= part;
      if (fs::is_symlink(fs::symlink_status(prefix, error)))
        return bad_input(where + ": external file " + quote(location) + " passes through the link " +
                         quote(prefix.string()) + "; only a link directly beside the model is followed");
    }
  }
  const fs::path path = fs::path(folder_) / relative;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    if (missing_.empty()) first_missing_ = where;
    missing_.push_back(quote(location) +
                       (fs::is_symlink(fs::symlink_status(path, error)) ? " (its link leads nowhere)" : ""));
    return sizes_[location] = UINT64_MAX;
  }
  if (!fs::is_regular_file(status))
    return bad_input(where + ": external file " + quote(location) + " is not a regular file");
  if (weights::is_index(location)) {
    INVAR_TRY(const auto index, weights::WeightFile::open(path.string()));
    return sizes_[location] = index.size();
  }
  const uint64_t size = fs::file_size(path, error);
  if (error) return bad_input(where + ": external file " + quote(location) + ": " + error.message());
  return sizes_[location] = size;
}

Status ExternalFiles::check(TensorRef& tensor, const std::string& where) {
  const fs::path path(tensor.file);
  const bool has_parent =
      std::any_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
  if (path.is_absolute() || has_parent || !is_plain(tensor.file))
    return bad_input(where + ": external file " + quote(tensor.file) + " lies outside the model's folder");
  tensor.file = path.lexically_normal().string();
  INVAR_TRY(const uint64_t size, size_of_file(tensor.file, where));
  if (tensor.offset > size || tensor.length > size - tensor.offset)
    return bad_input(where + ": needs bytes " + std::to_string(tensor.offset) + " to " +
                     std::to_string(tensor.offset + tensor.length) + " of " + quote(tensor.file) +
                     ", which has only " + std::to_string(size));
  return {};
}

Status ExternalFiles::all_found() const {
  if (missing_.empty()) return {};
  if (missing_.size() == 1)
    return bad_input(first_missing_ + ": external file " + missing_[0] + " is missing beside the model");
  std::string all;
  for (const std::string& one : missing_) all += (all.empty() ? "" : ", ") + one;
  return bad_input(first_missing_ + ": external files are missing beside the model: " + all);
}

}  // namespace invar::onnx
