// If, Loop and Scan (onnx.13): where conditions and trip counts are constants, copies of the bodies
// replace the node. What is known at run time only is left to dynamic_if.cc and dynamic_loop.cc.
#include "compiler/lowering/control_flow/control_flow.h"

#include "compiler/lowering/op_builder.h"
#include "llvm/ADT/ScopeExit.h"
#include "mlir/IR/IRMapping.h"

namespace invar::compiler {
namespace {

Result<Region*> body_of(NodeOp op, llvm::StringRef name) {
  if (auto names = op.getBodyNames())
    for (auto [i, given] : llvm::enumerate(names->getAsValueRange<StringAttr>()))
      if (given == name) return &op.getBodies()[i];
  return bad_input("attribute \"" + name.str() + "\" is missing or no graph");
}

Status expect_bodies(NodeOp op, unsigned count) {
  if (op.getBodies().size() == count) return {};
  return not_covered("it has " + std::to_string(op.getBodies().size()) + " graphs as attributes instead of " +
                     std::to_string(count));
}

// Whether a Loop body returns the condition that it takes (its second input), or the constant true.
bool condition_stays_true(Region& region) {
  Block& body = region.front();
  Value v = body.getTerminator()->getOperand(0);
  for (auto node = v.getDefiningOp<NodeOp>();
       node && node.getOpType() == "Identity" && !node.getInputs().empty(); node = v.getDefiningOp<NodeOp>())
    v = node.getInputs()[0];
  return (body.getNumArguments() > 1 && v == body.getArgument(1)) || constant_condition(v) == true;
}

// Estimates the operations of `times` copies of a graph, with nested loops of constant trip count
// unrolled. Saturates at INT64_MAX.
int64_t estimate_cloned_ops(int64_t times, Region& region) {
  int64_t all = 1;
  const auto add = [&](int64_t more) {
    if (__builtin_add_overflow(all, more, &all)) all = INT64_MAX;
  };
  for (Operation& op : region.front()) {
    add(1);
    auto inner = dyn_cast<NodeOp>(op);
    if (!inner) continue;
    int64_t trips = 1;
    if (inner.getOpType() == "Loop" && !inner.getInputs().empty()) {
      Operation* from = inner.getInputs()[0].getDefiningOp();
      auto data = from ? from->getAttrOfType<StringAttr>("data") : StringAttr();  // a weight's
      const std::vector<int64_t> count =
          data ? integers_from_bytes(std::string_view(data.getValue()), 8) : std::vector<int64_t>();
      if (count.size() == 1) trips = count[0];
    }
    for (Region& body : inner.getBodies()) add(estimate_cloned_ops(trips, body));
  }
  return __builtin_mul_overflow(std::max<int64_t>(times, 0), all, &all) ? INT64_MAX : all;
}

// Stacks values of one shape along a new axis; `like` gives the shape if there are none.
Result<Value> stack(NodeView& node, ArrayRef<Value> values, Value like, int64_t given_axis) {
  Shape shape = shape_of(like.getType());
  INVAR_TRY(int64_t axis, NodeView::normalize_axis(given_axis, shape.size() + 1));
  shape.insert(shape.begin() + axis, Dim::of(1));
  SmallVector<Value> rows;
  for (Value v : values) {
    if (shape_of(v.getType()) != shape_of(like.getType()))
      return not_covered("its steps give " + text_of_type(like.getType()) + " and " +
                         text_of_type(v.getType()));
    INVAR_TRY(Value row, reshape(node, v, shape));
    rows.push_back(row);
  }
  if (!rows.empty()) return concat(node, rows, axis);
  INVAR_TRY(Value row, reshape(node, like, shape));
  return slice(node, row, static_cast<size_t>(axis), 0, 0);
}

// A list attribute of `count` numbers; zeros if it is absent.
Result<std::vector<int64_t>> ints_attr_of_length(const NodeView& node, llvm::StringRef name, size_t count) {
  INVAR_TRY(std::vector<int64_t> list, node.ints_attr(name));
  if (list.empty()) list.resize(count);
  if (list.size() == count) return list;
  return bad_input("attribute \"" + name.str() + "\" has " + std::to_string(list.size()) +
                   " numbers instead of " + std::to_string(count));
}

}  // namespace

std::optional<bool> constant_condition(Value condition) {
  auto weight = condition.getDefiningOp<ReproWeightOp>();
  const std::optional<llvm::StringRef> bytes = weight ? weight.getData() : std::nullopt;
  return bytes && bytes->size() == 1 ? std::optional<bool>((*bytes)[0] != 0) : std::nullopt;
}

Result<Value> scalar_condition(NodeView& node, Value v) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  if (!type || !type.getElementType().isSignlessInteger(1))
    return bad_input("its condition is no tensor of booleans");
  for (const Dim& e : shape_of(type))
    if (e != Dim::of(1)) return not_covered("its condition has the shape " + text_of(shape_of(type)));
  return reshape(node, v, {});
}

