// Loop and Scan whose trip count or condition is known at run time only (onnx.23): one `loop`
// operation over an outlined body.
#include "compiler/lowering/control_flow/control_flow.h"
#include "compiler/lowering/dynamic_shapes/shape_value_propagation.h"
#include "compiler/lowering/op_builder.h"

namespace invar::compiler {
namespace {

// The result of a new ONNX node, which is converted with the body.
Value make_onnx_node(OpBuilder& build, NodeOp by, llvm::StringRef type, ValueRange operands,
                     ArrayRef<NamedAttribute> attributes = {}) {
  auto new_symbols = build.create<NodeOp>(
      by.getLoc(), TypeRange(UnknownType::get(build.getContext())), build.getStringAttr(type), operands,
      by.getNameAttr(), by.getDomainAttr(), by.getVersionAttr(), build.getDictionaryAttr(attributes),
      DictionaryAttr(), ArrayAttr(), 0u);
  return new_symbols.getOutputs()[0];
}

}  // namespace

struct Conversion::LoopOperands {
  Value trips, condition;
  SmallVector<Value> carried, invariant;
  // Makes the inputs from the iteration number, the carried and the invariant values.
  BodyInputs inputs;
  bool gives_condition;            // the graph's first result is a condition
  bool may_end;                    // and it may be false
  std::optional<DimExpr> steps{};  // if known
};

// The body is converted for the shapes of the first iteration. Dimensions that differ after an
// iteration get symbols of their own, and the body is converted again, until its types are a fixed
// point.
Result<std::optional<Conversion::OutlinedBody>> Conversion::outline_loop_body(NodeOp op, Region& region,
                                                                              const LoopOperands& loop,
                                                                              SmallVector<Type>& types,
                                                                              std::set<std::string>& changing,
                                                                              SmallVector<Value>& captured) {
  std::optional<OutlinedBody> body;
  for (bool again = true; again;) {
    again = false;
    if (body) body->function.erase();
    captured.clear();
    INVAR_TRY(body, outline_body(op, region, types, loop.inputs, captured));
    if (!body) return body;
    const unsigned first = loop.gives_condition ? 1 : 0;
    for (unsigned i = 0; i < loop.carried.size(); ++i) {
      const Type next = body->end()->getOperand(first + i).getType();
      if (const Status same = check_same_type(types[1 + i], next, "before and after a step it carries ");
          !same) {
        body->function.erase();
        return same.error();
      }
      Shape shape = shape_of(types[1 + i]);
      const Shape then = shape_of(next);
      for (size_t d = 0; d < shape.size(); ++d) {
        const std::string* symbol = shape[d].expr.as_symbol();
        if (known_equal(shape[d], then[d]) || (symbol && changing.contains(*symbol))) continue;
        const std::string name = state_.dims.fresh_name(op.getOpType());
        shape[d] = Dim::of(DimExpr::symbol(name));
        changing.insert(name), again = true;
      }
      types[1 + i] = tensor_of(shape, getElementTypeOrSelf(next));
    }
  }
  return body;
}

Result<std::optional<SmallVector<Value>>> Conversion::make_dynamic_loop(NodeOp op, Region& region,
                                                                        const LoopOperands& loop) {
  using Results = std::optional<SmallVector<Value>>;
  NodeView n = node(op);
  OpBuilder& build = n.builder();
  SmallVector<Type> types{RankedTensorType::get({}, build.getI64Type())};
  for (Value v : loop.carried) types.push_back(v.getType());
  for (Value v : loop.invariant) types.push_back(v.getType());
  std::set<std::string> changing;
  SmallVector<Value> captured;
  INVAR_TRY(std::optional<OutlinedBody> body, outline_loop_body(op, region, loop, types, changing, captured));
  if (!body) return Results();
  func::ReturnOp end = body->end();
  OpBuilder at_end(end);
  if (!loop.gives_condition) end->insertOperands(0, make_true(at_end, op.getLoc()));
  const Value condition = end->getOperand(0);
  const auto flag = dyn_cast<RankedTensorType>(condition.getType());
  const bool is_flag = flag && flag.getElementType().isSignlessInteger(1) && flag.hasStaticShape() &&
                       flag.getNumElements() == 1 && flag.getRank() <= 1;
  const bool always = constant_condition(condition) == true;
  const bool endless = always && loop.gives_condition && loop.steps == DimExpr(INT64_MAX);
  if (!is_flag || (!loop.may_end && !always) || endless) {
    const DimText given = text_of_type(condition.getType());
    body->function.erase();
    if (endless) return never_ends_error();
    if (!is_flag) return bad_input("the condition that its graph gives is " + given);
    return not_covered("its graph gives a condition, but it has none: standard and implementations disagree");
  }
  // Scan outputs without uses are dropped.
  llvm::BitVector unused(end->getNumOperands());
  for (unsigned i = static_cast<unsigned>(loop.carried.size()); i < n.num_results(); ++i)
    if (n.out(i).use_empty()) unused.set(1 + i);
  end->eraseOperands(unused);
  body->update_type();

  // A symbol and the result that has it in its shape.
  std::vector<std::pair<std::string, unsigned>> new_symbols;
  SmallVector<Type> results;
  const auto assign_symbol = [&](Dim& e) {
    const std::string name = state_.dims.fresh_name(op.getOpType());
    new_symbols.push_back({name, static_cast<unsigned>(results.size())});
    e = Dim::of(DimExpr::symbol(name));
  };
  const auto varies = [&](const Dim& e) {
    const std::optional<DimExpr> p = e.constant() ? std::nullopt : dim_expr_of(e);
    return !e.constant() && (!p || body->dims.defines(*p) || !p->all_symbols([&](const std::string& name) {
      return !changing.contains(name);
    }));
  };
  for (unsigned i = 1; i < end->getNumOperands(); ++i) {
    const bool is_carried = i <= loop.carried.size();
    Shape shape = shape_of(is_carried ? types[i] : end->getOperand(i).getType());
    for (Dim& e : shape)
      if (varies(e)) assign_symbol(e);
    if (!is_carried) {
      shape.insert(shape.begin(), Dim{});
      if (loop.steps && always)
        shape[0] = Dim::of(*loop.steps);
      else
        assign_symbol(shape[0]);
    }
    results.push_back(tensor_of(shape, element_of(end->getOperand(i))));
  }
  SmallVector<Value> operands{loop.trips, loop.condition};
  operands.append(loop.carried);
  operands.append(loop.invariant);
  operands.append(captured);
  auto flow =
      build.create<ReproFlowOp>(op.getLoc(), results, build.getStringAttr("loop"),
                                build.getArrayAttr({FlatSymbolRefAttr::get(body->function)}), operands,
                                build.getI64IntegerAttr(static_cast<int64_t>(loop.carried.size())));
  for (const auto& [name, result] : new_symbols) state_.dims.record(name, flow.getOutputs()[result]);
  SmallVector<Value> all;
  for (unsigned i = 0, next = 0; i < n.num_results(); ++i)
    all.push_back(unused[1 + i] ? Value() : Value(flow.getOutputs()[next++]));
  return Results(std::move(all));
}

Status Conversion::lower_dynamic_loop(NodeOp op, Region& region, SmallVector<Value> carried) {
  NodeView n = node(op);
  const bool conditional = n.has(1);
  LoopOperands loop{{}, {}, std::move(carried), {}, {}, /*gives_condition=*/true, /*may_end=*/conditional};
  loop.trips = n.has(0) ? n.in(0) : i64_scalar(n, INT64_MAX);
  const auto type = cast<RankedTensorType>(loop.trips.getType());
  if (!type.getElementType().isSignlessInteger(64) || (type.hasStaticShape() && type.getNumElements() != 1))
    return bad_input("operand 0 is not one number of i64");
  if (!type.hasStaticShape()) return not_covered("a trip count of shape " + text_of(shape_of(type)));
  INVAR_TRY(loop.trips, reshape(n, loop.trips, {}));
  loop.condition = make_true(n.builder(), op.getLoc());
  if (conditional) {
    INVAR_TRY(loop.condition, scalar_condition(n, n.in(1)));
  }
  const size_t count = loop.carried.size();
  const bool begins = constant_condition(loop.condition) == true;
  bool apart = false;  // the first step is
  const auto inputs = [&](OpBuilder& build, ValueRange arguments) {
    Value step = arguments[0];
    if (apart && !region.front().getArgument(0).use_empty()) {
      const int64_t one = 1;
      step =
          make_onnx_node(build, op, "Add",
                         {step, make_constant(build, op.getLoc(), bytes_of({&one, 1}, 8), DType::i64, {})});
    }
    SmallVector<Value> given{step, make_true(build, op.getLoc())};
    llvm::append_range(given, arguments.slice(1, count));
    return given;
  };
  loop.inputs = inputs;
  const auto known = known_dim_values(loop.trips);
  if (known && begins) loop.steps = maximum(known->front(), 0);
  Result<Yields> results = make_dynamic_loop(op, region, loop);
  // What is carried may have another rank before the first step, as values have that are only
  // declared there. A first step that always comes goes before the loop then.
  const int64_t trips = known ? known->front().constant().value_or(0) : 0;
  if (!results && results.error().code == Code::not_covered && begins && trips > 0 &&
      n.num_results() == count) {
    SmallVector<Value> given{i64_scalar(n, 0), make_true(n.builder(), op.getLoc())};
    llvm::append_range(given, loop.carried);
    const Result<Yields> first = inline_body(op, region, given);
    if (!first) return results.error();
    if (!*first) return {};
    loop.carried.assign((*first)->begin() + 1, (*first)->end());
    INVAR_TRY(loop.condition, scalar_condition(n, (**first)[0]));
    if (trips != INT64_MAX) loop.trips = i64_scalar(n, trips - 1);
    loop.steps.reset();
    apart = true;
    Result<Yields> others = make_dynamic_loop(op, region, loop);
    if (!others) return results.error();
    results = std::move(others);
  }
  if (!results) return results.error();
  if (!*results) return {};  // the node that it reads is refused already
  for (auto [i, v] : llvm::enumerate(**results)) n.replace(static_cast<unsigned>(i), v);
  n.commit();
  return {};
}

Result<Conversion::Yields> Conversion::lower_dynamic_scan(NodeOp op, Region& region, const ScanAxes& steps,
                                                          SmallVector<Value> states, ValueRange inputs,
                                                          const DimExpr& count) {
  NodeView n = node(op);
  LoopOperands loop{n.size_tensor(count, {}),
                    make_true(n.builder(), op.getLoc()),
                    std::move(states),
                    SmallVector<Value>(inputs),
                    {},
                    /*gives_condition=*/false,
                    /*may_end=*/true,
                    count};
  const size_t carried = loop.carried.size();
  const std::optional<DimExpr> last = sum(count, -1);
  if (!last) return not_covered("more steps than can be counted");
  const auto given = [&](OpBuilder& build, ValueRange arguments) {
    SmallVector<Value> all;
    llvm::append_range(all, arguments.slice(1, carried));
    for (size_t i = 0; i < inputs.size(); ++i) {
      Value at = arguments[0];
      if (steps.in_backwards[i]) {
        Value from = build.create<ReproSizesOp>(op.getLoc(), RankedTensorType::get({}, build.getI64Type()),
                                                DimsAttr::get(op.getContext(), {*last}));
        at = make_onnx_node(build, op, "Sub", {from, at});
      }
      all.push_back(make_onnx_node(build, op, "Gather", {arguments[1 + carried + i], at},
                                   build.getNamedAttr("axis", build.getI64IntegerAttr(steps.in_axes[i]))));
    }
    return all;
  };
  loop.inputs = given;
  INVAR_TRY(auto results, make_dynamic_loop(op, region, loop));
  if (!results) return Yields();
  for (size_t i = 0; i < steps.out_axes.size(); ++i) {
    Value& all = (*results)[carried + i];
    if (!all) continue;
    if (steps.out_backwards[i]) {
      INVAR_TRY(Value reversed, n.make<IotaOp>({n.size_tensor(*last, {}), i64_scalar(n, -1)}, {},
                                               tensor_of({Dim::of(count)}, n.builder().getI64Type())));
      INVAR_TRY(all, n.make<GatherOp>({all, reversed}));
    }
    const size_t rank = shape_of(all.getType()).size();
    INVAR_TRY(const int64_t axis, NodeView::normalize_axis(steps.out_axes[i], rank));
    SmallVector<int64_t> perm;
    for (size_t d = 1; d < rank; ++d) perm.push_back(static_cast<int64_t>(d));
    perm.insert(perm.begin() + axis, 0);
    if (axis != 0) {
      INVAR_TRY(all, transpose(n, all, perm));
    }
  }
  return Yields(std::move(*results));
}

}  // namespace invar::compiler
