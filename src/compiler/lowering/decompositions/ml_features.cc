// Preparation of features in ai.onnx.ml: scalers, imputers, encoders of integers, which strings
// became before (onnx.53), selections of columns.
#include <map>

#include "compiler/lowering/builders/ml_scores.h"

namespace invar::compiler {
namespace {

// Operand 0 with a dimension for features. ints: integers become f32.
Result<Value> real_operand(NodeView& node, bool keeps_f64 = false) {
  if (node.shape(0).empty()) return not_covered("an operand without dimensions");
  const Value x = node.in(0);
  if (keeps_f64 && element_of(x).isF64()) return x;
  return cast_to(node, x, node.builder().getF32Type());
}

// A list of numbers for one feature each, or one for all.
Status check_per_feature(NodeView& node, size_t count, const char* name) {
  const Shape shape = node.shape(0);
  const Dim width = shape.empty() ? Dim::of(1) : shape.back();
  if (count == 1 || !width.constant() || width.value == static_cast<int64_t>(count)) return {};
  return bad_input(std::string("attribute \"") + name + "\" has " + std::to_string(count) + " numbers for " +
                   std::to_string(width.value) + " features");
}

Status scaler(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"offset", "scale"}));
  INVAR_TRY(const std::vector<float> offset, floats_attr(node, "offset"));
  INVAR_TRY(const std::vector<float> scale, floats_attr(node, "scale"));
  INVAR_TRY(Value x, real_operand(node, /*keeps_f64=*/true));
  const Type element = element_of(x);
  if (!offset.empty()) {
    INVAR_CHECK_OK(check_per_feature(node, offset.size(), "offset"));
    INVAR_TRY(x, node.make<SubOp>({x, float_list(node, {offset.begin(), offset.end()}, element)}));
  }
  if (!scale.empty()) {
    INVAR_CHECK_OK(check_per_feature(node, scale.size(), "scale"));
    INVAR_TRY(x, node.make<MulOp>({x, float_list(node, {scale.begin(), scale.end()}, element)}));
  }
  INVAR_TRY(x, cast_to(node, x, node.builder().getF32Type()));
  return node.replace(x);
}

Status normalizer(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"norm"}));
  INVAR_TRY(const int64_t norm, enum_attr(node, "norm", "MAX L1 L2", "MAX"));
  INVAR_TRY(const Value x, real_operand(node));
  const auto axis = static_cast<int64_t>(node.shape(0).size()) - 1;
  const SmallVector<NamedAttribute> along = {node.attr("axes", Ints(axis)),
                                             node.attr("keepdims", int64_t{1})};
  ExprBuilder f(node);
  const Value square = norm == 2 ? f.mul(x, x) : Value();
  const Value total = norm == 0   ? f.make<ReduceMaxOp>({x}, along)
                      : norm == 1 ? f.make<ReduceSumOp>({f.make<AbsOp>({x})}, along)
                                  : f.make<ReduceSumOp>({square}, along);
  const Value none = f.make<EqualOp>({total, f.f32(0)});
  const Value by = f.where(none, f.f32(1), total);
  Value out = norm == 2 ? f.make<SqrtOp>({f.div(square, by)}) : f.div(x, by);
  if (norm == 2) out = f.where(none, x, f.where(f.less(x, f.f32(0)), f.make<NegOp>({out}), out));
  INVAR_CHECK_OK(f.status());
  return node.replace(out);
}

Status imputer(NodeView& node) {
  INVAR_CHECK_OK(node.expect(
      1, 1,
      {"imputed_value_floats", "imputed_value_int64s", "replaced_value_float", "replaced_value_int64"}));
  const Value x = node.in(0);
  ExprBuilder f(node);
  Value missing, by;
  if (element_of(x).isF32() || element_of(x).isF64()) {
    INVAR_TRY(const std::vector<float> values, floats_attr(node, "imputed_value_floats"));
    INVAR_TRY(const float replaced, node.float_attr("replaced_value_float", 0));
    if (values.empty()) return bad_input("attribute \"imputed_value_floats\" is missing");
    INVAR_CHECK_OK(check_per_feature(node, values.size(), "imputed_value_floats"));
    by = float_list(node, {values.begin(), values.end()}, element_of(x));
    missing = replaced != replaced ? f.make<IsnanOp>({x})
                                   : f.make<EqualOp>({x, float_list(node, {replaced}, element_of(x))});
  } else {
    INVAR_TRY(const std::vector<int64_t> values, node.ints_attr("imputed_value_int64s"));
    INVAR_TRY(const int64_t replaced, node.int_attr("replaced_value_int64", 0));
    if (values.empty()) return bad_input("attribute \"imputed_value_int64s\" is missing");
    if (!element_of(x).isInteger(64)) return not_covered("integers of another type than int64");
    INVAR_CHECK_OK(check_per_feature(node, values.size(), "imputed_value_int64s"));
    by = node.constant(values);
    missing = f.make<EqualOp>({x, node.constant(std::vector<int64_t>{replaced})});
  }
  const Value out = f.where(missing, by, x);
  INVAR_CHECK_OK(f.status());
  return node.replace(out);
}

