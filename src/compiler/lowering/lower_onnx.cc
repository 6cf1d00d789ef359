// The pass onnx-to-repro: lowers the graph in its order, so that every rule sees operands that are
// lowered and typed. ONNX operations that are left and used afterwards are refused: an operation is
// legal only if a rule lowered it.
#include "compiler/lowering/lower_onnx.h"
#include "llvm/ADT/StringSet.h"
#include "onnx/tensor.h"

namespace invar::compiler {
namespace {

// The newest whose text on the covered operators was read (onnx 1.23).
constexpr int64_t kNewestOpset = 28;

void convert_weight(OnnxWeightOp weight) {
  OpBuilder build(weight);
  auto made = build.create<ReproWeightOp>(weight.getLoc(), weight.getType(), weight.getNameAttr(),
                                          weight.getFileAttr(), weight.getOffsetAttr(),
                                          weight.getLengthAttr(), weight.getDataAttr(), UnitAttr());
  weight.replaceAllUsesWith(made.getOut());
  weight.erase();
}

std::string operator_name(NodeOp node) {
  return node.getOpType().str() + " (domain " +
         (node.getDomain().empty() ? "ai.onnx" : node.getDomain().str()) + " opset " +
         std::to_string(node.getVersion());
}
// Whether an operand is the result of a node that was not lowered, so that its type is unknown.
bool has_unlowered_operand(NodeOp node) {
  return llvm::any_of(node.getInputs(), [](Value v) { return isa_and_nonnull<NodeOp>(v.getDefiningOp()); });
}

// Whether the computed element type is the declared one.
bool has_declared_element(Type declared, Type computed) {
  auto d = dyn_cast<TensorType>(declared), c = dyn_cast<TensorType>(computed);
  return !d || !c || d.getElementType() == c.getElementType();
}

// Whether the computed shape is an instance of the declared one. Symbols are not compared: the
// model names its own.
bool has_declared_shape(Type declared, Type computed) {
  auto d = dyn_cast<RankedTensorType>(declared), c = dyn_cast<RankedTensorType>(computed);
  if (!d || !c) return true;
  if (d.getRank() != c.getRank()) return false;
  for (auto [x, y] : llvm::zip(d.getShape(), c.getShape()))
    if (!ShapedType::isDynamic(x) && !ShapedType::isDynamic(y) && x != y) return false;
  return true;
}

// The operand that says a number of parts, or a position in a list; null: none does.
Value decider_of_list(NodeOp node) {
  const auto type = node.getOpType();
  const unsigned at = type == "SequenceInsert" ? 2 : 1;
  const bool decides = type == "SplitToSequence" || type == "SequenceAt" || type == "SequenceErase" ||
                       type == "SequenceInsert";
  return node.getDomain().empty() && decides && node.getInputs().size() > at ? node.getInputs()[at] : Value();
}

// What can be done about a node whose operator has no rule.
const char* way_out(NodeOp node) {
  const bool standard = node.getDomain().empty(), of_lists = node.getOpType().contains("Sequence");
  if (standard && of_lists && !node.getOpType().starts_with("Reverse"))
    return ": the number of a list's tensors, or a position, follows neither from the file nor from bound "
           "inputs (--bind, --dim)";
  if (!standard && !node.getDomain().starts_with("ai.onnx") && node.getDomain() != "com.microsoft")
    return ": export the model with operators of ONNX, or with this one as a function in the file";
  return "";
}

class LowerOnnxPass : public PassWrapper<LowerOnnxPass, OperationPass<ModuleOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerOnnxPass)
  LowerOnnxPass(ConversionReport* report, bool stateless) : report_(report), stateless_(stateless) {}
  StringRef getArgument() const final { return "onnx-to-repro"; }
  StringRef getDescription() const final { return "Convert ONNX nodes to reproducible operations"; }
  void getDependentDialects(DialectRegistry& registry) const final { registry.insert<ReproDialect>(); }
  void runOnOperation() final {
    SmallVector<func::FuncOp> functions(
        getOperation().getOps<func::FuncOp>());  // a copy: lowering adds the functions of bodies
    for (func::FuncOp function : functions) run(function);
    remove_unused_bodies();
  }