const Conversion::ControlFlowEntry* Conversion::find_control_flow(NodeOp op) {
  static const ControlFlowEntry entries[] = {{"If", 1, &Conversion::lower_if},
                                             {"Loop", 1, &Conversion::lower_loop},
                                             {"Scan", 8, &Conversion::lower_scan}};
  if (!op.getDomain().empty()) return nullptr;
  for (const ControlFlowEntry& e : entries)
    if (e.op_type == op.getOpType()) return &e;
  return nullptr;
}

Status check_body_inputs(Region& region, ValueRange inputs) {
  Block& body = region.front();
  if (body.getNumArguments() != inputs.size())
    return bad_input("its graph takes " + std::to_string(body.getNumArguments()) + " inputs instead of " +
                     std::to_string(inputs.size()));
  for (auto [argument, input] : llvm::zip(body.getArguments(), inputs)) {
    auto declared = dyn_cast<RankedTensorType>(argument.getType());
    if (declared && isa<RankedTensorType>(input.getType()) && declared.getElementType() != element_of(input))
      return bad_input("an input of its graph is declared as " + text_of_type(declared) + " and given as " +
                       text_of_type(input.getType()));
  }
  return {};
}

Status Conversion::count_cloned_ops(Region& region, int64_t limit) {
  ++shared_->cloned_ops;
  region.walk([this](Operation*) { ++shared_->cloned_ops; });
  if (shared_->cloned_ops <= limit) return {};
  return not_covered("the graphs within nodes become more than " + std::to_string(limit) +
                     " operations, step by step");
}

Result<Conversion::ClonedBody> Conversion::clone_body(NodeOp op, Region& region, ValueRange inputs) {
  INVAR_CHECK_OK(check_body_inputs(region, inputs));
  INVAR_CHECK_OK(count_cloned_ops(region, kMaxClonedOps));
  IRMapping map;
  map.map(region.front().getArguments(), inputs);
  Operation* before = op->getPrevNode();
  OpBuilder build(op);
  for (Operation& inner : region.front()) build.clone(inner, map);
  return ClonedBody{before ? before->getNextNode() : &op->getBlock()->front(),
                    cast<YieldOp>(op->getPrevNode())};
}

std::optional<Error> Conversion::take_errors(Operation* before, Operation* last) {
  std::optional<Error> error;
  for (Operation* inner = last->getPrevNode(); inner != before;) {
    Operation* next = inner->getPrevNode();
    auto failed = failed_.find(inner);
    if (isa<NodeOp>(inner) && inner->use_empty()) {
      if (failed != failed_.end()) failed_.erase(failed);
      inner->erase();
    } else if (failed != failed_.end()) {
      const Error found =
          at(cast<NodeOp>(inner), failed->second).around("within it: ", error ? "; " + error->message : "");
      error = error ? joined(found, *error) : found;
      failed_.erase(failed);
    }
    inner = next;
  }
  return error;
}

Result<Conversion::Yields> Conversion::inline_body(NodeOp op, Region& region, ValueRange inputs) {
  INVAR_TRY(ClonedBody copy, clone_body(op, region, inputs));
  // Conversion inserts operations before `first`, too.
  Operation* before = copy.first->getPrevNode();
  convert(copy.first, copy.end);
  if (const std::optional<Error> error = take_errors(before, copy.end)) return *error;
  Yields yields(std::in_place, copy.end.getValues());
  copy.end.erase();
  for (Value v : *yields)
    if (isa_and_nonnull<NodeOp>(v.getDefiningOp())) return Yields();
  return yields;
}

