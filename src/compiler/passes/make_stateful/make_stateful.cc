// repro-make-stateful: a decoder that is computed over its whole sequence becomes one that
// remembers (plan.20). What it computes for a token is shown to depend on the tokens before it
// through causal attention and operations that can have a state alone; otherwise the program stays
// as it is.
#include <limits>

#include "compiler/dialects/origin.h"
#include "compiler/lowering/dynamic_shapes/data_dependent_dims.h"
#include "compiler/passes/canonicalize/patterns.h"
#include "compiler/passes/idiom_recognition.h"
#include "compiler/passes/make_stateful/make_stateful.h"
#include "compiler/passes/make_stateful/token_rows.h"

namespace invar::compiler {
namespace {

constexpr double kHidden = -65504;  // a number that hides a key: at most the lowest of binary16
constexpr char kName[] = "onnx.name", kState[] = "state";

// Whether operations like this one may have the attribute.
bool has_attribute(Operation* op, StringRef name) {
  return llvm::any_of(op->getName().getAttributeNames(),
                      [name](StringAttr known) { return known.getValue() == name; });
}

// A call as it is with memory: of attention, or of another operation that can have a state.
struct Remembering {
  Operation* op;
  Value keys, values;  // of attention, of the new tokens
  int64_t left = -1;
  int64_t kv_heads = 0;  // not 0: keys and values are [1, kv_heads, tokens, size]
};

class Decoder {
 public:
  explicit Decoder(func::FuncOp function)
      : function_(function),
        elements_([this](const Dim& d) { return size_of(d); }),
        rows_([this](const Dim& d) { return size_of(d); }, DimExpr::symbol("seq")) {}
  // Nothing, or why the program keeps no memory.
  std::string analyze();
  void rewrite();

 private:
  std::optional<DimExpr> size_of(const Dim&) const;
  std::string bind_inputs();
  std::string visit(Value);
  std::string visit_attention(AttentionOp);
  std::string visit_recurrence(Operation*);
  std::string read_mask(Value mask, Remembering&);
  Value without_past(Value keys);
  Value once_each_head(Value keys, AttentionOp);
  bool is_position(Value);
  void replace_positions(BlockArgument positions);
  void remember(const Remembering&, size_t number);
  Value in_heads_of(AttentionOp, const Remembering&, Value keys);
  Type with_sizes(Type) const;
  func::ReturnOp end() const { return cast<func::ReturnOp>(function_.front().getTerminator()); }
  std::string name_of_argument(unsigned i) const {
    auto name = function_.getArgAttrOfType<StringAttr>(i, kName);
    return name ? name.str() : "";
  }