 private:
  void run(func::FuncOp);
  void remove_unused_bodies();
  void refuse_node(Operation*, const Error&);
  void check_declared_types(func::FuncOp, const FunctionLoweringState&);
  void erase_state_ports(Conversion&);
  ConversionReport* report_;
  std::map<std::string, size_t> listed_;  // operator and reason -> index in refused_->list
  bool stateless_;
};

// What does not fit, where sizes are numbers: "; operands [2, 3], [4, 3]". Nothing where all are
// scalars, which have no sizes.
std::string operand_shapes(NodeOp node) {
  std::string all;
  bool has_sizes = false;
  for (const Value operand : node.getInputs()) {
    if (isa_and_nonnull<AbsentOp>(operand.getDefiningOp())) continue;
    const auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (!type || !type.hasStaticShape()) return "";
    all += (all.empty() ? "; operands " : ", ") + onnx::shape_text(type.getShape());
    has_sizes |= type.getRank() > 0;
  }
  return has_sizes ? all : "";
}

void LowerOnnxPass::refuse_node(Operation* op, const Error& error) {
  signalPassFailure();
  auto node = dyn_cast<NodeOp>(op);
  if (!report_) {
    op->emitError(node ? at(node, error).message : error.message);
    return;
  }
  if (!node) {
    report_->refused.push_back({.code = error.code, .op = "", .reason = error.message});
    return;
  }
  RefusedNodes refusal{error.code, operator_name(node), node.getName().str(), error.message};
  if (error.code == Code::bad_input) refusal.reason += operand_shapes(node);
  const auto [known, is_new] = listed_.emplace(refusal.op + "\n" + refusal.reason, report_->refused.size());
  if (is_new)
    report_->refused.push_back(std::move(refusal));
  else
    ++report_->refused[known->second].nodes;
}

// Erases the arguments and results that became session state.
void LowerOnnxPass::erase_state_ports(Conversion& conversion) {
  func::ReturnOp end = conversion.end();
  auto function = cast<func::FuncOp>(end->getParentOp());
  end->eraseOperands(conversion.state().state_results);
  function.eraseResults(conversion.state().state_results);
  conversion.remove_unused();
  function.eraseArguments(conversion.state().state_arguments);
}

void LowerOnnxPass::run(func::FuncOp function) {
  Conversion conversion(function, stateless_,
                        report_ && report_->learn_constraints ? &report_->constraints : nullptr,
                        report_ ? report_->differing_ranks : DifferingRanks::refused);
  func::ReturnOp end = conversion.end();
  const FunctionLoweringState& state = conversion.state();
  llvm::DenseMap<Operation*, Error>& failed = conversion.failed();
  conversion.convert(&function.front().front(), end);
  if (report_) report_->ranks_differ |= conversion.ranks_differ();
  conversion.remove_unused();
  for (Operation& op : function.front())
    if (auto it = failed.find(&op); it != failed.end()) refuse_node(&op, it->second);
  for (const Error& error : conversion.constraint_errors()) refuse_node(end, error);
  if (!failed.empty() || !conversion.constraint_errors().empty()) return;
  if (!function->hasAttr(kBody)) apply_unclamped_slices(function.front(), state);
  materialize_dims(function.front());
  check_declared_types(function, state);
  erase_state_ports(conversion);
  SmallVector<Type> types(end->getOperandTypes());
  function.setFunctionType(FunctionType::get(&getContext(), function.getArgumentTypes(), types));
  for (Operation& op : function.front())
    if (!isa<func::ReturnOp>(op) && !isa<ReproDialect>(op.getDialect()))
      refuse_node(&op,
                  {Code::internal, "operation " + op.getName().getStringRef().str() + " was not converted"});
}

// Another element type is an error. Another shape is remarked on, since exporters declare that of
// the traced example, and the graph decides.
void LowerOnnxPass::check_declared_types(func::FuncOp function, const FunctionLoweringState& state) {
  auto end = cast<func::ReturnOp>(function.front().getTerminator());
  for (unsigned i = 0; i < end->getNumOperands(); ++i) {
    const Type declared = function.getResultTypes()[i], computed = end->getOperand(i).getType();
    if (state.state_results[i]) continue;
    auto name = function.getResultAttrOfType<StringAttr>(i, "onnx.name");
    const std::string output = "output \"" + (name ? name.str() : std::to_string(i)) + "\": ";
    if (!has_declared_element(declared, computed))
      refuse_node(end, bad_input(output + "its declared element type is " +
                                 text_of_type(getElementTypeOrSelf(declared)) + ", and the graph computes " +
                                 text_of_type(getElementTypeOrSelf(computed))));
    else if (!function->hasAttr(kBody) && !has_declared_shape(declared, computed))
      end->emitRemark((output + "its declared shape is " + text_of(shape_of(declared)) +
                       ", and the graph computes " + text_of(shape_of(computed)) + ", which holds")
                          .text);
  }
}

