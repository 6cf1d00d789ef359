// Imports an ONNX graph into the onnx dialect. The import is total: whatever the graph holds has a
// form there.
#include "compiler/dialects/dialects.h"
#include "compiler/dialects/origin.h"
#include "compiler/passes/constant_evaluator.h"
#include "compiler/passes/passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "onnx/rewrites.h"
#include "onnx/tensor.h"
#include "plan/keywords.h"

namespace invar::compiler {
namespace {
using namespace mlir;

class Importer {
 public:
  Importer(MLIRContext& context, const onnx::Graph& graph, InlineConstants& inline_constants,
           const DimConstraints& constraints)
      : graph_(graph), build_(&context), inline_constants_(inline_constants), constraints_(constraints) {}
  OwningOpRef<ModuleOp> run();

 private:
  Type element(int32_t code) {
    Type t = onnx_type(build_.getContext(), code);
    return t ? t : Type(UnknownType::get(build_.getContext()));
  }
  Type type_of(const onnx::ValueInfo&, bool input = false);
  Dim constrained(const DimExpr&) const;
  void name_symbols();
  SmallVector<DictionaryAttr> names(const std::vector<onnx::ValueInfo>& ports);
  std::string fresh(const std::string& name);
  Type type_of(const std::string& value) {
    auto it = types_.find(value);
    return it == types_.end() ? Type(UnknownType::get(build_.getContext())) : it->second;
  }
  Value weight(const std::string& name, const onnx::TensorRef&);
  Value absent();
  Attribute attribute(const onnx::AttrValue&);
  DictionaryAttr tensor(const onnx::TensorRef&);
  void node(const onnx::Node&);
  void node(const onnx::Node&, const std::string& number);
  void body(const onnx::Body&, Region&);
  // onnx::read gives no unknown names; if there were one, it would become an absent value rather
  // than a crash.
  Value value(const std::string& name) {
    auto it = values_.find(name);
    return it == values_.end() ? absent() : it->second;
  }

