// Control flow that values decide when a program runs (spec/onnx.md onnx.23): graphs become functions of the module, which an operation
// of theirs runs.
#include "compiler/lowering/op_builder.h"
#include "compiler/lowering/control_flow/control_flow.h"
#include "compiler/lowering/dynamic_shapes/shape_value_propagation.h"
#include "llvm/ADT/ScopeExit.h"
#include "mlir/IR/IRMapping.h"
#include "kernels/kernel.h"

namespace invar::compiler {
namespace {

// Operations of a branch that is computed whatever the condition says, so that the program is not cut there.
constexpr int kMostSelected = 16;

Value yes(OpBuilder& build, Location loc) {
  return make_constant(build, loc, llvm::StringRef("\1", 1), DType::boolean, {});
}

// What a node of the standard gives, before it is converted.
Value onnx_node(OpBuilder& build, NodeOp by, llvm::StringRef type, ValueRange operands,
                ArrayRef<NamedAttribute> attributes = {}) {
  auto made = build.create<NodeOp>(by.getLoc(), TypeRange(UnknownType::get(build.getContext())),
                                   build.getStringAttr(type), operands, by.getNameAttr(), by.getDomainAttr(),
                                   by.getVersionAttr(), build.getDictionaryAttr(attributes), DictionaryAttr(),
                                   ArrayAttr(), 0u);
  return made.getOutputs()[0];
}

Status of_one_type(Type a, Type b, const std::string& what) {
  auto x = dyn_cast<RankedTensorType>(a), y = dyn_cast<RankedTensorType>(b);
  if (x && y && x.getElementType() == y.getElementType() && x.getRank() == y.getRank()) return {};
  return not_covered(what + text_of_type(a) + " and " + text_of_type(b));
}

}  // namespace

struct Conversion::Body {
  func::FuncOp function;
  Bound bound;
  func::ReturnOp end() { return cast<func::ReturnOp>(function.front().getTerminator()); }
  void settle() {
    function.setFunctionType(FunctionType::get(function.getContext(), function.front().getArgumentTypes(),
                                               end()->getOperandTypes()));
  }
};

struct Conversion::Looped {
  Value trips, condition;
  SmallVector<Value> carried, fixed;  // fixed: the same in every step
  Inputs inputs;                      // of the graph, from the step, what is carried and what is fixed
  bool gives_condition;               // the graph's first result is one
  bool may_end;                       // and it may be false
  std::optional<Polynomial> steps{};  // where they are known
};

Result<std::optional<Conversion::Body>> Conversion::outlined(NodeOp op, Region& region,
                                                             ArrayRef<Type> arguments, Inputs inputs,
                                                             SmallVector<Value>& captured,
                                                             const Settled& here) {
  INVAR_CHECK_OK(count_copy(region, 2 * kMostCopied));
  SmallVector<Type> types(arguments);
  Settling settling(here);
  for (Value v : captured) types.push_back(settling.of(v.getType()));
  func::FuncOp function =
      make_body(cast<func::FuncOp>(end_->getParentOp()), op.getLoc(), ports_.bound, types);
  auto drop = llvm::make_scope_exit([&] { function.erase(); });
  Block* block = &function.front();
  OpBuilder build = OpBuilder::atBlockBegin(block);
  IRMapping map;
  map.map(captured, block->getArguments().drop_front(arguments.size()));
  const SmallVector<Value> given = inputs(build, block->getArguments().take_front(arguments.size()));
  INVAR_CHECK_OK(fits(region, given));
  map.map(region.front().getArguments(), given);
  bool lost = false;
  region.walk([&](Operation* inner) {
    for (Value v : inner->getOperands()) {
      if (map.contains(v) || region.isAncestor(v.getParentRegion())) continue;
      Operation* from = v.getDefiningOp();
      if (isa_and_nonnull<ReproWeightOp, ReproSizesOp, AbsentOp>(from)) {
        Operation* copy = build.clone(*from);
        if (auto sizes = dyn_cast<ReproSizesOp>(copy)) settling(sizes);
        map.map(v, copy->getResult(0));
      } else {
        lost |= !isa<RankedTensorType>(v.getType()) || isa_and_nonnull<NodeOp>(from);
        captured.push_back(v);
        map.map(v, block->addArgument(settling.of(v.getType()), v.getLoc()));
      }
    }
  });
  if (lost) return std::optional<Body>();
  for (Operation& inner : region.front().without_terminator()) build.clone(inner, map);
  SmallVector<Value> results;
  for (Value v : region.front().getTerminator()->getOperands()) results.push_back(map.lookup(v));
  build.create<func::ReturnOp>(op.getLoc(), results);
  function.setFunctionType(build.getFunctionType(block->getArgumentTypes(), {}));

  Conversion child(function, *this);
  child.convert(&block->front(), child.end());
  ports_.evaluated = child.ports_.evaluated;
  if (const std::optional<Error> error = child.taken_errors(nullptr, child.end())) {
    ports_.forced.merge(child.ports_.forced);
    return *error;
  }
  for (Value v : child.end()->getOperands())
    if (isa_and_nonnull<NodeOp>(v.getDefiningOp())) return std::optional<Body>();
  child.remove_unused();
  measure(*block);
  drop.release();
  Body body{function, child.ports_.bound};
  body.settle();
  return std::optional<Body>(std::move(body));
}

// The graph is converted for the shapes of the first step. Dimensions that the next one has otherwise have names of their own, and
// once more, until nothing changes.
Result<std::optional<SmallVector<Value>>> Conversion::looped(NodeOp op, Region& region, const Looped& loop) {
  using Results = std::optional<SmallVector<Value>>;
  Node n = node(op);
  OpBuilder& build = n.build();
  SmallVector<Type> types{RankedTensorType::get({}, build.getI64Type())};
  for (Value v : loop.carried) types.push_back(v.getType());
  for (Value v : loop.fixed) types.push_back(v.getType());
  std::set<std::string> changing;
  SmallVector<Value> captured;
  std::optional<Body> body;
  for (bool again = true; again;) {
    again = false;
    if (body) body->function.erase();
    captured.clear();
    INVAR_TRY(body, outlined(op, region, types, loop.inputs, captured));
    if (!body) return Results();
    const unsigned first = loop.gives_condition ? 1 : 0;
    for (unsigned i = 0; i < loop.carried.size(); ++i) {
      const Type next = body->end()->getOperand(first + i).getType();
      if (const Status same = of_one_type(types[1 + i], next, "before and after a step it carries "); !same) {
        body->function.erase();
        return same.error();
      }
      Shape shape = shape_of(types[1 + i]);
      const Shape then = shape_of(next);
      for (size_t d = 0; d < shape.size(); ++d) {
        if (same(shape[d], then[d]) || changing.contains(shape[d].name)) continue;
        shape[d] = Extent::of(Polynomial::of(ports_.bound.fresh(op.getOpType())));
        changing.insert(shape[d].name), again = true;
      }
      types[1 + i] = tensor_of(shape, getElementTypeOrSelf(next));
    }
  }
  func::ReturnOp end = body->end();
  OpBuilder at_end(end);
  if (!loop.gives_condition) end->insertOperands(0, yes(at_end, op.getLoc()));
  const Value goes_on = end->getOperand(0);
  const auto flag = dyn_cast<RankedTensorType>(goes_on.getType());
  const bool is_flag = flag && flag.getElementType().isSignlessInteger(1) && flag.hasStaticShape() &&
                       flag.getNumElements() == 1 && flag.getRank() <= 1;
  const bool always = known_condition(goes_on) == true;
  const bool endless = always && loop.gives_condition && loop.steps == Polynomial(INT64_MAX);
  if (!is_flag || (!loop.may_end && !always) || endless) {
    const std::string given = text_of_type(goes_on.getType());
    body->function.erase();
    if (endless) return never_ends();
    if (!is_flag) return bad_input("the condition that its graph gives is " + given);
    return not_covered("its graph gives a condition, but it has none: standard and implementations disagree");
  }
  // What nobody reads is not kept.
  llvm::BitVector unread(end->getNumOperands());
  for (unsigned i = static_cast<unsigned>(loop.carried.size()); i < n.results(); ++i)
    if (n.out(i).use_empty()) unread.set(1 + i);
  end->eraseOperands(unread);
  body->settle();

  std::vector<std::pair<std::string, unsigned>> made;  // symbols, and the results whose shapes they are of
  SmallVector<Type> results;
  const auto decided = [&](Extent& e) {
    const std::string name = ports_.bound.fresh(op.getOpType());
    made.push_back({name, static_cast<unsigned>(results.size())});
    e = Extent::of(Polynomial::of(name));
  };
  const auto within = [&](const Extent& e) {
    const std::optional<Polynomial> p = e.constant() ? std::nullopt : polynomial_of(e);
    return !e.constant() && (!p || body->bound.binds(*p) || !p->all_names([&](const std::string& name) {
      return !changing.contains(name);
    }));
  };
  for (unsigned i = 1; i < end->getNumOperands(); ++i) {
    const bool carries = i <= loop.carried.size();
    Shape shape = shape_of(carries ? types[i] : end->getOperand(i).getType());
    for (Extent& e : shape)
      if (within(e)) decided(e);
    if (!carries) {
      shape.insert(shape.begin(), Extent{});
      if (loop.steps && always)
        shape[0] = Extent::of(*loop.steps);
      else
        decided(shape[0]);
    }
    results.push_back(tensor_of(shape, element_of(end->getOperand(i))));
  }
  SmallVector<Value> operands{loop.trips, loop.condition};
  operands.append(loop.carried);
  operands.append(loop.fixed);
  operands.append(captured);
  auto flow =
      build.create<ReproFlowOp>(op.getLoc(), results, build.getStringAttr("loop"),
                                build.getArrayAttr({FlatSymbolRefAttr::get(body->function)}), operands,
                                build.getI64IntegerAttr(static_cast<int64_t>(loop.carried.size())));
  for (const auto& [name, result] : made) ports_.bound.shaped(name, flow.getOutputs()[result]);
  SmallVector<Value> all;
  for (unsigned i = 0, next = 0; i < n.results(); ++i)
    all.push_back(unread[1 + i] ? Value() : Value(flow.getOutputs()[next++]));
  return Results(std::move(all));
}

Status Conversion::loop_at_run_time(NodeOp op, Region& region, SmallVector<Value> carried) {
  Node n = node(op);
  const bool conditional = n.has(1);
  Looped loop{{}, {}, std::move(carried), {}, {}, /*gives_condition=*/true, /*may_end=*/conditional};
  loop.trips = n.has(0) ? n.in(0) : scalar(n, INT64_MAX);
  const auto type = cast<RankedTensorType>(loop.trips.getType());
  if (!type.getElementType().isSignlessInteger(64) || (type.hasStaticShape() && type.getNumElements() != 1))
    return bad_input("operand 0 is not one number of i64");
  if (!type.hasStaticShape()) return not_covered("a trip count of shape " + text_of(shape_of(type)));
  INVAR_TRY(loop.trips, shaped(n, loop.trips, {}));
  loop.condition = yes(n.build(), op.getLoc());
  if (conditional) {
    INVAR_TRY(loop.condition, as_condition(n, n.in(1)));
  }
  const size_t count = loop.carried.size();
  const auto inputs = [&](OpBuilder& build, ValueRange arguments) {
    SmallVector<Value> given{arguments[0], yes(build, op.getLoc())};
    llvm::append_range(given, arguments.slice(1, count));
    return given;
  };
  loop.inputs = inputs;
  if (const auto known = sizes_of(loop.trips); known && known_condition(loop.condition) == true)
    loop.steps = most(known->front(), 0);
  INVAR_TRY(const auto results, looped(op, region, loop));
  if (!results) return {};  // what it reads is on the list
  for (auto [i, v] : llvm::enumerate(*results)) n.replace(static_cast<unsigned>(i), v);
  n.commit();
  return {};
}

Result<Conversion::Yields> Conversion::scanned_at_run_time(NodeOp op, Region& region, const Steps& steps,
                                                           SmallVector<Value> states, ValueRange inputs,
                                                           const Polynomial& count) {
  Node n = node(op);
  Looped loop{n.sizes(count, {}),
              yes(n.build(), op.getLoc()),
              std::move(states),
              SmallVector<Value>(inputs),
              {},
              /*gives_condition=*/false,
              /*may_end=*/true,
              count};
  const size_t carried = loop.carried.size();
  const std::optional<Polynomial> last = sum(count, -1);
  if (!last) return not_covered("more steps than can be counted");
  const auto given = [&](OpBuilder& build, ValueRange arguments) {
    SmallVector<Value> all;
    llvm::append_range(all, arguments.slice(1, carried));
    for (size_t i = 0; i < inputs.size(); ++i) {
      Value at = arguments[0];
      if (steps.in_backwards[i]) {
        const std::string text = last->text();
        Value from = build.create<ReproSizesOp>(op.getLoc(), RankedTensorType::get({}, build.getI64Type()),
                                                build.getStrArrayAttr(llvm::StringRef(text)));
        at = onnx_node(build, op, "Sub", {from, at});
      }
      all.push_back(onnx_node(build, op, "Gather", {arguments[1 + carried + i], at},
                              build.getNamedAttr("axis", build.getI64IntegerAttr(steps.in_axes[i]))));
    }
    return all;
  };
  loop.inputs = given;
  INVAR_TRY(auto results, looped(op, region, loop));
  if (!results) return Yields();
  for (size_t i = 0; i < steps.out_axes.size(); ++i) {
    Value& all = (*results)[carried + i];
    if (!all) continue;
    if (steps.out_backwards[i]) {
      INVAR_TRY(Value places, n.make<IotaOp>({n.sizes(*last, {}), scalar(n, -1)}, {},
                                             tensor_of({Extent::of(count)}, n.build().getI64Type())));
      INVAR_TRY(all, n.make<GatherOp>({all, places}));
    }
    const size_t rank = shape_of(all.getType()).size();
    INVAR_TRY(const int64_t axis, Node::axis(steps.out_axes[i], rank));
    SmallVector<int64_t> perm;
    for (size_t d = 1; d < rank; ++d) perm.push_back(static_cast<int64_t>(d));
    perm.insert(perm.begin() + axis, 0);
    if (axis != 0) {
      INVAR_TRY(all, permuted(n, all, perm));
    }
  }
  return Yields(std::move(*results));
}

Result<std::optional<Conversion::Body>> Conversion::outlined_branch(NodeOp op, Region& region,
                                                                    SmallVector<Value>& captured,
                                                                    Settled& here) {
  const auto none = [](OpBuilder&, ValueRange) { return SmallVector<Value>(); };
  for (const SmallVector<Value> before = captured;; captured = before) {
    const auto forced = std::exchange(ports_.forced, {});
    auto body = outlined(op, region, {}, none, captured, here);
    const auto found = std::exchange(ports_.forced, forced);
    if (body) return body;
    bool learnt = false;
    for (const auto& [name, text] : found)
      if (const auto size = Polynomial::parse(text); size && !ports_.bound.has(*size))
        learnt |= learn(here, name, *size);
    if (!learnt) return body;
  }
}

// Small branches that cannot fail, of results of one shape, are both computed; of others one is.
Status Conversion::branch_at_run_time(NodeOp op, Value condition, Region& then_region, Region& else_region) {
  Node n = node(op);
  SmallVector<Value> captured;
  Settled of_a, of_b;
  INVAR_TRY(std::optional<Body> a, outlined_branch(op, then_region, captured, of_a));
  if (!a) return {};  // what it reads is on the list
  INVAR_TRY(std::optional<Body> b, outlined_branch(op, else_region, captured, of_b));
  if (!b) return {};
  Settling settling(of_a);
  for (Value v : ArrayRef(captured).drop_front(a->function.getNumArguments()))
    a->function.front().addArgument(settling.of(v.getType()), v.getLoc());
  a->settle();
  const auto plain = [&](Body& body) {
    int operations = 0;
    for (Operation& inner : body.function.front().without_terminator()) {
      if (isa<ReproWeightOp>(inner)) continue;
      const ops::Kernel* kernel = ops::find(std::string_view(inner.getName().stripDialect()), "reference");
      auto repro = dyn_cast<ReproOp>(inner);
      const auto fixed = [](TypeRange types) {
        return llvm::all_of(types, [](Type t) { return cast<RankedTensorType>(t).hasStaticShape(); });
      };
      const bool divides = isa<DivOp, ModOp>(inner) && !isa<FloatType>(element_of(inner.getResult(0)));
      const bool moves = repro && repro.copies() && !repro.pointwise();  // of open dimensions it may not fit
      const bool cheap = repro && !divides && (repro.pointwise() || repro.elementwise() || moves) &&
                         (!moves || (fixed(inner.getOperandTypes()) && fixed(inner.getResultTypes())));
      if (!cheap || !kernel || kernel->stray || ++operations > kMostSelected) return false;
      for (const Extent& e : shape_of(inner.getResult(0).getType()))
        if (n.is_bound(e)) return false;
    }
    return true;
  };
  bool select = of_a.empty() && of_b.empty() && plain(*a) && plain(*b);
  std::vector<std::pair<std::string, unsigned>> made;
  SmallVector<Type> results;
  for (unsigned i = 0; i < n.results(); ++i) {
    const Type x = a->end()->getOperand(i).getType(), y = b->end()->getOperand(i).getType();
    if (const Status same = of_one_type(x, y, ""); !same)
      return n.unknown(condition, "its condition is not a constant, and it gives " + text_of_type(x) +
                                      " or " + text_of_type(y));
    const Type element = getElementTypeOrSelf(x);
    select &= !element.isF16() && !element.isBF16();  // of which `where` has none
    Shape shape = shape_of(x);
    const Shape other = shape_of(y);
    for (size_t d = 0; d < shape.size(); ++d) {
      const std::optional<Polynomial> p = polynomial_of(shape[d]);
      if (same(shape[d], other[d]) && p && !a->bound.binds(*p)) continue;
      const std::string name = ports_.bound.fresh(op.getOpType());
      made.push_back({name, i});
      shape[d] = Extent::of(Polynomial::of(name)), select = false;
    }
    results.push_back(tensor_of(shape, getElementTypeOrSelf(x)));
  }
  if (select) {
    const auto copies = [&](Body& body) {
      IRMapping map;
      map.map(body.function.getArguments(), captured);
      OpBuilder build(op);
      for (Operation& inner : body.function.front().without_terminator()) build.clone(inner, map);
      SmallVector<Value> values;
      for (Value v : body.end()->getOperands()) values.push_back(map.lookup(v));
      body.function.erase();
      return values;
    };
    const SmallVector<Value> x = copies(*a), y = copies(*b);
    for (unsigned i = 0; i < n.results(); ++i) {
      if (n.out(i).use_empty()) continue;
      Value out = x[i];
      if (out != y[i]) {
        INVAR_TRY(out, n.make<WhereOp>({condition, x[i], y[i]}));
      }
      n.replace(i, out);
    }
  } else {
    SmallVector<Value> operands{condition};
    operands.append(captured);
    OpBuilder& build = n.build();
    auto flow = build.create<ReproFlowOp>(
        op.getLoc(), results, build.getStringAttr("if"),
        build.getArrayAttr({FlatSymbolRefAttr::get(a->function), FlatSymbolRefAttr::get(b->function)}),
        operands, build.getI64IntegerAttr(0));
    for (const auto& [name, result] : made) ports_.bound.shaped(name, flow.getOutputs()[result]);
    for (unsigned i = 0; i < n.results(); ++i) n.replace(i, flow.getOutputs()[i]);
  }
  n.commit();
  return {};
}

}  // namespace invar::compiler