// Erases the bodies of attempts that were abandoned.
void LowerOnnxPass::remove_unused_bodies() {
  llvm::StringSet<> used;
  SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
  // Bodies precede the functions that run them.
  for (func::FuncOp function : llvm::reverse(functions)) {
    if (function->hasAttr(kBody) && !used.contains(function.getName())) {
      function.erase();
      continue;
    }
    for (auto flow : function.front().getOps<ReproFlowOp>())
      for (Attribute body : flow.getBodies()) used.insert(cast<FlatSymbolRefAttr>(body).getValue());
  }
}

}  // namespace

Error at(NodeOp node, const Error& error) {
  return error.around(operator_name(node) + ", node \"" + node.getName().str() + "\"): ");
}

Error joined(Error error, const Error& other) {
  if (other.kind == ErrorKind::other) return error;
  // Without a subject it says already what to give.
  if (error.kind == ErrorKind::other || other.subject.empty())
    error.kind = other.kind, error.subject = other.subject;
  else if (!error.subject.empty())
    error.subject += " " + other.subject;
  return error;
}

Status Conversion::check_supported(NodeOp op) {
  const ControlFlowEntry* flow = find_control_flow(op);
  const RuleRegistry::Entry* entry = RuleRegistry::all().find(op.getDomain(), op.getOpType());
  if (RuleRegistry::all().find_expansion(op.getDomain(), op.getOpType())) return {};
  if (!entry && !flow) {
    const std::string refusal = std::string("no reproducible kernel") + way_out(op);
    const Value decides = decider_of_list(op);
    return decides ? node(op).not_constant(decides, refusal) : not_covered(refusal);
  }
  const int64_t version = op.getVersion(), since = flow ? flow->since : entry->since;
  if (version >= since && version <= kNewestOpset) return {};
  return not_covered("covered are opsets " + std::to_string(since) + " to " + std::to_string(kNewestOpset));
}

// Replaces a node by others, if it has an expansion: the first of them, else null.
Result<Operation*> Conversion::expand_node(NodeOp op) {
  const Expansion rule = RuleRegistry::all().find_expansion(op.getDomain(), op.getOpType());
  if (!rule) return static_cast<Operation*>(nullptr);
  Operation* before = op->getPrevNode();
  NodeView view(op, end_, state_, /*typeless=*/true);
  NodeExpansion expansion(op, view);
  INVAR_TRY(const SmallVector<Value> made, rule(expansion));
  for (size_t i = 0; i < made.size() && i < op.getOutputs().size(); ++i)
    op.getOutputs()[i].replaceAllUsesWith(made[i]);
  Operation* first = before ? before->getNextNode() : &op->getBlock()->front();
  op.erase();
  return first;
}

// Operators, numbers of operands and results, attributes, and what else a rule refuses before it
// reads an operand's type; the same for the nodes of its bodies.
Status Conversion::check_without_types(NodeOp op) {
  INVAR_CHECK_OK(check_supported(op));
  if (const RuleRegistry::Entry* entry = RuleRegistry::all().find(op.getDomain(), op.getOpType());
      entry && !find_control_flow(op)) {
    // The rule runs on a state of its own, and what it emits is erased.
    auto function = cast<func::FuncOp>(end_->getParentOp());
    FunctionLoweringState apart{llvm::BitVector(function.getNumArguments()),
                                llvm::BitVector(end_->getNumOperands()),
                                /*stateless=*/true, DataDependentDims(function)};
    NodeView node(op, end_, apart, /*typeless=*/true);
    Operation* before = op->getPrevNode();
    const Status status = entry->rule(node);
    while (op->getPrevNode() != before) op->getPrevNode()->erase();
    return status || node.read_operand_types() ? Status() : status;
  }
  std::optional<Error> error;
  for (Region& body : op.getBodies())
    for (auto inner : body.front().getOps<NodeOp>()) {
      const Status status = check_without_types(inner);
      if (status) continue;
      const Error found =
          at(inner, status.error()).around((error ? error->message + "; " : "") + "within it: ");
      error = error ? joined(found, *error) : found;
    }
  return error ? Status(*error) : Status();
}

