// Large inline tensors stay in the mapped model file instead of being copied by protobuf.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace invar::onnx {

// Initializers above this many bytes stay in the file. The compiler never folds larger constants
// (onnx.11).
inline constexpr uint64_t kInlineLimit = 64 << 10;

// Returns a ModelProto in which raw_data of initializers above kInlineLimit is external data: its
// byte range in `model`, the content of the file `file_name`. Nothing if no tensor is large or the
// encoding is unusual; `model` is then parsed as it is.
std::optional<std::string> externalize_raw_data(std::string_view model, const std::string& file_name);

}  // namespace invar::onnx