Status binarizer(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"threshold"}));
  INVAR_TRY(const float threshold, node.float_attr("threshold", 0));
  INVAR_TRY(const Value x, real_operand(node, /*keeps_f64=*/true));
  ExprBuilder f(node);
  const Value above = f.less(float_list(node, {threshold}, element_of(x)), x);
  const Value out = f.cast(above, element_of(node.in(0)));
  INVAR_CHECK_OK(f.status());
  return node.replace(out);
}

Status array_feature_extractor(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {}));
  const Shape x = node.shape(0), y = node.shape(1);
  if (x.empty()) return not_covered("an operand without dimensions");
  INVAR_TRY(const Shape flat, flatten_to_matrix(y, static_cast<int64_t>(y.size())));
  INVAR_TRY(Value index, reshape(node, node.in(1), {flat[0]}));
  INVAR_TRY(index, cast_to(node, index, node.builder().getI64Type()));
  const auto axis = static_cast<int64_t>(x.size()) - 1;
  INVAR_TRY(Value out, node.make<GatherOp>({node.in(0), index}, node.attr("axis", axis)));
  if (x.size() == 1) {
    INVAR_TRY(out, reshape(node, out, {Dim::of(1), flat[0]}));
  }
  return node.replace(out);
}

Status feature_vectorizer(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1 << 16, {"inputdimensions"}));
  INVAR_TRY(const std::vector<int64_t> dims, node.ints_attr("inputdimensions"));
  SmallVector<Value> parts;
  for (unsigned i = 0; node.has(i); ++i) {
    Shape shape = node.shape(i);
    INVAR_TRY(Value part, cast_to(node, node.in(i), node.builder().getF32Type()));
    if (shape.size() == 1) {
      shape.push_back(Dim::of(1));
      INVAR_TRY(part, reshape(node, part, shape));
    }
    if (shape.size() != 2) return not_covered("operand " + std::to_string(i) + " is not [N, F]");
    if (i < dims.size() && shape[1] != Dim::of(dims[i]))
      return not_covered("operand " + std::to_string(i) + " has not " + std::to_string(dims[i]) + " columns");
    parts.push_back(part);
  }
  INVAR_TRY(const Value out, concat(node, parts, 1));
  return node.replace(out);
}

Status one_hot_encoder(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"cats_int64s", "cats_strings", "zeros"}));
  INVAR_CHECK_OK(node.require_attr("zeros", int64_t{1}));
  if (node.attribute("cats_strings"))
    return not_covered("strings, beside operators that strings are not covered for");
  INVAR_TRY(const std::vector<int64_t> categories, node.ints_attr("cats_int64s"));
  if (categories.empty()) return bad_input("it has no categories");
  Shape shape = node.shape(0);
  shape.push_back(Dim::of(1));
  ExprBuilder f(node);
  const Value x = f.reshape(f.to_i64(node.in(0)), shape);
  const Value out = f.to_f32(f.make<EqualOp>({x, node.constant(categories)}));
  INVAR_CHECK_OK(f.status());
  return node.replace(out);
}

// ---- LabelEncoder

struct LabelLists {
  std::vector<double> keys, values;
  std::vector<int64_t> int_keys, int_values;
  double absent = 0;
  int64_t int_absent = -1;
  bool keys_are_ints = false, values_are_ints = false;
};

Result<bool> read_side(NodeView& node, const std::string& side, std::vector<int64_t>& ints,
                       std::vector<double>& floats) {
  if (node.attribute(side + "_strings"))
    return not_covered("strings, beside operators that strings are not covered for");
  if (node.attribute(side + "_int64s")) {
    INVAR_TRY(ints, node.ints_attr(side + "_int64s"));
    return true;
  }
  if (node.attribute(side + "_floats")) {
    INVAR_TRY(const std::vector<float> list, floats_attr(node, side + "_floats"));
    floats.assign(list.begin(), list.end());
    return false;
  }
  INVAR_TRY(const auto tensor, tensor_numbers_attr(node, side + "_tensor"));
  if (!tensor) return bad_input("it has no " + side);
  auto given = dyn_cast<DictionaryAttr>(node.attribute(side + "_tensor"));
  const auto code = given.getAs<IntegerAttr>("data_type");
  const Type element = onnx_type(node.context(), static_cast<int32_t>(code.getInt()));
  if (isa<FloatType>(element)) {
    floats = *tensor;
    return false;
  }
  for (double v : *tensor) ints.push_back(static_cast<int64_t>(v));
  return true;
}

Result<LabelLists> label_lists(NodeView& node) {
  LabelLists all;
  INVAR_TRY(all.keys_are_ints, read_side(node, "keys", all.int_keys, all.keys));
  INVAR_TRY(all.values_are_ints, read_side(node, "values", all.int_values, all.values));
  INVAR_TRY(all.int_absent, node.int_attr("default_int64", -1));
  INVAR_TRY(const float absent, node.float_attr("default_float", -0.0f));
  all.absent = absent;
  INVAR_TRY(const auto tensor, tensor_numbers_attr(node, "default_tensor"));
  if (tensor && tensor->size() == 1)
    all.absent = (*tensor)[0], all.int_absent = static_cast<int64_t>((*tensor)[0]);
  if (all.keys.size() + all.int_keys.size() != all.values.size() + all.int_values.size())
    return bad_input("its keys and values differ in number");
  if (all.keys.size() + all.int_keys.size() == 0) return bad_input("it has no keys");
  return all;
}