Status Conversion::convert_node(NodeOp op) {
  // The operand's node is refused already.
  if (has_unlowered_operand(op)) return check_without_types(op);
  INVAR_CHECK_OK(check_supported(op));
  if (const ControlFlowEntry* flow = find_control_flow(op)) return (this->*flow->rule)(op);
  const RuleRegistry::Entry* entry = RuleRegistry::all().find(op.getDomain(), op.getOpType());
  if (!op.getBodies().empty()) return not_covered("attributes that are graphs");
  NodeView node(op, end_, state_);
  INVAR_CHECK_OK(node.check_operand_types(entry->types));
  Status status = entry->rule(node);
  if (!status && status.error().code == Code::not_covered && node.widen_operands(entry->widens)) {
    Status wide = entry->rule(node);
    if (!wide) return status;
    status = wide;
  }
  if (status) node.commit();
  return status;
}

Error Conversion::with_bind_hint(NodeOp op, const Error& error) {
  if (error.code != Code::not_covered) return error;
  const Value decides = state_.dims.value_of(error.subject);
  return decides ? node(op).not_constant(decides, error.message) : error;
}

void Conversion::convert(Operation* first, Operation* last) {
  for (Operation *op = first, *next; op != last; op = next) {
    next = op->getNextNode();
    if (auto weight = dyn_cast<OnnxWeightOp>(op)) {
      convert_weight(weight);
      continue;
    }
    auto node = dyn_cast<NodeOp>(op);
    if (!node) continue;
    Result<Operation*> expanded = expand_node(node);
    if (!expanded || *expanded) {
      if (expanded)
        next = *expanded;
      else
        failed_.insert({node, expanded.error()});
      continue;
    }
    Operation* before = op->getPrevNode();
    const auto constraints = state_.constraints;
    const size_t failed = failed_.size();
    for (Status s = convert_node(node); !s; s = convert_node(node)) {
      Error error = with_bind_hint(node, s.error());
      if (!node.getBodies().empty()) erase_created(before, node);
      if (learn_constraints(error)) {
        constraint_errors_.push_back(at(node, error));
        continue;
      }
      failed_.insert({node, error});
      break;
    }
    if (failed_.size() <= failed) state_.constraints = constraints;  // converted another way
  }
}

void Conversion::erase_created(Operation* before, NodeOp node) {
  llvm::DenseSet<Operation*> made;
  for (Operation* op = node->getPrevNode(); op != before; op = op->getPrevNode()) made.insert(op);
  state_.dims.forget([&](Value v) { return made.contains(v.getDefiningOp()); });
  while (node->getPrevNode() != before) {
    failed_.erase(node->getPrevNode());
    node->getPrevNode()->erase();
  }
}

void Conversion::remove_unused() {
  Block& block = *end_->getBlock();
  for (Operation& op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isa<NodeOp, AbsentOp>(op) && op.use_empty()) {
      failed_.erase(&op);
      op.erase();
    }
}

void materialize_dims(Block& block) {
  std::map<std::pair<const void*, const void*>, Value> made;
  for (Operation& op : llvm::make_early_inc_range(block)) {
    auto sizes = dyn_cast<ReproSizesOp>(op);
    if (!sizes) continue;
    if (!sizes.use_empty()) {
      Value& value = made[{sizes.getSizes().getAsOpaquePointer(), sizes.getType().getAsOpaquePointer()}];
      OpBuilder build(sizes);
      if (!value) value = RuleRegistry::all().materialize_dims(build, sizes);
      sizes.replaceAllUsesWith(value);
    }
    sizes.erase();
  }
}

std::unique_ptr<Pass> lower_onnx_pass(ConversionReport* report, bool stateless) {
  return std::make_unique<LowerOnnxPass>(report, stateless);
}

}  // namespace invar::compiler
