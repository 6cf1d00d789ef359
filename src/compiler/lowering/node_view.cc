// NodeView: attributes, constant operands, emission and constant folding.
#include "compiler/lowering/node_view.h"

#include "compiler/dialects/constant_data.h"
#include "compiler/lowering/dynamic_shapes/shape_value_propagation.h"
#include "compiler/lowering/rule_registry.h"
#include "compiler/passes/constant_evaluator.h"

namespace invar::compiler {
namespace {

std::string quoted(llvm::StringRef name) {
  return "\"" + name.str() + "\"";
}

template <class T>
Error wrong_kind(llvm::StringRef name, const T& kind) {
  return bad_input("attribute " + quoted(name) + " is not " + kind);
}

}  // namespace

Status NodeView::expect(unsigned least, unsigned most, llvm::ArrayRef<llvm::StringRef> attributes,
                        unsigned results) {
  if (Status parts = check_arity_and_attributes(least, most, attributes, results); !parts) {
    read_operand_types_ = false;  // whatever the rule did before: this needs no types
    return parts;
  }
  for (Value v : op_.getInputs())
    if (!typeless_ && !isa<RankedTensorType, AbsentType>(v.getType()))
      return not_covered("an operand has no known shape and element type");
  return {};
}

Status NodeView::check_arity_and_attributes(unsigned least, unsigned most,
                                            llvm::ArrayRef<llvm::StringRef> attributes,
                                            unsigned results) const {
  for (unsigned i = 0; i < least; ++i)
    if (!has(i)) return bad_input("operand " + std::to_string(i) + " is missing");
  for (unsigned i = most; i < op_.getInputs().size(); ++i)
    if (has(i)) return not_covered("operand " + std::to_string(i) + " is not covered");
  for (unsigned i = results; i < op_.getOutputs().size(); ++i)
    if (!out(i).use_empty()) return not_covered("result " + std::to_string(i) + " is not covered");
  if (op_.getOutputs().empty()) return bad_input("it has no results");
  // A hint on memory, which every operator could have before opset 6.
  const bool hinted = version() < 6 && op_.getDomain().empty();
  for (NamedAttribute a : op_.getParams())
    if (!(hinted && a.getName() == "consumed_inputs") &&
        std::find(attributes.begin(), attributes.end(), a.getName().getValue()) == attributes.end())
      return not_covered("attribute " + quoted(a.getName()) + " is not covered");
  if (auto other = op_.getOtherParams())
    for (NamedAttribute a : *other)
      return not_covered("attribute " + quoted(a.getName()) + " of kind " +
                         cast<StringAttr>(a.getValue()).str() + " is not covered");
  return {};
}

Value NodeView::in(unsigned i) const {
  if (typeless_ && has(i)) {
    read_operand_types_ = true;
    // Rules expect tensors. What they emit for this dummy is erased.
    return OpBuilder(op_)
        .create<UnrealizedConversionCastOp>(
            op_.getLoc(), RankedTensorType::get({}, Float32Type::get(op_.getContext())), ValueRange())
        .getResult(0);
  }
  if (i < op_.getInputs().size()) return op_.getInputs()[i];
  return OpBuilder(op_).create<AbsentOp>(op_.getLoc(), AbsentType::get(op_.getContext()));
}

bool NodeView::has(unsigned i) const {
  return i < op_.getInputs().size() && !isa<AbsentType>(op_.getInputs()[i].getType());
}

Result<int64_t> NodeView::int_attr(llvm::StringRef name, int64_t fallback) const {
  Attribute a = attribute(name);
  if (!a) return fallback;
  if (auto v = dyn_cast<IntegerAttr>(a)) return v.getInt();
  return wrong_kind(name, "an integer");
}

Result<float> NodeView::float_attr(llvm::StringRef name, float fallback) const {
  Attribute a = attribute(name);
  if (!a) return fallback;
  if (auto v = dyn_cast<FloatAttr>(a)) return v.getValue().convertToFloat();
  return wrong_kind(name, "a float");
}

Result<std::vector<int64_t>> NodeView::ints_attr(llvm::StringRef name) const {
  Attribute a = attribute(name);
  if (!a) return std::vector<int64_t>{};
  if (auto v = dyn_cast<DenseI64ArrayAttr>(a)) return v.asArrayRef().vec();
  return wrong_kind(name, "a list of integers");
}

Status NodeView::require_attr(llvm::StringRef name, int64_t value) const {
  INVAR_TRY(int64_t v, int_attr(name, value));
  if (v == value) return {};
  return not_covered("attribute " + quoted(name) + " is " + std::to_string(v) + "; covered is " +
                     std::to_string(value));
}

Status NodeView::require_attr(llvm::StringRef name, float value) const {
  INVAR_TRY(float v, float_attr(name, value));
  if (v == value) return {};
  return not_covered("attribute " + quoted(name) + " is " + std::to_string(v) + "; covered is " +
                     std::to_string(value));
}

Result<std::vector<int64_t>> NodeView::constant_ints(unsigned i) const {
  auto weight = in(i).getDefiningOp<ReproWeightOp>();
  if (!weight || !weight.getData()) return not_constant(i);
  auto type = cast<RankedTensorType>(weight.getType());
  bool wide = type.getElementType().isSignlessInteger(64);
  if (type.getRank() > 1) return bad_input("operand " + std::to_string(i) + " is not a list");
  if (!wide && !type.getElementType().isSignlessInteger(32))
    return not_covered("operand " + std::to_string(i) + " is neither i64 nor i32");
  return integers_from_bytes(std::string_view(*weight.getData()), wide ? 8 : 4);
}

Error NodeView::not_constant(unsigned i, llvm::StringRef what) const {
  return not_constant(in(i), "operand " + std::to_string(i) + " is not " + what.str() + " in the model file");
}

Error NodeView::not_constant(Value value, std::string message) const {
  auto function = cast<func::FuncOp>(end_->getParentOp());
  llvm::BitVector inputs(function.getNumArguments());
  llvm::SetVector<Value> reached;
  reached.insert(value);
  for (size_t at = 0; at < reached.size(); ++at) {
    if (auto argument = dyn_cast<BlockArgument>(reached[at]);
        argument && argument.getOwner() == &function.front())
      inputs.set(argument.getArgNumber());
    if (Operation* op = reached[at].getDefiningOp())
      for (Value v : op->getOperands()) reached.insert(v);
  }
  ErrorKind kind = ErrorKind::other;
  for (unsigned input : inputs.set_bits())
    if (auto name = function.getArgAttrOfType<StringAttr>(input, "onnx.name")) {
      message += (input == static_cast<unsigned>(inputs.find_first())
                      ? "; give what it depends on when compiling: --bind "
                      : " --bind ") +
                 name.str() + "=FILE.npy";
      kind = ErrorKind::not_constant;
    }
  return {Code::not_covered, std::move(message), {}, kind};
}

std::optional<std::string> NodeView::constant_bytes(unsigned i) const {
  auto weight = in(i).getDefiningOp<ReproWeightOp>();
  return weight && weight.getData() ? std::optional(weight.getData()->str()) : std::nullopt;
}

std::optional<std::vector<DimExpr>> NodeView::known_dim_values(Value v) {
  return compiler::known_dim_values(v);
}

Value NodeView::constant(llvm::StringRef bytes, DType dtype, llvm::ArrayRef<int64_t> shape) {
  return make_constant(build_, op_.getLoc(), bytes, dtype, shape);
}

Value NodeView::constant(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  std::string bytes;
  for (int i = 0; i < 4; ++i, bits >>= 8) bytes += static_cast<char>(bits);
  return constant(bytes, DType::f32);
}

Value NodeView::constant(llvm::ArrayRef<int64_t> list) {
  return constant(bytes_of(list, 8), DType::i64, static_cast<int64_t>(list.size()));
}

Value NodeView::size_tensor(llvm::ArrayRef<DimExpr> list, llvm::ArrayRef<int64_t> shape) {
  std::vector<int64_t> numbers;
  for (const DimExpr& p : list)
    if (const std::optional<int64_t> n = p.constant()) numbers.push_back(*n);
  if (numbers.size() == list.size()) return constant(bytes_of(numbers, 8), DType::i64, shape);
  return build_.create<ReproSizesOp>(op_.getLoc(), RankedTensorType::get(shape, build_.getI64Type()),
                                     DimsAttr::get(context(), DimList(list.begin(), list.end())));
}

Value NodeView::fold_result(Operation* made) {
  std::optional<std::string> bytes;
  if (state_.folded_bytes < kMaxFoldedBytes) bytes = fold_constant(made);
  auto type = cast<RankedTensorType>(made->getResult(0).getType());
  if (!bytes) {
    const std::optional<std::vector<DimExpr>> list = propagate_dims(made);
    if (!list) return made->getResult(0);
    if (type.getElementType().isSignlessInteger(64)) {
      Value known = size_tensor(*list, type.getShape());
      made->erase();
      return known;
    }
    std::vector<int64_t> numbers;
    for (const DimExpr& p : *list) {
      if (!p.constant()) return made->getResult(0);
      numbers.push_back(*p.constant());
    }
    bytes = bytes_of(numbers, size_of(*dtype_of(type.getElementType())));
  }
  state_.folded_bytes += static_cast<int64_t>(bytes->size()) + 64;
  Value known = constant(*bytes, *dtype_of(type.getElementType()), type.getShape());
  made->erase();
  return known;
}

Result<int64_t> NodeView::normalize_axis(int64_t axis, size_t rank) {
  int64_t r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r)
    return bad_input("axis " + std::to_string(axis) + " is outside rank " + std::to_string(r));
  return axis < 0 ? axis + r : axis;
}