// The number of the key that x equals, of equal keys the first; else the number of keys.
Result<Value> key_number(NodeView& node, Value x, const LabelLists& lists) {
  ExprBuilder f(node);
  Shape shape = shape_of(x.getType());
  const auto keys = static_cast<int64_t>(lists.keys.size() + lists.int_keys.size());
  if (lists.keys_are_ints) {
    const auto [low, high] = std::minmax_element(lists.int_keys.begin(), lists.int_keys.end());
    if (*low >= 0 && *high < (1 << 22)) {
      std::vector<int64_t> table(static_cast<size_t>(*high) + 2, keys);
      for (size_t i = lists.int_keys.size(); i-- > 0;)
        table[static_cast<size_t>(lists.int_keys[i])] = static_cast<int64_t>(i);
      const Value end = node.constant(std::vector<int64_t>{*high + 1});
      const Value inside = f.logical_and(f.less(node.constant(std::vector<int64_t>{-1}), x), f.less(x, end));
      const Value number =
          f.make<GatherOp>({node.constant(table), f.where(inside, x, end)}, node.attr("axis", int64_t{0}));
      INVAR_CHECK_OK(f.status());
      return number;
    }
  }
  shape.push_back(Dim::of(1));
  const Value apart = f.reshape(x, shape);
  Value same;
  if (lists.keys_are_ints) {
    same = f.make<EqualOp>({apart, node.constant(lists.int_keys)});
  } else {
    same = f.make<EqualOp>({apart, float_list(node, lists.keys, element_of(x))});
    std::vector<float> nan;
    for (double k : lists.keys) nan.push_back(k != k);
    const Value both = f.mul(f.to_f32(f.make<IsnanOp>({apart})), f.f32_tensor(nan, {keys}));
    same = f.logical_or(same, f.less(f.f32(0), both));
  }
  shape.back() = Dim::of(1);
  const auto axis = static_cast<int64_t>(shape.size()) - 1;
  const Value found = f.concat({f.to_f32(same), f.expand(f.f32(1), shape)}, axis);
  const Value number =
      f.make<ArgmaxOp>({found}, {node.attr("axis", axis), node.attr("select_last", int64_t{0})});
  INVAR_CHECK_OK(f.status());
  return number;
}

Status label_encoder(NodeView& node) {
  INVAR_CHECK_OK(node.expect(
      1, 1,
      {"default_float", "default_int64", "default_string", "default_tensor", "keys_floats", "keys_int64s",
       "keys_strings", "keys_tensor", "values_floats", "values_int64s", "values_strings", "values_tensor"}));
  INVAR_TRY(LabelLists lists, label_lists(node));
  Value x = node.in(0);
  if (lists.keys_are_ints) {
    INVAR_TRY(x, cast_to(node, x, node.builder().getI64Type()));
  } else if (!element_of(x).isF32() && !element_of(x).isF64()) {
    return bad_input("keys are floats, and the operand is not");
  }
  INVAR_TRY(const Value number, key_number(node, x, lists));
  Value table;
  if (lists.values_are_ints) {
    lists.int_values.push_back(lists.int_absent);
    table = node.constant(lists.int_values);
  } else {
    lists.values.push_back(lists.absent);
    table = float_list(node, lists.values, node.builder().getF32Type());
  }
  INVAR_TRY(const Value out, node.make<GatherOp>({table, number}, node.attr("axis", int64_t{0})));
  return node.replace(out);
}

// Columns of labels: the names are an attribute, and the numbers stay as they are (onnx.53).
Status zip_map(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"classlabels_int64s", "classlabels_strings"}));
  INVAR_TRY(const Value x, real_operand(node));
  return node.replace(x);
}

}  // namespace

void decompose_ml_features(RuleRegistry& registry) {
  registry.add_rule("ai.onnx.ml.ArrayFeatureExtractor", 1, array_feature_extractor);
  registry.add_rule("ai.onnx.ml.Binarizer", 1, binarizer);
  registry.add_rule("ai.onnx.ml.FeatureVectorizer", 1, feature_vectorizer);
  registry.add_rule("ai.onnx.ml.Imputer", 1, imputer);
  registry.add_rule("ai.onnx.ml.LabelEncoder", 2, label_encoder);
  registry.add_rule("ai.onnx.ml.Normalizer", 1, normalizer);
  registry.add_rule("ai.onnx.ml.OneHotEncoder", 1, one_hot_encoder);
  registry.add_rule("ai.onnx.ml.Scaler", 1, scaler);
  registry.add_rule("ai.onnx.ml.ZipMap", 1, zip_map);
}

}  // namespace invar::compiler
