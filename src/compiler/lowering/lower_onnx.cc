// onnx -> repro: one pass over the graph in its order. A node's operands are converted and typed before it, so every
// rule sees full shapes. Whatever is left of the onnx dialect afterwards, and alive, is refused: legality by absence.
#include "compiler/lowering/lower_onnx.h"
#include "llvm/ADT/StringSet.h"

namespace invar::compiler {
namespace {

constexpr int64_t kNewestOpset = 28;  // the newest whose text on the covered operators was read (onnx 1.23)

void convert_weight(OnnxWeightOp weight) {
  OpBuilder build(weight);
  auto made = build.create<ReproWeightOp>(weight.getLoc(), weight.getType(), weight.getNameAttr(),
                                          weight.getFileAttr(), weight.getOffsetAttr(),
                                          weight.getLengthAttr(), weight.getDataAttr(), UnitAttr());
  weight.replaceAllUsesWith(made.getOut());
  weight.erase();
}

std::string operator_of(NodeOp node) {
  return node.getOpType().str() + " (domain " +
         (node.getDomain().empty() ? "ai.onnx" : node.getDomain().str()) + " opset " +
         std::to_string(node.getVersion());
}
std::string place_of(NodeOp node) {
  return operator_of(node) + ", node \"" + node.getName().str() + "\"): ";
}
Error at(NodeOp node, const Error& error) {
  return {error.code, place_of(node) + error.message};
}

// Reads what an uncovered node left behind: of its operands no types are known.
bool unknown_operand(NodeOp node) {
  return llvm::any_of(node.getInputs(), [](Value v) { return isa_and_nonnull<NodeOp>(v.getDefiningOp()); });
}

// A declared type may leave things open; what it says must hold. Names of symbols are the model's own.
bool agree(Type declared, Type computed) {
  auto tensor = dyn_cast<TensorType>(declared);
  auto c = dyn_cast<RankedTensorType>(computed);
  if (!tensor || !c) return true;
  if (tensor.getElementType() != c.getElementType()) return false;
  auto d = dyn_cast<RankedTensorType>(declared);
  if (!d) return true;
  if (d.getRank() != c.getRank()) return false;
  for (auto [x, y] : llvm::zip(d.getShape(), c.getShape()))
    if (!ShapedType::isDynamic(x) && !ShapedType::isDynamic(y) && x != y) return false;
  return true;
}

class ToRepro : public PassWrapper<ToRepro, OperationPass<ModuleOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ToRepro)
  ToRepro(Refusals* refused, bool stateless) : refused_(refused), stateless_(stateless) {}
  StringRef getArgument() const final { return "onnx-to-repro"; }
  StringRef getDescription() const final { return "Convert ONNX nodes to reproducible operations"; }
  void getDependentDialects(DialectRegistry& registry) const final { registry.insert<ReproDialect>(); }
  void runOnOperation() final {
    SmallVector<func::FuncOp> functions(
        getOperation().getOps<func::FuncOp>());  // bodies come to stand among them
    for (func::FuncOp function : functions) run(function);
    remove_unused_bodies();
  }

 private:
  void run(func::FuncOp);
  void remove_unused_bodies();
  void refuse_node(Operation*, const Error&);
  void take_away(Conversion&);
  Refusals* refused_;
  std::map<std::string, size_t> listed_;  // operator and reason -> its place in the list
  bool stateless_;
};

void ToRepro::refuse_node(Operation* op, const Error& error) {
  signalPassFailure();
  if (!refused_) {
    op->emitError(error.message);
    return;
  }
  auto node = dyn_cast<NodeOp>(op);
  if (!node) {
    refused_->list.push_back({.code = error.code, .op = "", .reason = error.message});
    return;
  }
  Refusal refusal{error.code, operator_of(node), node.getName().str(),
                  error.message.substr(place_of(node).size())};
  const auto [known, is_new] = listed_.emplace(refusal.op + "\n" + refusal.reason, refused_->list.size());
  if (is_new)
    refused_->list.push_back(std::move(refusal));
  else
    ++refused_->list[known->second].nodes;
}

// Removes ports that became memory.
void ToRepro::take_away(Conversion& conversion) {
  func::ReturnOp end = conversion.end();
  auto function = cast<func::FuncOp>(end->getParentOp());
  end->eraseOperands(conversion.ports().results);
  function.eraseResults(conversion.ports().results);
  conversion.remove_unused();
  function.eraseArguments(conversion.ports().arguments);
}

void ToRepro::run(func::FuncOp function) {
  Conversion conversion(function, stateless_, refused_ && refused_->settles ? &refused_->settled : nullptr);
  func::ReturnOp end = conversion.end();
  const Ports& ports = conversion.ports();
  llvm::DenseMap<Operation*, Error>& failed = conversion.failed();
  conversion.convert(&function.front().front(), end);
  conversion.remove_unused();
  for (Operation& op : function.front())
    if (auto it = failed.find(&op); it != failed.end()) refuse_node(&op, it->second);
  for (const Error& error : conversion.unsettled()) refuse_node(end, error);
  if (!failed.empty() || !conversion.unsettled().empty()) return;
  if (!function->hasAttr(kBody)) take_unclamped(function.front(), ports);
  measure(function.front());
  for (unsigned i = 0; i < end->getNumOperands(); ++i)
    if (!ports.results[i] && !agree(function.getResultTypes()[i], end->getOperand(i).getType())) {
      auto name = function.getResultAttrOfType<StringAttr>(i, "onnx.name");
      refuse_node(end, bad_input("output \"" + (name ? name.str() : std::to_string(i)) +
                                 "\": its declared shape or element type is not what the graph computes"));
    }
  take_away(conversion);
  SmallVector<Type> types(end->getOperandTypes());
  function.setFunctionType(FunctionType::get(&getContext(), function.getArgumentTypes(), types));
  for (Operation& op : function.front())
    if (!isa<func::ReturnOp>(op) && !isa<ReproDialect>(op.getDialect()))
      refuse_node(&op,
                  {Code::internal, "operation " + op.getName().getStringRef().str() + " was not converted"});
}

