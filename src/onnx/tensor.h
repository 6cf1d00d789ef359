// Element types and byte sizes of tensors. Overflow and unknown types yield no value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "onnx/onnx.h"

namespace invar::onnx {

// TensorProto.DataType values that code here refers to.
inline constexpr int32_t kFloat = 1, kInt32 = 6, kInt64 = 7, kString = 8, kBool = 9, kFloat16 = 10,
                         kBFloat16 = 16;

// Bits per element of a TensorProto.DataType; nothing for strings, UNDEFINED and unknown numbers.
std::optional<int> bits_of(int32_t data_type);
// Bytes of a tensor. Nothing if a dimension is negative or the size needs more than 63 bits.
std::optional<uint64_t> byte_size(std::span<const int64_t> shape, int bits);
// The strings of a tensor of kString. Its inline_data is each string, after its length in 8 bytes.
std::vector<std::string> strings_of(const TensorRef&);
int32_t code_of(DType);                                  // TensorProto.DataType
std::optional<DType> dtype_of(int32_t data_type);        // nothing for types that Invar lacks
std::string name_of_type(int32_t data_type);             // f32
std::string shape_text(std::span<const int64_t> shape);  // [2, 3]
// The value of a node `Constant` that is a tensor, a list of numbers or a number; its name is empty
// or the attribute's.
std::optional<TensorRef> constant_of(const Node&);

}  // namespace invar::onnx
