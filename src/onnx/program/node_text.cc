#include "onnx/program/node_text.h"

#include <bit>

#include "onnx/tensor.h"

namespace invar::onnx {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

std::string float_text(float v) {
  std::string s = "0x";
  for (int shift = 28; shift >= 0; shift -= 4) s += kHex[std::bit_cast<uint32_t>(v) >> shift & 15];
  return s;
}

template <class T, class Text>
std::string list_text(const std::vector<T>& all, Text&& text) {
  std::vector<std::string> texts;
  for (const T& v : all) texts.push_back(text(v));
  return "[" + joined(texts) + "]";
}

struct AttributeText {
  const std::function<std::string(const TensorRef&)>& tensor_text;
  std::string operator()(int64_t v) const { return std::to_string(v); }
  std::string operator()(float v) const { return float_text(v); }
  std::string operator()(const std::string& v) const { return quoted(v); }
  std::string operator()(const std::vector<int64_t>& v) const {
    return list_text(v, [](int64_t i) { return std::to_string(i); });
  }
  std::string operator()(const std::vector<float>& v) const { return list_text(v, float_text); }
  std::string operator()(const std::vector<std::string>& v) const { return list_text(v, quoted); }
  std::string operator()(const TensorRef& v) const { return tensor_text(v); }
};

}  // namespace

std::string quoted(std::string_view text) {
  std::string s = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      s += std::string("\\") + c;
    else if (byte < 0x20 || byte == 0x7f)
      s += std::string("\\x") + kHex[byte >> 4] + kHex[byte & 15];
    else
      s += c;
  }
  return s + "\"";
}

std::string joined(const std::vector<std::string>& all) {
  std::string s;
  for (const std::string& one : all) s += (s.empty() ? "" : ", ") + one;
  return s;
}

std::string type_text(int32_t data_type) {
  const std::optional<DType> dtype = dtype_of(data_type);
  return dtype ? std::string(name_of(*dtype)) : "onnx" + std::to_string(data_type);
}

std::string attributes_text(const Node& node,
                            const std::function<std::string(const TensorRef&)>& tensor_text) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : node.attributes)
    texts.push_back(quoted(name) + "=" + std::visit(AttributeText{tensor_text}, value));
  return joined(texts);
}

std::string input_text(const ValueInfo& input, std::map<std::string, std::string>& dims) {
  std::vector<std::string> shape;
  for (const Dimension& d : input.shape) {
    if (d.value >= 0)
      shape.push_back(std::to_string(d.value));
    else if (d.name.empty())
      shape.push_back("?");
    else
      shape.push_back(dims.emplace(d.name, "d" + std::to_string(dims.size())).first->second);
  }
  return type_text(input.data_type) + " " + (input.has_shape ? "[" + joined(shape) + "]" : "?") + " " +
         quoted(input.name);
}

}  // namespace invar::onnx
