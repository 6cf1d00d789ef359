// Fixes symbolic dimensions of a graph to sizes.
#include <algorithm>
#include <functional>

#include "base/text/names.h"
#include "onnx/edit/input_lists.h"
#include "onnx/error_text.h"
#include "onnx/onnx.h"
#include "onnx/tensor.h"
#include "shape/dim_expr.h"

namespace invar::onnx {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 31;

using Sizes = std::map<std::string, int64_t>;

// Visits all dimensions of the graph and of nested graphs. Their symbols are one name space.
Status each_dim(Graph& graph, const std::function<Status(const ValueInfo&, Dimension&)>& change) {
  for (std::vector<ValueInfo>* all : {&graph.inputs, &graph.outputs, &graph.values})
    for (ValueInfo& v : *all)
      for (Dimension& d : v.shape) INVAR_CHECK_OK(change(v, d));
  for (Node& n : graph.nodes)
    for (Body& b : n.bodies) INVAR_CHECK_OK(each_dim(b.graph, change));
  return {};
}

std::string axis_name(const ValueInfo& v, size_t axis) {
  return v.name + "." + std::to_string(axis);
}

// The symbols of the inputs' dynamic dimensions, or INPUT.AXIS for those without a symbol.
std::vector<std::string> dynamic_dim_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const ValueInfo& v : graph.inputs)
    for (size_t axis = 0; axis < v.shape.size(); ++axis) {
      const Dimension& d = v.shape[axis];
      const std::string name = d.name.empty() ? axis_name(v, axis) : d.name;
      if (d.value < 0 && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  return names;
}

// The dimension that INPUT.AXIS denotes; null if there is none.
Dimension* dim_at(Graph& graph, const std::string& name) {
  for (ValueInfo& v : graph.inputs)
    for (size_t axis = 0; axis < v.shape.size(); ++axis)
      if (name == axis_name(v, axis)) return &v.shape[axis];
  return nullptr;
}

Error unknown_dim(const std::string& name, const std::vector<std::string>& open) {
  std::string all;
  for (const std::string& one : open) all += (all.empty() ? "" : ", ") + quote(one);
  return bad_input("dimension " + quote(name) + ": no open dimension of the model's inputs has this name; " +
                   (all.empty() ? "none is open" : "there are " + all));
}

Error size_conflict(const std::string& what, int64_t is, int64_t wanted) {
  return bad_input("dimension " + quote(what) + ": is " + std::to_string(is) + " and cannot be " +
                   std::to_string(wanted));
}

// Replaces symbols, and expressions of symbols as the compiler reads them, by their sizes.
Status substitute_sizes(Graph& graph, const Sizes& sizes, const std::vector<std::string>& open) {
  const auto of = [&](const std::string& name) {
    const auto at = sizes.find(name);
    return at == sizes.end() ? std::nullopt : std::optional<DimExpr>(at->second);
  };
  return each_dim(graph, [&](const ValueInfo&, Dimension& d) -> Status {
    if (d.value >= 0 || d.name.empty()) return {};
    std::optional<DimExpr> size = of(d.name);
    const std::optional<DimExpr> sum = DimExpr::parse(d.name);
    if (sum && !sum->constant() &&
        sum->all_symbols([&](auto& n) { return std::find(open.begin(), open.end(), n) != open.end(); }) &&
        !sum->all_symbols([&](auto& n) { return !sizes.contains(n); })) {
      const std::optional<DimExpr> computed = sum->substitute(of);
      if (!computed || computed->constant().value_or(0) < 0)
        return bad_input("dimension " + quote(d.name) + ": becomes " +
                         (computed ? computed->text() : "too large a number"));
      if (size && computed->constant() && *computed != *size)
        return size_conflict(d.name, *computed->constant(), *size->constant());
      if (!size) size = computed;
    }
    if (size) d = size->constant() ? Dimension{*size->constant(), ""} : Dimension{-1, size->text()};
    return {};
  });
}

}  // namespace