// One branch replaces the node where the condition is constant.
Status Conversion::lower_if(NodeOp op) {
  NodeView n = node(op);
  INVAR_CHECK_OK(n.expect(1, 1, {}, n.num_results()));
  INVAR_TRY(Region * then_body, body_of(op, "then_branch"));
  INVAR_TRY(Region * else_body, body_of(op, "else_branch"));
  INVAR_CHECK_OK(expect_bodies(op, 2));
  const auto gives = [](Region* body) { return body->front().getTerminator()->getNumOperands(); };
  if (gives(then_body) != n.num_results() || gives(else_body) != n.num_results())
    return bad_input("its branches give " + std::to_string(gives(then_body)) + " and " +
                     std::to_string(gives(else_body)) + " results, and it has " +
                     std::to_string(n.num_results()));
  INVAR_TRY(Value condition, scalar_condition(n, n.in(0)));
  if (std::optional<bool> known = constant_condition(condition)) {
    INVAR_TRY(ClonedBody copy, clone_body(op, *known ? *then_body : *else_body, {}));
    Operation* next = op->getNextNode();
    for (auto [result, value] : llvm::zip(op.getOutputs(), copy.end.getValues()))
      result.replaceAllUsesWith(value);
    Operation* first = copy.first == copy.end ? next : copy.first;
    copy.end.erase();
    op.erase();
    convert(first, next);
    return {};
  }
  return lower_dynamic_if(op, condition, *then_body, *else_body);
}

Status Conversion::lower_loop(NodeOp op) {
  NodeView n = node(op);
  const auto operands = static_cast<unsigned>(op.getInputs().size());
  INVAR_CHECK_OK(n.expect(0, operands, {}, n.num_results()));
  INVAR_CHECK_OK(expect_bodies(op, 1));
  INVAR_TRY(Region * body, body_of(op, "body"));
  const unsigned given = body->front().getTerminator()->getNumOperands();
  SmallVector<Value> carried;
  for (unsigned i = 2; i < operands; ++i) {
    if (!n.has(i)) return bad_input("operand " + std::to_string(i) + " is missing");
    carried.push_back(n.in(i));
  }
  if (given < carried.size() + 1 || given - 1 != n.num_results())
    return bad_input("its graph gives " + std::to_string(given) + " values, it has " +
                     std::to_string(n.num_results()) + " results");
  std::optional<int64_t> trips;
  if (n.has(0)) {
    if (const std::optional<std::string> bytes = n.constant_bytes(0)) {
      INVAR_TRY(const std::vector<int64_t> count, n.constant_ints(0));
      if (count.size() != 1) return bad_input("operand 0 is not one number");
      trips = count[0];
    }
    if (!trips) return lower_dynamic_loop(op, *body, carried);
  }
  if (trips.value_or(INT64_MAX) == INT64_MAX && (!n.has(1) || constant_condition(n.in(1)) == true) &&
      condition_stays_true(*body))
    return never_ends_error();
  INVAR_TRY(const bool done, unroll_loop(op, *body, carried, trips));
  return done ? Status() : lower_dynamic_loop(op, *body, carried);
}