Result<Value> NodeView::make(llvm::StringRef op, ValueRange operands, llvm::ArrayRef<NamedAttribute> attrs,
                             Type type) {
  std::optional<Constraint> constraint;
  const Result<Operation*> made = make_checked(build_, op_.getLoc(), op, operands, attrs, type, &constraint);
  if (made) return fold_result(*made);
  if (type || made.error().code != Code::not_covered || constraint)
    return record_constraint(made.error(), constraint);
  const auto* traits = OperationName(op, context()).getInterface<ReproOp>();
  if (!traits || !traits->pointwise()) return made.error();
  INVAR_TRY(const SmallVector<Value> expanded, expand_operands_dynamic(operands));
  if (expanded.empty()) return made.error();
  INVAR_TRY(Operation * wide, make_checked(build_, op_.getLoc(), op, expanded, attrs, type));
  return fold_result(wide);
}

// Conversion::learn_constraints reads the constraint.
Error NodeView::record_constraint(const Error& error, const std::optional<Constraint>& constraint) {
  if (constraint) state_.constraints.emplace(constraint->symbol, constraint->size);
  return error;
}

Status NodeView::require_equal(const Dim& a, const Dim& b, const DimText& what) {
  if (known_equal(a, b)) return {};
  const DimText text = what + ": " + text_of(a) + " and " + text_of(b);
  if (a.constant() && b.constant()) return bad_input(text);
  return record_constraint(not_covered(text + " cannot be shown to be equal"), equality_constraint(a, b));
}

