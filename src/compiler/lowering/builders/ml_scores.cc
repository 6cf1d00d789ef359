#include "compiler/lowering/builders/ml_scores.h"

#include <cmath>

#include "compiler/dialects/constant_data.h"
#include "num/convert/convert.h"

namespace invar::compiler {
namespace {

Error wrong_list(llvm::StringRef name, llvm::StringRef kind) {
  return bad_input("attribute \"" + name.str() + "\" is no list of " + kind.str());
}

uint64_t word_at(llvm::StringRef bytes, size_t at, size_t width) {
  uint64_t word = 0;
  for (size_t i = 0; i < width; ++i) word |= uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return word;
}

std::optional<double> number_of(DType type, uint64_t word) {
  switch (type) {
    case DType::f64: return std::bit_cast<double>(word);
    case DType::f32: return std::bit_cast<float>(static_cast<uint32_t>(word));
    case DType::f16: return num::f32_from_f16(static_cast<uint16_t>(word));
    case DType::i64: return static_cast<double>(static_cast<int64_t>(word));
    case DType::i32: return static_cast<int32_t>(word);
    case DType::u8: return static_cast<uint8_t>(word);
    default: return std::nullopt;
  }
}

// The rational approximation of the inverse error function that ONNX's runtimes agree on, and the
// square root of 2: each step is one operation (onnx.51).
Value probit_of(ExprBuilder& f, Value p) {
  const Value one = f.f32(1);
  const Value x = f.sub(f.mul(f.f32(2), p), one);
  const Value sign = f.where(f.less(x, f.f32(0)), f.f32(-1), one);
  const Value log = f.make<LogOp>({f.mul(f.sub(one, x), f.add(one, x))});
  const Value v = f.add(f.f32(2 / (3.14159f * 0.147f)), f.mul(f.f32(0.5f), log));
  const Value v2 = f.mul(f.f32(1 / 0.147f), log);
  const Value v3 = f.sub(f.make<SqrtOp>({f.sub(f.mul(v, v), v2)}), v);
  return f.mul(f.f32(1.41421356f), f.mul(sign, f.make<SqrtOp>({v3})));
}

// Scores within 1e-7 of 0 are scaled, the others are those of a softmax without them.
Value softmax_zero_of(ExprBuilder& f, Value x) {
  NodeView& node = f.node();
  const SmallVector<NamedAttribute> along = {node.attr("axes", Ints(int64_t{1})),
                                             node.attr("keepdims", int64_t{1})};
  const Value largest = f.make<ReduceMaxOp>({x}, along);
  const Value counts = f.less(f.f32(1e-7f), f.make<AbsOp>({x}));
  const Value weight = f.make<ExpOp>({f.sub(x, largest)});
  const Value sum = f.make<ReduceSumOp>({f.where(counts, weight, f.f32(0))}, along);
  const Value small = f.mul(x, f.make<ExpOp>({f.make<NegOp>({largest})}));
  return f.div(f.where(counts, weight, small), sum);
}

}  // namespace

Result<std::vector<float>> floats_attr(const NodeView& node, llvm::StringRef name) {
  const Attribute a = node.attribute(name);
  if (!a) return std::vector<float>();
  if (auto list = dyn_cast<DenseF32ArrayAttr>(a)) return list.asArrayRef().vec();
  return wrong_list(name, "floats");
}

Result<std::vector<std::string>> strings_attr(const NodeView& node, llvm::StringRef name) {
  std::vector<std::string> all;
  const Attribute a = node.attribute(name);
  if (!a) return all;
  auto list = dyn_cast<ArrayAttr>(a);
  if (!list) return wrong_list(name, "strings");
  for (Attribute one : list) {
    auto text = dyn_cast<StringAttr>(one);
    if (!text) return wrong_list(name, "strings");
    all.push_back(text.str());
  }
  return all;
}

Result<std::string> string_attr(const NodeView& node, llvm::StringRef name, llvm::StringRef absent) {
  const Attribute a = node.attribute(name);
  if (!a) return absent.str();
  if (auto text = dyn_cast<StringAttr>(a)) return text.str();
  return bad_input("attribute \"" + name.str() + "\" is no string");
}

Result<std::optional<std::vector<double>>> tensor_numbers_attr(const NodeView& node, llvm::StringRef name) {
  const Attribute a = node.attribute(name);
  if (!a) return std::optional<std::vector<double>>();
  auto tensor = dyn_cast<DictionaryAttr>(a);
  const std::string label = "attribute \"" + name.str() + "\"";
  if (!tensor) return bad_input(label + " is no tensor");
  auto code = tensor.getAs<IntegerAttr>("data_type");
  auto data = tensor.getAs<StringAttr>("data");
  auto file = tensor.getAs<StringAttr>("file");
  if (!code || !data || (file && !file.empty()))
    return not_covered(label + " is kept outside the model file");
  const Type element = onnx_type(node.context(), static_cast<int32_t>(code.getInt()));
  const std::optional<DType> dtype = element ? dtype_of(element) : std::nullopt;
  if (!dtype || !number_of(*dtype, 0)) return not_covered(label + ": its element type");
  std::vector<double> all;
  const size_t width = size_of(*dtype);
  for (size_t at = 0; at + width <= data.size(); at += width)
    all.push_back(*number_of(*dtype, word_at(data.getValue(), at, width)));
  return std::optional(std::move(all));
}

Result<std::vector<double>> numbers_attr(const NodeView& node, const std::string& name) {
  INVAR_TRY(std::optional<std::vector<double>> tensor, tensor_numbers_attr(node, name + "_as_tensor"));
  if (tensor && !tensor->empty()) return std::move(*tensor);
  INVAR_TRY(const std::vector<float> list, floats_attr(node, name));
  return std::vector<double>(list.begin(), list.end());
}

Value float_list(NodeView& node, const std::vector<double>& list, Type element,
                 llvm::ArrayRef<int64_t> shape) {
  const bool wide = element.isF64();
  std::string bytes;
  for (double v : list) {
    const uint64_t word = wide ? std::bit_cast<uint64_t>(v) : std::bit_cast<uint32_t>(static_cast<float>(v));
    for (int i = 0; i < (wide ? 8 : 4); ++i) bytes += static_cast<char>(word >> (8 * i));
  }
  const auto size = static_cast<int64_t>(list.size());
  return node.constant(bytes, wide ? DType::f64 : DType::f32, shape.empty() ? Ints(size) : shape);
}

Value int32_list(NodeView& node, const std::vector<int32_t>& list, llvm::ArrayRef<int64_t> shape) {
  std::string bytes;
  for (int32_t v : list)
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(static_cast<uint32_t>(v) >> (8 * i));
  const auto size = static_cast<int64_t>(list.size());
  return node.constant(bytes, DType::i32, shape.empty() ? Ints(size) : shape);
}

Result<Value> feature_rows(NodeView& node) {
  Value x = node.in(0);
  const Shape shape = node.shape(0);
  const Type element = element_of(x);
  if (!element.isF64() && !element.isF32() && !isa<IntegerType>(element))
    return not_covered("elements of another type than f32, f64 and integers");
  if (shape.empty() || shape.size() > 2)
    return not_covered("an operand " + text_of(shape) + " is not [N, F]");
  if (!element.isF64()) {
    INVAR_TRY(x, cast_to(node, x, node.builder().getF32Type()));
  }
  if (shape.size() == 2) return x;
  return reshape(node, x, {Dim::of(1), shape[0]});
}

Result<Link> link_attr(const NodeView& node) {
  INVAR_TRY(const std::string name, string_attr(node, "post_transform", "NONE"));
  if (name == "NONE") return Link::none;
  if (name == "LOGISTIC") return Link::logistic;
  if (name == "SOFTMAX") return Link::exponential;
  if (name == "SOFTMAX_ZERO") return Link::exponential_zero;
  if (name == "PROBIT") return Link::probit;
  return bad_input("attribute \"post_transform\" is \"" + name +
                   "\", not NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT");
}

Result<Value> linked(NodeView& node, Value scores, Link link) {
  ExprBuilder f(node);
  switch (link) {
    case Link::none: return scores;
    case Link::logistic: return node.make<SigmoidOp>({scores});
    case Link::exponential: return node.make<SoftmaxOp>({scores}, node.attr("axis", int64_t{1}));
    case Link::exponential_zero: scores = softmax_zero_of(f, scores); break;
    case Link::probit: scores = probit_of(f, scores); break;
  }
  INVAR_CHECK_OK(f.status());
  return scores;
}

Result<std::vector<int64_t>> class_labels(const NodeView& node, llvm::StringRef ints) {
  if (node.attribute("classlabels_strings"))
    return not_covered("labels that are strings, beside operators that strings are not covered for");
  INVAR_TRY(std::vector<int64_t> labels, node.ints_attr(ints));
  if (labels.empty()) return bad_input("it has no class labels");
  return labels;
}

Result<Value> labels_at(NodeView& node, Value classes, const std::vector<int64_t>& labels) {
  bool same = true;
  for (size_t i = 0; i < labels.size(); ++i) same &= labels[i] == static_cast<int64_t>(i);
  if (same) return classes;
  return node.make<GatherOp>({node.constant(labels), classes}, node.attr("axis", int64_t{0}));
}

Result<Value> best_class(NodeView& node, Value scores) {
  return node.make<ArgmaxOp>({scores}, {node.attr("axis", int64_t{1}), node.attr("select_last", int64_t{0})});
}

Result<Value> class_above(NodeView& node, Value values, float limit) {
  ExprBuilder f(node);
  const Value above = f.to_i64(f.less(f.f32(limit), values));
  INVAR_CHECK_OK(f.status());
  return reshape(node, above, {shape_of(values.getType())[0]});
}

}  // namespace invar::compiler