  mutable func::FuncOp function_;
  std::map<std::string, DimExpr> sizes_;  // of symbols
  ElementAnalysis elements_;
  TokenRows rows_;
  unsigned ids_ = 0, logits_ = 0;
  SmallVector<Value> open_, positions_;
  SmallVector<std::pair<Value, Value>> joined_;  // with nothing, and the part that has the elements
  llvm::DenseSet<Value> seen_;
  SmallVector<Remembering> remembering_;
};

std::optional<DimExpr> Decoder::size_of(const Dim& dim) const {
  const auto size = dim_expr_of(dim);
  if (!size) return {};
  return size->substitute([this](const std::string& symbol) -> std::optional<DimExpr> {
    const auto found = sizes_.find(symbol);
    return found == sizes_.end() ? std::nullopt : std::optional(found->second);
  });
}

// plan.19: one sequence from its start, no past keys, a mask of ones.
std::string Decoder::bind_inputs() {
  bool has_ids = false;
  const auto arguments = function_.getArguments();
  for (unsigned i = 0; i < arguments.size(); ++i) {
    if (name_of_argument(i) != "input_ids") continue;
    const Shape shape = shape_of(arguments[i].getType());
    if (shape.size() != 2 || !element_of(arguments[i]).isInteger(64))
      return "input_ids is not i64 [batch, seq]";
    const std::string* batch = shape[0].expr.as_symbol();
    const std::string* tokens = shape[1].expr.as_symbol();
    if (!tokens || (!batch && shape[0] != Dim::of(1))) return "input_ids has a fixed size";
    ids_ = i, has_ids = true;
    if (batch) sizes_.emplace(*batch, DimExpr(1));
    sizes_[*tokens] = DimExpr::symbol("seq");
  }
  if (!has_ids) return "it has no input input_ids";
  SmallVector<unsigned> others;  // of which the mask's length may be that of past keys and tokens
  for (unsigned i = 0; i < arguments.size(); ++i) {
    const std::string name = name_of_argument(i);
    if (i == ids_) continue;
    if (name == "attention_mask" || name == "position_ids" || name == "cache_position") {
      others.push_back(i);
      continue;
    }
    const Shape shape = shape_of(arguments[i].getType());
    if (shape.size() != 4 || !isa<FloatType>(element_of(arguments[i])) ||
        !llvm::all_of(arguments[i].getUsers(),
                      [](Operation* user) { return isa<ConcatOp, TransposeOp, CastOp>(user); }))
      return "its input " + name + " is none of a decoder";
    for (const Dim& dim : shape)
      if (const std::string* symbol = dim.expr.as_symbol()) sizes_.emplace(*symbol, DimExpr(0));
  }
  const DimExpr tokens = DimExpr::symbol("seq");
  for (unsigned i : others) {
    const Shape shape = shape_of(arguments[i].getType());
    for (size_t d = 0; d < shape.size(); ++d)
      if (const std::string* symbol = shape[d].expr.as_symbol())
        sizes_.emplace(*symbol, d + 1 == shape.size() ? tokens : DimExpr(1));
    if (shape.empty() || size_of(shape.back()) != tokens)
      return "its input " + name_of_argument(i) + " has another length than the tokens";
    const bool mask = name_of_argument(i) == "attention_mask";
    elements_.set(arguments[i], ElementValue::of(mask ? DimExpr(1) : coordinate(shape.size() - 1)));
  }
  return "";
}

// What is behind past keys, of which there are none (plan.19), in the order of the tokens.
Value Decoder::without_past(Value keys) {
  if (auto rows = keys.getDefiningOp<GatherNdOp>(); rows && rows.getBatchDims() == 1) {
    const auto row = elements_.value_of(rows.getIndices());
    if (row && row->kind == ElementValue::Kind::integer && row->integer == coordinate(1)) keys = rows.getX();
  }
  auto joined = keys.getDefiningOp<ConcatOp>();
  if (!joined) return keys;
  SmallVector<Value> parts;
  for (Value part : joined.getOperands()) {
    const auto size = size_of(shape_of(part.getType())[static_cast<size_t>(joined.getAxis())]);
    if (!size || *size != DimExpr(0)) parts.push_back(part);
  }
  return parts.size() == 1 ? without_past(parts[0]) : keys;
}

// If keys [B, tokens, heads * size], or with heads first, repeat each of some heads, those
// [B, heads, tokens, size] without the past; else null.
Value Decoder::once_each_head(Value keys, AttentionOp op) {
  if (auto widened = keys.getDefiningOp<CastOp>()) keys = widened.getX();
  if (!op.getHeadsFirst().value_or(0)) {
    auto rows = keys.getDefiningOp<ReshapeOp>();
    auto moved = rows ? rows.getX().getDefiningOp<TransposeOp>() : TransposeOp();
    if (!moved || moved.getPerm() != llvm::ArrayRef<int64_t>{0, 2, 1, 3}) return {};
    const Shape apart = shape_of(moved.getType()), flat = shape_of(rows.getType());
    if (flat.size() != 3 || flat[0] != apart[0] || flat[1] != apart[1]) return {};
    keys = moved.getX();
  }
  const Shape shape = shape_of(keys.getType());
  const Value once = strip_head_repeat(keys);
  if (once == keys || shape[1] != Dim::of(static_cast<int64_t>(op.getKvHeads()))) return {};
  const Value made = without_past(once);
  return rows_.axis(made) == 2 ? made : Value();
}

bool Decoder::is_position(Value v) {
  const auto axis = rows_.axis(v);
  const Type type = element_of(v);
  if (!axis || *axis == TokenRows::kNone || !(type.isInteger(64) || type.isInteger(32))) return false;
  const auto value = elements_.value_of(v);
  return value && value->kind == ElementValue::Kind::integer &&
         value->integer == coordinate(static_cast<size_t>(*axis));
}

std::string Decoder::visit(Value v) {
  if (!seen_.insert(v).second || v == function_.getArgument(ids_)) return "";
  if (is_position(v)) return positions_.push_back(v), "";
  Operation* op = v.getDefiningOp();
  if (!op) return "it reads the input " + name_of_argument(cast<BlockArgument>(v).getArgNumber());
  if (isa<ReproWeightOp>(op)) return "";
  if (const Value part = without_past(v);
      part != v && with_sizes(part.getType()) == with_sizes(v.getType())) {
    joined_.push_back({v, part}), open_.push_back(part);
    return "";
  }
  if (auto attention = dyn_cast<AttentionOp>(op)) return visit_attention(attention);
  if (has_attribute(op, kState) && !has_attribute(op, "causal")) return visit_recurrence(op);
  if (!rows_.keeps_apart(op)) {
    const plan::Origin origin = origin_of(op->getLoc());
    return "it computes one token from others in " + plan::text_of(origin) + "operation " +
           op->getName().stripDialect().str();
  }
  open_.append(op->operand_begin(), op->operand_end());
  return "";
}

std::string Decoder::visit_attention(AttentionOp op) {
  Remembering made{op, without_past(op.getK()), without_past(op.getV()),
                   static_cast<int64_t>(op.getLeft().value_or(-1))};
  bool causal = op.getCausal() != 0;
  const int64_t axis = op.getHeadsFirst().value_or(0) ? 2 : 1;
  for (Value v : {Value(op.getQ()), made.keys, made.values, Value(op.getOut())})
    if (rows_.axis(v) != axis) return "its attention reads keys of other tokens than it makes";
  if (op.getState()) return "it has a memory already";
  const Value keys = once_each_head(op.getK(), op), values = once_each_head(op.getV(), op);
  if (keys && values && shape_of(keys.getType())[1] == shape_of(values.getType())[1])
    made.keys = keys, made.values = values, made.kv_heads = shape_of(keys.getType())[1].value;
  size_t next = 0;
  if (op.getMask().value_or(0)) {
    const int64_t before = made.left;
    if (std::string why = read_mask(op.getMore()[next++], made); !why.empty()) return why;
    causal = true;
    if (before >= 0) made.left = made.left < 0 ? before : std::min(before, made.left);
  }
  if (op.getSinks().value_or(0)) open_.push_back(op.getMore()[next++]);
  if (op.getLengths().value_or(0)) {
    const auto lengths = elements_.value_of(op.getMore()[next]);
    if (!lengths || lengths->kind != ElementValue::Kind::integer ||
        lengths->integer != DimExpr::symbol("seq"))
      return "the lengths of its sequences are not those of the mask";
  }
  if (!causal) return "its attention sees tokens behind a token";
  open_.append({Value(op.getQ()), made.keys, made.values});
  remembering_.push_back(made);
  return "";
}

// An operation whose result for a token depends on that token and those before it, by what it is.
std::string Decoder::visit_recurrence(Operation* op) {
  const std::string name = op->getName().stripDialect().str();
  if (op->hasAttr(kState)) return "it has a memory already";
  if (rows_.axis(op->getResult(0)) != 1) return "its " + name + " is not along the tokens";
  for (Value v : op->getOperands())
    if (const auto axis = rows_.axis(v); axis != 1 && axis != TokenRows::kNone)
      return "its " + name + " is not along the tokens";
  open_.append(op->operand_begin(), op->operand_end());
  remembering_.push_back({op, {}, {}});
  return "";
}

// A mask that hides what is behind a token, and what is before its window.
std::string Decoder::read_mask(Value mask, Remembering& made) {
  const std::string other = "the mask of its attention is not known to be causal";
  const Shape shape = shape_of(mask.getType());
  const size_t rank = shape.size();
  auto value = elements_.value_of(mask);
  if (!value || value->kind != ElementValue::Kind::choice || rank < 2) return other;
  for (size_t d : {rank - 2, rank - 1})
    if (size_of(shape[d]) != DimExpr::symbol("seq")) return other;
  if (element_of(mask).isInteger(1)) {
    if (value->if_true != 1 || value->if_false != 0) return other;
  } else if (value->if_true != 0 || !(value->if_false <= kHidden)) {
    const auto opposite = value->conditions.size() == 1 ? difference(DimExpr(-1), value->conditions[0])
                                                        : std::optional<DimExpr>();
    if (!opposite || value->if_false != 0 || !(value->if_true <= kHidden)) return other;
    value->conditions[0] = *opposite;
  }
  const auto behind = difference(coordinate(rank - 2), coordinate(rank - 1));  // query - key
  bool causal = false;
  for (const DimExpr& condition : value->conditions) {
    const auto past_edge = sum(condition, *behind);  // of key - query + left
    const auto left = past_edge ? past_edge->constant() : std::nullopt;
    if (condition == *behind)
      causal = true;
    else if (left && *left >= 0)
      made.left = made.left < 0 ? *left : std::min(made.left, *left);
    else if (!condition.is_nonnegative())
      return other;
  }
  return causal ? "" : other;
}

std::string Decoder::analyze() {
  if (std::string why = bind_inputs(); !why.empty()) return why;
  bool found = false;
  for (unsigned i = 0; i < end()->getNumOperands(); ++i)
    if (auto name = function_.getResultAttrOfType<StringAttr>(i, kName); name && name == "logits")
      logits_ = i, found = true;
  if (!found) return "it has no output logits";
  open_.push_back(end()->getOperand(logits_));
  while (!open_.empty())
    if (std::string why = visit(open_.pop_back_val()); !why.empty()) return why;
  return remembering_.empty() ? "it has no attention" : "";
}

// Several elements of each token along one axis become an axis of their own.
Type Decoder::with_sizes(Type type) const {
  const DimExpr tokens = DimExpr::symbol("seq");
  Shape shape;
  for (const Dim& dim : shape_of(type)) {
    const auto size = size_of(dim);
    const auto each = size && !size->constant() && *size != tokens ? exact_div(*size, tokens) : std::nullopt;
    if (each && each->constant())
      shape.insert(shape.end(), {Dim::of(tokens), Dim::of(*each)});
    else
      shape.push_back(size ? Dim::of(*size) : dim);
  }
  return tensor_of(shape, getElementTypeOrSelf(type));
}

void Decoder::replace_positions(BlockArgument positions) {
  OpBuilder build(&function_.front(), function_.front().begin());
  for (Value v : positions_) {
    const Type type = with_sizes(v.getType());
    Value same = positions;
    if (type != same.getType())
      same = make_op(build, v.getLoc(), ReshapeOp::getOperationName(), same, {},
                     tensor_of(shape_of(type), build.getI64Type()))
                 ->getResult(0);
    if (type != same.getType())
      same = make_op(build, v.getLoc(), CastOp::getOperationName(), same, {}, type)->getResult(0);
    v.replaceAllUsesWith(same);
  }
}

// Keys or values as the attention takes them, with each head once.
Value Decoder::in_heads_of(AttentionOp op, const Remembering& made, Value keys) {
  if (made.kv_heads == 0) return keys;
  OpBuilder build(op);
  const auto add = [&](StringRef name, llvm::ArrayRef<NamedAttribute> attributes, const Shape& shape,
                       Type element) {
    keys = make_op(build, op.getLoc(), name, keys, attributes, tensor_of(shape, element))->getResult(0);
  };
  Shape shape = shape_of(keys.getType());
  if (!op.getHeadsFirst().value_or(0)) {
    std::swap(shape[1], shape[2]);
    add(TransposeOp::getOperationName(), build.getNamedAttr("perm", build.getDenseI64ArrayAttr({0, 2, 1, 3})),
        shape, element_of(keys));
    shape = {shape[0], shape[1], Dim::of(shape[2].value * shape[3].value)};
    add(ReshapeOp::getOperationName(), {}, shape, element_of(keys));
  }
  if (element_of(keys) != element_of(op.getK()))
    add(CastOp::getOperationName(), {}, shape, element_of(op.getK()));
  return keys;
}

void Decoder::remember(const Remembering& made, size_t number) {
  OpBuilder build(made.op);
  const StringAttr state = build.getStringAttr("memory " + std::to_string(number));
  auto op = dyn_cast<AttentionOp>(made.op);
  if (!op) return made.op->setAttr(kState, state);
  SmallVector<Value> operands = {op.getQ(), in_heads_of(op, made, made.keys),
                                 in_heads_of(op, made, made.values)};
  if (op.getSinks().value_or(0)) operands.push_back(op.getMore()[op.getMask().value_or(0) ? 1 : 0]);
  SmallVector<NamedAttribute> attrs;
  for (NamedAttribute a : op->getAttrs())
    if (!llvm::is_contained({"causal", "mask", "lengths", "left", "kv_heads", "numerics", "version"},
                            a.getName().strref()))
      attrs.push_back(a);
  const int64_t kv_heads = made.kv_heads ? made.kv_heads : static_cast<int64_t>(op.getKvHeads());
  attrs.push_back(build.getNamedAttr("kv_heads", build.getI64IntegerAttr(kv_heads)));
  attrs.push_back(build.getNamedAttr("causal", build.getI64IntegerAttr(1)));
  if (made.left >= 0) attrs.push_back(build.getNamedAttr("left", build.getI64IntegerAttr(made.left)));
  attrs.push_back(build.getNamedAttr(kState, state));
  Operation* call =
      make_op(build, op.getLoc(), AttentionOp::getOperationName(), operands, attrs, op.getType());
  op.getOut().replaceAllUsesWith(call->getResult(0));
}

void Decoder::rewrite() {
  MLIRContext* const context = function_.getContext();
  Block& block = function_.front();
  const Type tokens = tensor_of({Dim::of(1), Dim::of(DimExpr::symbol("seq"))}, IntegerType::get(context, 64));
  const unsigned positions = function_.getNumArguments();
  function_.insertArgument(
      positions, tokens,
      DictionaryAttr::get(
          context, NamedAttribute(StringAttr::get(context, kName), StringAttr::get(context, "position_ids"))),
      function_.getLoc());
  replace_positions(function_.getArgument(positions));
  for (auto [whole, part] : joined_) whole.replaceAllUsesWith(part);
  // The order of the program names the memories.
  llvm::sort(remembering_,
             [](const Remembering& a, const Remembering& b) { return a.op->isBeforeInBlock(b.op); });
  for (size_t i = 0; i < remembering_.size(); ++i) remember(remembering_[i], i);
  llvm::BitVector results(end()->getNumOperands(), true), arguments(function_.getNumArguments());
  results.reset(logits_);
  end()->eraseOperands(results);
  function_.eraseResults(results);
  erase_dead_ops(block);
  for (unsigned i = 0; i < function_.getNumArguments(); ++i)
    if (i != ids_ && function_.getArgument(i).use_empty()) arguments.set(i);
  function_.eraseArguments(arguments);
  for (BlockArgument a : function_.getArguments()) a.setType(with_sizes(a.getType()));
  for (Operation& op : block)
    for (Value v : op.getResults()) v.setType(with_sizes(v.getType()));
  function_.setFunctionType(
      FunctionType::get(context, block.getArgumentTypes(), SmallVector<Type>(end()->getOperandTypes())));
}

class MakeStateful : public PassWrapper<MakeStateful, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MakeStateful)
  explicit MakeStateful(std::string* why_not) : why_not_(why_not) {}
  StringRef getArgument() const final { return "repro-make-stateful"; }
  StringRef getDescription() const final { return "Keep keys, values and states of a decoder between steps"; }
  void runOnOperation() final {
    func::FuncOp function = getOperation();
    if (function->hasAttr(kBody)) return;
    Decoder decoder(function);
    *why_not_ = decoder.analyze();
    if (why_not_->empty()) decoder.rewrite();
  }

 private:
  std::string* why_not_;
};

}  // namespace

std::unique_ptr<Pass> make_stateful_pass(std::string* why_not) {
  return std::make_unique<MakeStateful>(why_not);
}

}  // namespace invar::compiler