Status fix_dims(Graph& graph, const std::vector<std::pair<std::string, int64_t>>& given) {
  std::vector<std::pair<std::string, int64_t>> dims;
  for (const auto& [name, size] : given) {
    const auto input = std::ranges::find(graph.inputs, name, &ValueInfo::name);
    if (input == graph.inputs.end() || !input->is_list) {
      dims.emplace_back(name, size);
      continue;
    }
    INVAR_CHECK_OK(expand_list(graph, name, size));
  }
  const std::vector<std::string> open = dynamic_dim_names(graph);
  Sizes named;
  std::map<Dimension*, int64_t> unnamed;
  for (const auto& [name, size] : dims) {
    if (size < 0 || size > kMaxSize)
      return bad_input("dimension " + quote(name) + ": " + std::to_string(size) + " is outside 0 to " +
                       std::to_string(kMaxSize));
    Dimension* const at = dim_at(graph, name);
    const bool is_open = std::find(open.begin(), open.end(), name) != open.end();
    if (!at && !is_open) return unknown_dim(name, open);
    if (at && at->value >= 0 && !is_open) {
      if (at->value != size) return size_conflict(name, at->value, size);
      continue;
    }
    const std::string& called = at && at->value < 0 ? at->name : name;
    const int64_t given =
        called.empty() ? unnamed.emplace(at, size).first->second : named.emplace(called, size).first->second;
    if (given != size)
      return bad_input("dimension " + quote(name) + ": is to be " + std::to_string(given) + " and " +
                       std::to_string(size) + ": give one of them");
  }
  INVAR_CHECK_OK(substitute_sizes(graph, named, open));
  for (const auto& [dim, size] : unnamed) dim->value = size;
  return {};
}

namespace {

// As the runtime says it of a plan's inputs. `sizes`: those that symbols have from other inputs.
Error does_not_fit(const CallInput& is, const ValueInfo& declared, const Sizes& sizes) {
  std::string wanted;
  for (size_t axis = 0; axis < declared.shape.size(); ++axis) {
    const Dimension& d = declared.shape[axis];
    wanted += (wanted.empty() ? "" : ", ") + (d.value >= 0     ? std::to_string(d.value)
                                              : d.name.empty() ? "?"
                                                               : d.name);
    const auto at = sizes.find(d.name);
    if (d.value < 0 && at != sizes.end() && (axis >= is.shape.size() || at->second != is.shape[axis]))
      wanted += " = " + std::to_string(at->second);
  }
  return bad_input("input " + quote(is.name) + ": it is " + std::string(name_of(is.dtype)) + " " +
                   shape_text(is.shape) + ", the model takes " + name_of_type(declared.data_type) +
                   (declared.has_shape ? " [" + wanted + "]" : ""));
}

}  // namespace

Status fix_shapes(Graph& graph, const std::vector<CallInput>& inputs) {
  Sizes named;
  std::vector<std::pair<std::string, int64_t>> open;
  INVAR_CHECK_OK(check_lists(graph));
  std::vector<std::string_view> taken, names;
  for (const ValueInfo& v : graph.inputs) taken.push_back(v.name);
  for (const CallInput& i : inputs) names.push_back(i.name);
  INVAR_CHECK_OK(check_names(taken, names, "model"));
  for (const CallInput& given : inputs) {
    const auto input = std::find_if(graph.inputs.begin(), graph.inputs.end(),
                                    [&](const ValueInfo& v) { return v.name == given.name; });
    if (dtype_of(input->data_type) != given.dtype ||
        (input->has_shape && input->shape.size() != given.shape.size()))
      return does_not_fit(given, *input, named);
    if (!input->has_shape) input->shape.resize(given.shape.size());
    input->has_shape = true;
    for (size_t axis = 0; axis < given.shape.size(); ++axis) {
      const Dimension& d = input->shape[axis];
      const int64_t size = given.shape[axis];
      if (d.value >= 0 && d.value != size) return does_not_fit(given, *input, named);
      if (d.value >= 0) continue;
      if (!d.name.empty() && named.emplace(d.name, size).first->second != size)
        return does_not_fit(given, *input, named);
      open.emplace_back(d.name.empty() ? axis_name(*input, axis) : d.name, size);
    }
  }
  return fix_dims(graph, open);
}

}  // namespace invar::onnx