  const onnx::Graph& graph_;
  OpBuilder build_;
  InlineConstants& inline_constants_;
  const DimConstraints& constraints_;
  Operation* outermost_ =
      nullptr;  // the node of the outermost graph whose body is imported; null outside bodies
  std::map<std::string, Type> types_;
  // The model's name of a dimension -> the program's symbol or expression.
  std::map<std::string, DimExpr> symbols_;
  std::map<std::string, Value> values_;
  size_t nodes_ = 0;                    // so far, those of bodies behind their own
  std::map<std::string, int> weights_;  // how often a weight's name occurred
  std::map<std::string, int> ranks_;    // of values without a type, as far as note_ranks() knows
  Value absent_;
};

Type Importer::type_of(const onnx::ValueInfo& v, bool input) {
  Type e = element(v.data_type);
  if (isa<UnknownType>(e)) return e;
  if (!v.has_shape) return UnrankedTensorType::get(e);
  Shape shape;
  for (const onnx::Dimension& d : v.shape) {
    if (d.value >= 0) {
      shape.push_back(Dim::of(d.value));
      continue;
    }
    auto it = symbols_.find(d.name);
    if (it == symbols_.end() && input) {
      const std::string name = fresh("size");
      it = symbols_.emplace(" " + name, DimExpr::symbol(name)).first;
    }
    shape.push_back(it == symbols_.end() ? Dim() : constrained(it->second));
  }
  return tensor_of(shape, e);
}

// The dimension after substituting the constraints, one after the other: the value of a
// constraint does not contain its own symbol.
Dim Importer::constrained(const DimExpr& dim) const {
  std::optional<DimExpr> size = dim;
  for (const auto& [constraints, by] : constraints_)
    if (size)
      size = size->substitute([&](auto& n) { return n == constraints ? std::optional(by) : std::nullopt; });
  return Dim::of(size.value_or(dim));
}

// Gives the dimensions of inputs symbols that a plan can hold (plan.2), equal for equal names in
// the model. A name that is an expression in other names becomes that expression; a dynamic
// dimension without a name gets a symbol of its own.
void Importer::name_symbols() {
  auto plain = [](const std::string& s) { return plan::is_name(s); };
  for (const onnx::ValueInfo& v : graph_.inputs)
    for (const onnx::Dimension& d : v.shape)
      if (d.value < 0 && plain(d.name)) symbols_.emplace(d.name, DimExpr::symbol(d.name));
  for (const onnx::ValueInfo& v : graph_.inputs)
    for (const onnx::Dimension& d : v.shape) {
      if (d.value >= 0 || d.name.empty() || symbols_.contains(d.name)) continue;
      const std::optional<DimExpr> sum = DimExpr::parse(d.name);
      if (sum && !sum->constant() &&
          sum->all_symbols([&](auto& name) { return plain(name) && symbols_.contains(name); })) {
        symbols_.emplace(d.name, *sum);
        continue;
      }
      std::string made;
      for (char c : d.name) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        made += plain({c}) || (c >= '0' && c <= '9') ? c : '_';
      }
      const std::string name = fresh(made[0] >= '0' && made[0] <= '9' ? "_" + made : made);
      symbols_.emplace(d.name, DimExpr::symbol(name));
    }
}
std::string Importer::fresh(const std::string& name) {
  std::string made = name;
  auto used = [&](auto& s) { return s.second == DimExpr::symbol(made); };
  for (int i = 2; std::any_of(symbols_.begin(), symbols_.end(), used); ++i)
    made = name + "_" + std::to_string(i);
  return made;
}

Value Importer::absent() {
  if (!absent_) {
    OpBuilder::InsertionGuard guard(build_);
    build_.setInsertionPointToStart(outermost_ ? outermost_->getBlock() : build_.getInsertionBlock());
    absent_ = build_.create<AbsentOp>(build_.getUnknownLoc(), AbsentType::get(build_.getContext()));
  }
  return absent_;
}

Value Importer::weight(const std::string& given, const onnx::TensorRef& t) {
  OpBuilder::InsertionGuard guard(build_);
  if (outermost_) build_.setInsertionPoint(outermost_);
  // Sibling bodies may use one name for different weights.
  std::string name = given;
  while (int n = weights_[name]++) name += "#" + std::to_string(n + 1);
  Shape shape;
  for (int64_t d : t.shape) shape.push_back(Dim::of(d));
  const bool is_inline = t.file.empty(),
             long_one = is_inline && t.inline_data.size() > size_t{kSmallConstant};
  return build_.create<OnnxWeightOp>(
      build_.getUnknownLoc(), tensor_of(shape, element(t.data_type)), build_.getStringAttr(name),
      build_.getStringAttr(t.file),
      build_.getI64IntegerAttr(long_one ? inline_constants_.add(t.inline_data)
                                        : static_cast<int64_t>(t.offset)),
      build_.getI64IntegerAttr(static_cast<int64_t>(is_inline ? t.inline_data.size() : t.length)),
      is_inline && !long_one ? build_.getStringAttr(t.inline_data) : StringAttr());
}

DictionaryAttr Importer::tensor(const onnx::TensorRef& t) {
  return build_.getDictionaryAttr({build_.getNamedAttr("name", build_.getStringAttr(t.name)),
                                   build_.getNamedAttr("data_type", build_.getI64IntegerAttr(t.data_type)),
                                   build_.getNamedAttr("shape", build_.getDenseI64ArrayAttr(t.shape)),
                                   build_.getNamedAttr("file", build_.getStringAttr(t.file)),
                                   build_.getNamedAttr("offset", build_.getI64IntegerAttr(int64_t(t.offset))),
                                   build_.getNamedAttr("length", build_.getI64IntegerAttr(int64_t(t.length))),
                                   build_.getNamedAttr("data", build_.getStringAttr(t.inline_data))});
}

Attribute Importer::attribute(const onnx::AttrValue& value) {
  struct Visitor {
    Importer& self;
    Builder& b;
    Attribute operator()(int64_t v) { return b.getI64IntegerAttr(v); }
    Attribute operator()(float v) { return b.getF32FloatAttr(v); }
    Attribute operator()(const std::string& v) { return b.getStringAttr(v); }
    Attribute operator()(const std::vector<int64_t>& v) { return b.getDenseI64ArrayAttr(v); }
    Attribute operator()(const std::vector<float>& v) { return b.getDenseF32ArrayAttr(v); }
    Attribute operator()(const std::vector<std::string>& v) {
      SmallVector<StringRef> refs(v.begin(), v.end());
      return b.getStrArrayAttr(refs);
    }
    Attribute operator()(const onnx::TensorRef& v) { return self.tensor(v); }
  };
  return std::visit(Visitor{*this, build_}, value);
}

// A fused node is imported as the nodes that it stands for, with its number: the program has the
// node of the file.
void Importer::node(const onnx::Node& n) {
  const std::string number = std::to_string(nodes_++);
  const auto rank_of = [&](const std::string& name) {
    const auto known = values_.find(name);
    const auto type = known == values_.end() ? nullptr : dyn_cast<RankedTensorType>(known->second.getType());
    if (type) return static_cast<int>(type.getRank());
    const auto noted = ranks_.find(name);
    return noted == ranks_.end() ? -1 : noted->second;
  };
  onnx::note_ranks(n, rank_of, ranks_);
  if (const auto parts = onnx::unfused(n, rank_of)) {
    for (const onnx::Node& part : *parts) node(part, number);
  } else {
    node(n, number);
  }
}

void Importer::node(const onnx::Node& n, const std::string& number) {
  // A node `Constant` is imported as an initializer.
  if (std::optional<onnx::TensorRef> t = onnx::constant_of(n)) {
    values_[n.outputs[0]] = weight(n.outputs[0], inline_constants_.owned.emplace_back(*std::move(t)));
    return;
  }
  SmallVector<Value> inputs;
  for (const std::string& in : n.inputs) inputs.push_back(value(in));
  SmallVector<Type> types;
  for (const std::string& out : n.outputs)
    types.push_back(out.empty() ? AbsentType::get(build_.getContext()) : type_of(out));
  std::string name = n.name;
  for (const std::string& out : n.outputs)
    if (name.empty()) name = out;
  SmallVector<NamedAttribute> attributes, others;
  for (const auto& [key, v] : n.attributes) attributes.push_back(build_.getNamedAttr(key, attribute(v)));
  for (const auto& [key, kind] : n.other_attributes)
    others.push_back(build_.getNamedAttr(key, build_.getStringAttr(kind)));
  auto opset = graph_.opsets.find(n.domain);
  SmallVector<StringRef> bodies;
  for (const onnx::Body& b : n.bodies) bodies.push_back(b.attribute);
  auto op = build_.create<NodeOp>(
      location_of(build_.getStringAttr(name), build_.getStringAttr(n.op_type), build_.getStringAttr(number)),
      types, build_.getStringAttr(n.op_type), inputs, build_.getStringAttr(name),
      build_.getStringAttr(n.domain),
      build_.getI64IntegerAttr(n.opset                        ? n.opset
                               : opset == graph_.opsets.end() ? 0
                                                              : opset->second),
      build_.getDictionaryAttr(attributes),
      others.empty() ? DictionaryAttr() : build_.getDictionaryAttr(others),
      bodies.empty() ? ArrayAttr() : build_.getStrArrayAttr(bodies), static_cast<unsigned>(bodies.size()));
  const bool is_outermost = !outermost_;
  if (is_outermost) outermost_ = op;
  for (size_t i = 0; i < n.bodies.size(); ++i) body(n.bodies[i], op.getBodies()[i]);
  if (is_outermost) outermost_ = nullptr;
  for (size_t i = 0; i < n.outputs.size(); ++i)
    if (!n.outputs[i].empty()) values_[n.outputs[i]] = op.getOutputs()[i];
}

// The names that a body defines are visible inside it only.
void Importer::body(const onnx::Body& b, Region& region) {
  OpBuilder::InsertionGuard guard(build_);
  Block& block = region.emplaceBlock();
  build_.setInsertionPointToStart(&block);
  std::vector<std::string> defined;
  for (const onnx::ValueInfo& v : b.graph.values) types_[v.name] = type_of(v);
  for (const onnx::ValueInfo& v : b.graph.outputs) types_.emplace(v.name, type_of(v));
  for (const onnx::ValueInfo& v : b.graph.inputs) {
    values_[v.name] = block.addArgument(type_of(v), build_.getUnknownLoc());
    defined.push_back(v.name);
  }
  for (const onnx::TensorRef& t : b.graph.initializers) {
    values_[t.name] = weight(t.name, t);
    defined.push_back(t.name);
  }
  for (const onnx::Node& n : b.graph.nodes) {
    node(n);
    defined.insert(defined.end(), n.outputs.begin(), n.outputs.end());
  }
  SmallVector<Value> results;
  for (const onnx::ValueInfo& v : b.graph.outputs) results.push_back(value(v.name));
  build_.create<YieldOp>(build_.getUnknownLoc(), results);
  for (const std::string& name : defined) types_.erase(name), values_.erase(name);
}

// Sets all names at once: setting one would uniquify a new list of all, which lives as long as the
// context.
SmallVector<DictionaryAttr> Importer::names(const std::vector<onnx::ValueInfo>& ports) {
  SmallVector<DictionaryAttr> all;
  for (const onnx::ValueInfo& v : ports)
    all.push_back(build_.getDictionaryAttr(build_.getNamedAttr("onnx.name", build_.getStringAttr(v.name))));
  return all;
}

OwningOpRef<ModuleOp> Importer::run() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(build_.getUnknownLoc());
  name_symbols();
  for (const onnx::ValueInfo& v : graph_.values) types_[v.name] = type_of(v);
  for (const onnx::ValueInfo& v : graph_.outputs) types_[v.name] = type_of(v);
  SmallVector<Type> inputs;
  for (const onnx::ValueInfo& v : graph_.inputs) inputs.push_back(type_of(v, true));
  build_.setInsertionPointToStart(module->getBody());
  auto function =
      build_.create<func::FuncOp>(build_.getUnknownLoc(), "main", build_.getFunctionType(inputs, {}));
  Block* body = function.addEntryBlock();
  build_.setInsertionPointToStart(body);
  function.setAllArgAttrs(names(graph_.inputs));
  for (size_t i = 0; i < graph_.inputs.size(); ++i) values_[graph_.inputs[i].name] = body->getArgument(i);
  for (const onnx::TensorRef& t : graph_.initializers) values_[t.name] = weight(t.name, t);
  for (const onnx::Node& n : graph_.nodes) node(n);

  SmallVector<Value> results;
  SmallVector<Type> types;
  for (const onnx::ValueInfo& v : graph_.outputs) {
    results.push_back(value(v.name));
    types.push_back(results.back().getType());
  }
  function.setFunctionType(build_.getFunctionType(inputs, types));
  function.setAllResultAttrs(names(graph_.outputs));
  build_.create<func::ReturnOp>(build_.getUnknownLoc(), results);
  return module;
}

}  // namespace

OwningOpRef<ModuleOp> import_graph(MLIRContext& context, const onnx::Graph& graph,
                                   InlineConstants& inline_constants, const DimConstraints& constraints) {
  return Importer(context, graph, inline_constants, constraints).run();
}

}  // namespace invar::compiler