// Unrolls while the conditions are constants and the copies within kMaxClonedOps.
Result<bool> Conversion::unroll_loop(NodeOp op, Region& body, SmallVector<Value> carried,
                                     std::optional<int64_t> trips) {
  NodeView n = node(op);
  if (trips && estimate_cloned_ops(*trips, body) > kMaxClonedOps - shared_->cloned_ops) return false;
  Operation* before = op->getPrevNode();
  const auto abandoned = [&] {
    erase_created(before, op);
    return false;
  };
  ++shared_->unroll_attempts;
  const auto tried = llvm::make_scope_exit([&] { --shared_->unroll_attempts; });
  bool runs = true;
  const bool conditional = n.has(1);
  if (conditional) {
    INVAR_TRY(Value first, scalar_condition(n, n.in(1)));
    const std::optional<bool> known = constant_condition(first);
    if (!known) return abandoned();
    runs = *known;
  }
  const size_t scans = n.num_results() - carried.size();
  std::vector<SmallVector<Value>> rows(scans);
  const Value yes = n.constant(llvm::StringRef("\1", 1), DType::boolean);
  // It runs once even if there is no iteration, for the shapes of the scan outputs alone.
  auto run = [&](int64_t step) {
    SmallVector<Value> inputs{i64_scalar(n, step), yes};
    inputs.append(carried);
    return inline_body(op, body, inputs);
  };
  for (int64_t step = 0; runs && (!trips || step < *trips); ++step) {
    const Result<Yields> yields = run(step);
    if (!yields && yields.error().code == Code::not_covered) return abandoned();
    if (!yields) return yields.error();
    if (!*yields) return true;  // the node that it reads is refused already
    for (size_t i = 0; i < carried.size(); ++i) carried[i] = (**yields)[1 + i];
    for (size_t i = 0; i < scans; ++i)
      if (!n.out(static_cast<unsigned>(carried.size() + i)).use_empty())
        rows[i].push_back((**yields)[1 + carried.size() + i]);
    INVAR_TRY(Value again, scalar_condition(n, (**yields)[0]));
    const std::optional<bool> known = constant_condition(again);
    if (!conditional && known != true)
      return not_covered(
          "its graph gives a condition, but it has none: standard and implementations disagree");
    if (!known) return abandoned();
    runs = *known;
  }
  for (size_t i = 0; i < carried.size(); ++i) n.replace(static_cast<unsigned>(i), carried[i]);
  std::optional<SmallVector<Value>> likes;
  for (size_t i = 0; i < scans; ++i) {
    const auto result = static_cast<unsigned>(carried.size() + i);
    if (n.out(result).use_empty()) continue;
    if (rows[i].empty() && !likes) {
      INVAR_TRY(likes, run(0));
      if (!likes) return true;
    }
    INVAR_TRY(Value all, stack(n, rows[i], rows[i].empty() ? (*likes)[1 + result] : rows[i][0], 0));
    n.replace(result, all);
  }
  n.commit();
  return true;
}

Result<Conversion::Yields> Conversion::lower_scan_sequence(NodeOp op, Region& body, const ScanAxes& steps,
                                                           SmallVector<Value> states, ValueRange inputs) {
  NodeView n = node(op);
  const size_t outputs = steps.out_axes.size();
  std::optional<Dim> over;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape shape = shape_of(inputs[i].getType());
    INVAR_TRY(axes.emplace_back(), NodeView::normalize_axis(steps.in_axes[i], shape.size()));
    const Dim& e = shape[static_cast<size_t>(axes.back())];
    if (!e.known()) return not_covered("it goes over a dimension " + text_of(e) + " that is not known");
    if (over && *over != e)
      return unequal_shapes({*over}, {e},
                            "it goes over " + text_of(*over) + " and " + text_of(e) + " steps at once");
    over = e;
  }
  if (!over->constant() || estimate_cloned_ops(over->value, body) > kMaxClonedOps - shared_->cloned_ops)
    return lower_dynamic_scan(op, body, steps, std::move(states), inputs, *dim_expr_of(*over));
  const std::optional<int64_t> count = over->value;
  if (*count == 0 && outputs) return not_covered("a sequence without steps");
  std::vector<SmallVector<Value>> rows(outputs);
  auto run = [&](int64_t step) -> Result<Yields> {
    SmallVector<Value> given(states);
    for (size_t i = 0; i < inputs.size(); ++i) {
      Shape shape = shape_of(inputs[i].getType());
      const int64_t at = steps.in_backwards[i] ? *count - 1 - step : step;
      const auto axis = static_cast<size_t>(axes[i]);
      INVAR_TRY(Value one, slice(n, inputs[i], axis, at, 1));
      shape.erase(shape.begin() + axes[i]);
      INVAR_TRY(one, reshape(n, one, shape));
      given.push_back(one);
    }
    return inline_body(op, body, given);
  };
  for (int64_t step = 0; step < *count; ++step) {
    INVAR_TRY(Yields yields, run(step));
    if (!yields) return Yields();
    states.assign(yields->begin(), yields->begin() + static_cast<ptrdiff_t>(states.size()));
    for (size_t i = 0; i < outputs; ++i) rows[i].push_back((*yields)[states.size() + i]);
  }
  for (size_t i = 0; i < outputs; ++i) {
    if (steps.out_backwards[i]) std::reverse(rows[i].begin(), rows[i].end());
    INVAR_TRY(Value all, stack(n, rows[i], rows[i][0], steps.out_axes[i]));
    states.push_back(all);
  }
  return Yields(std::move(states));
}