// Of control flow that was tried otherwise.
void ToRepro::remove_unused_bodies() {
  llvm::StringSet<> used;
  SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
  for (func::FuncOp function : llvm::reverse(functions)) {  // bodies stand before what runs them
    if (function->hasAttr(kBody) && !used.contains(function.getName())) {
      function.erase();
      continue;
    }
    for (auto flow : function.front().getOps<ReproFlowOp>())
      for (Attribute body : flow.getBodies()) used.insert(cast<FlatSymbolRefAttr>(body).getValue());
  }
}

}  // namespace

// That there is a rule for an operator of this opset.
Status Conversion::covered(NodeOp op) {
  const FlowEntry* flow = find_flow(op);
  const Rooms::Entry* entry = Rooms::all().find(op.getDomain(), op.getOpType());
  if (!entry && !flow) return not_covered("no reproducible kernel");
  const int64_t version = op.getVersion(), since = flow ? flow->since : entry->since;
  if (version >= since && version <= kNewestOpset) return {};
  return not_covered("covered are opsets " + std::to_string(since) + " to " + std::to_string(kNewestOpset));
}

// What can be said of a node, and of those in its graphs, without the types of operands: the operators, how many operands and results
// there are, attributes, and what else a rule refuses before it looks at an operand.
Status Conversion::surveyed(NodeOp op) {
  INVAR_CHECK_OK(covered(op));
  if (const Rooms::Entry* entry = Rooms::all().find(op.getDomain(), op.getOpType());
      entry && !find_flow(op)) {
    // What the rule notes and makes is of nothing.
    auto function = cast<func::FuncOp>(end_->getParentOp());
    Ports apart{llvm::BitVector(function.getNumArguments()), llvm::BitVector(end_->getNumOperands()),
                /*stateless=*/true, Bound(function)};
    Node node(op, end_, apart, /*typeless=*/true);
    Operation* before = op->getPrevNode();
    const Status status = entry->rule(node);
    while (op->getPrevNode() != before) op->getPrevNode()->erase();
    return status || node.looked() ? Status() : status;
  }
  std::optional<Error> error;
  for (Region& body : op.getBodies())
    for (auto inner : body.front().getOps<NodeOp>()) {
      const Status status = surveyed(inner);
      if (status) continue;
      const Error found = at(inner, status.error());
      error = Error{found.code, (error ? error->message + "; " : "") + "within it: " + found.message};
    }
  return error ? Status(*error) : Status();
}

Status Conversion::convert_node(NodeOp op) {
  if (unknown_operand(op)) return surveyed(op);  // what makes it is on the list
  INVAR_CHECK_OK(covered(op));
  if (const FlowEntry* flow = find_flow(op)) return (this->*flow->rule)(op);
  const Rooms::Entry* entry = Rooms::all().find(op.getDomain(), op.getOpType());
  if (!op.getBodies().empty()) return not_covered("attributes that are graphs");
  Node node(op, end_, ports_);
  INVAR_CHECK_OK(node.typed(entry->types));
  Status status = entry->rule(node);
  if (!status && status.error().code == Code::not_covered && node.widen(entry->widens)) {
    Status wide = entry->rule(node);
    if (!wide) return status;
    status = wide;
  }
  if (status) node.commit();
  return status;
}

// A refusal for what is decided when the program runs says which inputs decide it.
Error Conversion::hinted(NodeOp op, const Error& error) {
  if (error.code != Code::not_covered || error.message.find("--bind") != error.message.npos) return error;
  const Value decides = ports_.bound.named_in(error.message);
  return decides ? node(op).unknown(decides, error.message) : error;
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
    Operation* before = op->getPrevNode();
    const auto forced = ports_.forced;
    const size_t failed = failed_.size();
    for (Status s = convert_node(node); !s; s = convert_node(node)) {
      Error error = at(node, hinted(node, s.error()));
      if (!node.getBodies().empty()) drop_made(before, node);
      if (settle(error)) {
        unsettled_.push_back(error);
        continue;
      }
      failed_.insert({node, error});
      break;
    }
    if (failed_.size() <= failed) ports_.forced = forced;  // it was done otherwise
  }
}

void Conversion::drop_made(Operation* before, NodeOp node) {
  llvm::DenseSet<Operation*> made;
  for (Operation* op = node->getPrevNode(); op != before; op = op->getPrevNode()) made.insert(op);
  ports_.bound.forget([&](Value v) { return made.contains(v.getDefiningOp()); });
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

void measure(Block& block) {
  std::map<std::pair<const void*, const void*>, Value> made;
  for (Operation& op : llvm::make_early_inc_range(block)) {
    auto sizes = dyn_cast<ReproSizesOp>(op);
    if (!sizes) continue;
    if (!sizes.use_empty()) {
      Value& value = made[{sizes.getSizes().getAsOpaquePointer(), sizes.getType().getAsOpaquePointer()}];
      OpBuilder build(sizes);
      if (!value) value = Rooms::all().measure(build, sizes);
      sizes.replaceAllUsesWith(value);
    }
    sizes.erase();
  }
}

std::unique_ptr<Pass> to_repro(Refusals* refused, bool stateless) {
  return std::make_unique<ToRepro>(refused, stateless);
}

}  // namespace invar::compiler
