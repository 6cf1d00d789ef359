// Large tensors of a model file stay where they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace invar::onnx {

// More bytes than any constant that a compiler computes with (onnx.11).
inline constexpr uint64_t kInPlace = 64 << 10;

// A ModelProto in which the raw_data of initialisers above kInPlace has become external data: the place of these bytes in `model`,
// which is what the file of this name holds. Nothing where no tensor is so large, or the bytes are not what a writer would write;
// `model` then says all there is to say.
std::optional<std::string> with_tensors_in_place(std::string_view model, const std::string& file_name);

}  // namespace invar::onnx