// Before opset 9 the leading axis of all operands and results is the batch.
Status Conversion::lower_scan(NodeOp op) {
  NodeView n = node(op);
  const auto operands = static_cast<unsigned>(op.getInputs().size());
  const bool batched = n.version() < 9;
  const unsigned first = batched ? 1 : 0;
  INVAR_CHECK_OK(n.expect(0, operands,
                          {"num_scan_inputs", "directions", "scan_input_axes", "scan_input_directions",
                           "scan_output_axes", "scan_output_directions"},
                          n.num_results()));
  INVAR_CHECK_OK(expect_bodies(op, 1));
  INVAR_TRY(Region * body, body_of(op, "body"));
  INVAR_TRY(const int64_t scanned_inputs, n.int_attr("num_scan_inputs", 0));
  if (batched && n.has(0)) return not_covered("operand 0 (sequence_lens) is not covered");
  if (scanned_inputs < 1 || scanned_inputs > static_cast<int64_t>(operands) - first)
    return bad_input("attribute \"num_scan_inputs\" is " + std::to_string(scanned_inputs) + ", it has " +
                     std::to_string(operands) + " operands");
  const auto inputs = static_cast<size_t>(scanned_inputs);
  const size_t states = operands - first - inputs;
  if (n.num_results() < states || body->front().getTerminator()->getNumOperands() != n.num_results())
    return bad_input("its graph and it have different numbers of results");
  for (unsigned i = first; i < operands; ++i)
    if (!n.has(i)) return bad_input("operand " + std::to_string(i) + " is missing");
  const size_t outputs = n.num_results() - states;
  ScanAxes steps;
  INVAR_TRY(steps.in_axes, ints_attr_of_length(n, "scan_input_axes", inputs));
  INVAR_TRY(steps.in_backwards,
            ints_attr_of_length(n, batched ? "directions" : "scan_input_directions", inputs));
  INVAR_TRY(steps.out_axes, ints_attr_of_length(n, "scan_output_axes", outputs));
  INVAR_TRY(steps.out_backwards, ints_attr_of_length(n, "scan_output_directions", outputs));
  const ValueRange given = op.getInputs().drop_front(first);
  Yields results;
  if (!batched) {
    INVAR_TRY(results, lower_scan_sequence(op, *body, steps, SmallVector<Value>(given.take_front(states)),
                                           given.drop_front(states)));
    if (!results) return {};  // the node that it reads is refused already
  } else {
    INVAR_TRY(results, lower_scan_batch(op, *body, steps, states, given));
    if (!results) return {};
  }
  for (unsigned i = 0; i < n.num_results(); ++i) n.replace(i, (*results)[i]);
  n.commit();
  return {};
}

Result<Conversion::Yields> Conversion::lower_scan_batch(NodeOp op, Region& body, const ScanAxes& steps,
                                                        size_t states, ValueRange given) {
  NodeView n = node(op);
  auto batch_of = [](Value v) {
    const Shape shape = shape_of(v.getType());
    return shape.empty() ? Dim::of(-1) : shape[0];
  };
  const Dim batch = batch_of(given[0]);
  if (!batch.constant() || batch.value < 1) return not_covered("a batch of " + text_of(batch) + " sequences");
  std::vector<SmallVector<Value>> all;
  for (int64_t b = 0; b < batch.value; ++b) {
    SmallVector<Value> one;
    for (Value v : given) {
      if (batch_of(v) != batch)
        return unequal_shapes({batch_of(v)}, {batch}, "its operands are not of one batch");
      INVAR_TRY(Value mine, slice(n, v, 0, b, 1));
      Shape shape = shape_of(v.getType());
      shape.erase(shape.begin());
      INVAR_TRY(mine, reshape(n, mine, shape));
      one.push_back(mine);
    }
    INVAR_TRY(const Yields results,
              lower_scan_sequence(op, body, steps, SmallVector<Value>(ArrayRef(one).take_front(states)),
                                  ArrayRef(one).drop_front(states)));
    if (!results) return Yields();
    all.resize(results->size());
    for (size_t i = 0; i < all.size(); ++i) all[i].push_back((*results)[i]);
  }
  SmallVector<Value> joint;
  for (const SmallVector<Value>& values : all) {
    INVAR_TRY(Value v, stack(n, values, values[0], 0));
    joint.push_back(v);
  }
  return Yields(std::move(joint));
}

}  // namespace invar::compiler