Status NodeView::replace(Value value) {
  replace(0, value);
  return {};
}

bool NodeView::can_become_state(unsigned in_index, unsigned out_index) const {
  auto past = dyn_cast_or_null<BlockArgument>(in(in_index));
  func::ReturnOp end = end_;  // MLIR handles are never const
  // A lowered Shape node reads no elements. It is erased before the argument is.
  const auto reads = [&](OpOperand& use) {
    auto node = dyn_cast<NodeOp>(use.getOwner());
    return !node || !node->use_empty() || node.getOpType() != "Shape";
  };
  return !state_.stateless && past && past.getOwner()->getParentOp() == end->getParentOp() &&
         llvm::count_if(past.getUses(), reads) == 1 && out_index < num_results() &&
         out(out_index).hasOneUse() && *out(out_index).user_begin() == end.getOperation();
}

std::string NodeView::become_state(unsigned in_index, unsigned out_index) {
  const unsigned past = cast<BlockArgument>(in(in_index)).getArgNumber();
  state_.state_arguments.set(past);
  state_.state_results.set(out(out_index).use_begin()->getOperandNumber());
  return cast<func::FuncOp>(end_->getParentOp()).getArgAttrOfType<StringAttr>(past, "onnx.name").str();
}

}  // namespace invar::compiler
