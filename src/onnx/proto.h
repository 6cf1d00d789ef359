// Conversion between files, protobuf messages and Graph. The only header here that exposes
// protobuf.
#pragma once

#include <onnx.pb.h>

#include <string>

#include "base/status.h"
#include "onnx/onnx.h"

namespace invar::onnx {

inline constexpr const char* kProducer = "invar";

Result<::onnx::ModelProto> parse_model(const std::string& path);

// TensorProto <-> TensorRef. `where` begins error messages.
Result<TensorRef> from_proto(const ::onnx::TensorProto& proto, const std::string& where);
// The dense tensor that a sparse one stands for.
Result<TensorRef> dense_from_proto(const ::onnx::SparseTensorProto& proto, const std::string& where);
void to_proto(const TensorRef& tensor, ::onnx::TensorProto& proto);

}  // namespace invar::onnx
