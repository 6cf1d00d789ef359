// RNN, GRU and LSTM in the order of ONNX's formulas: unrolled over a constant number of steps, else
// as a run-time loop.
#include "compiler/dialects/constant_data.h"
#include "compiler/lowering/op_builder.h"

namespace invar::compiler {
namespace {

constexpr int64_t kMaxUnrolledSteps = 4096;
constexpr llvm::StringLiteral kClipAttribute = "clip";

// One direction of a node. Gates: 1 for RNN, 3 for GRU (z r h), 4 for LSTM (i o f c).
struct Cell {
  NodeView& node;
  int64_t hidden;
  Dim batch;
  std::vector<std::string> functions;
  bool reset_after = false;  // GRU: linear_before_reset
  float bound = 0;           // those of gates and candidates are clipped to -bound ... bound; 0: they are not
  Value x{};                 // [T, B, I]
  Value lengths{};           // sequence lengths, i64 [B, 1], or null
  bool in_loop = false;
  // Each gate has x W' + biases [T, B, H], and the recurrent weights R [H, H].
  std::vector<Value> input_sums{}, recurrent_weights{};
  Value reset_bias{};  // GRU with linear_before_reset: the recurrent bias of gate h, which r scales
  SmallVector<Value> peepholes{};
  Value now{};                      // i64 []: the iteration, in a loop
  std::vector<Value> input_rows{};  // this step's rows of input_sums, read before the products

  // An unrolled step keeps the axis that slicing leaves.
  Shape state() const {
    return in_loop ? Shape{batch, Dim::of(hidden)} : Shape{Dim::of(1), batch, Dim::of(hidden)};
  }
  Result<Value> activate(size_t i, Value v, bool clips = true) {
    if (bound > 0 && clips) {
      INVAR_TRY(v, node.make<MaxOp>({v, node.constant(-bound)}));
      INVAR_TRY(v, node.make<MinOp>({v, node.constant(bound)}));
    }
    if (functions[i] == "Sigmoid") return node.make<SigmoidOp>(v);
    if (functions[i] == "Tanh") return node.make<TanhOp>(v);
    if (functions[i] == "Relu") return node.make<ReluOp>(v);
    return not_covered("activation \"" + functions[i] + "\"; covered are Sigmoid, Tanh and Relu");
  }
  Result<Value> sum(Value a, Value b) { return node.make<AddOp>({a, b}); }
  Result<Value> times(Value a, Value b) { return node.make<MulOp>({a, b}); }
  Result<Value> row(Value all, int64_t t) {
    if (in_loop) return node.make<GatherOp>({all, now});
    return slice(node, all, 0, t, 1);
  }

  Status load(unsigned direction, size_t gates);
  // The pre-activation of gate g. Its sum follows the product immediately, so that it can be fused
  // into it.
  Result<Value> gate_input(size_t g, Value h) {
    INVAR_TRY(Value from_h, matrix_product(node, h, recurrent_weights[g], /*transposed=*/true));
    return sum(input_rows[g], from_h);
  }
  Result<Value> gru_step(Value h);
  Result<Value> lstm_step(Value h, Value& c);
  Result<Value> step(int64_t t, Value h, Value& c);
  // Hidden and cell state, and the row of the output Y.
  struct State {
    Value h, c, output;
  };
  Result<State> masked_step(int64_t t, const State& from);
  // The loop-invariant values that the steps read, and the same cell in a loop body that is given
  // them.
  SmallVector<Value> loop_invariants() const;
  Cell in_loop_body(NodeView& other, ValueRange invariants) const;
  // All steps as a loop; `shown` is then [T, B, H].
  Result<State> run_loop(const DimExpr& steps, bool backwards, const State& from) const;
};

// The part of an operand [directions, ...] for one direction.
Result<Value> select_direction(NodeView& node, unsigned operand, unsigned direction) {
  Shape shape = node.shape(operand);
  INVAR_TRY(Value one, slice(node, node.in(operand), 0, direction, 1));
  shape.erase(shape.begin());
  return reshape(node, one, shape);
}

Status Cell::load(unsigned direction, size_t gates) {
  INVAR_TRY(Value weights, select_direction(node, 1, direction));
  INVAR_TRY(Value recurrent, select_direction(node, 2, direction));
  Value biases;
  if (node.has(3)) {
    INVAR_TRY(biases, select_direction(node, 3, direction));
  }
  const auto n = static_cast<int64_t>(gates);
  for (int64_t g = 0; g < n; ++g) {
    INVAR_TRY(Value gate, slice(node, weights, 0, g * hidden, hidden));
    INVAR_TRY(gate, matrix_product(node, x, gate, /*transposed=*/true));
    INVAR_TRY(Value matrix, slice(node, recurrent, 0, g * hidden, hidden));
    if (biases) {
      INVAR_TRY(Value of_x, slice(node, biases, 0, g * hidden, hidden));
      INVAR_TRY(Value of_h, slice(node, biases, 0, (n + g) * hidden, hidden));
      INVAR_TRY(gate, sum(gate, of_x));
      if (reset_after && g == 2) {
        reset_bias = of_h;
      } else {
        INVAR_TRY(gate, sum(gate, of_h));
      }
    }
    input_sums.push_back(gate), recurrent_weights.push_back(matrix);
  }
  if (node.has(7)) {
    INVAR_TRY(Value all, select_direction(node, 7, direction));
    for (int64_t g = 0; g < 3; ++g) {
      INVAR_TRY(Value one, slice(node, all, 0, g * hidden, hidden));
      peepholes.push_back(one);
    }
  }
  return {};
}

Result<Value> Cell::gru_step(Value h) {
  INVAR_TRY(Value z, gate_input(0, h));
  INVAR_TRY(z, activate(0, z));
  INVAR_TRY(Value rest, node.make<SubOp>({node.constant(1.0f), z}));
  INVAR_TRY(Value kept, times(z, h));
  INVAR_TRY(Value r, gate_input(1, h));
  INVAR_TRY(r, activate(0, r));
  Value from_h;
  if (reset_after) {
    INVAR_TRY(from_h, matrix_product(node, h, recurrent_weights[2], /*transposed=*/true));
    if (reset_bias) {
      INVAR_TRY(from_h, sum(from_h, reset_bias));
    }
    INVAR_TRY(from_h, times(r, from_h));
  } else {
    INVAR_TRY(Value reset, times(r, h));
    INVAR_TRY(from_h, matrix_product(node, reset, recurrent_weights[2], /*transposed=*/true));
  }
  INVAR_TRY(Value candidate, sum(input_rows[2], from_h));
  INVAR_TRY(candidate, activate(1, candidate));
  INVAR_TRY(Value fresh, times(rest, candidate));
  return sum(fresh, kept);
}

Result<Value> Cell::lstm_step(Value h, Value& c) {
  // Peepholes come in the order i, o, f of the gates.
  auto open = [&](size_t g, Value cell) -> Result<Value> {
    INVAR_TRY(Value gate, gate_input(g, h));
    if (!peepholes.empty()) {
      INVAR_TRY(Value seen, times(peepholes[g], cell));
      INVAR_TRY(gate, sum(gate, seen));
    }
    return activate(0, gate);
  };
  Value o;
  if (peepholes.empty()) {  // a peephole of o reads the next cell state
    INVAR_TRY(o, open(1, c));
  }
  INVAR_TRY(Value i, open(0, c));
  INVAR_TRY(Value f, open(2, c));
  INVAR_TRY(Value kept, times(f, c));
  INVAR_TRY(Value candidate, gate_input(3, h));
  INVAR_TRY(candidate, activate(1, candidate));
  INVAR_TRY(Value fresh, times(i, candidate));
  INVAR_TRY(c, sum(kept, fresh));
  INVAR_TRY(Value output, activate(2, c, /*clips=*/false));
  if (!o) {
    INVAR_TRY(o, open(1, c));
  }
  return times(o, output);
}

Result<Value> Cell::step(int64_t t, Value h, Value& c) {
  input_rows.clear();
  for (Value all : input_sums) {
    INVAR_TRY(Value one, row(all, t));
    input_rows.push_back(one);
  }
  if (input_sums.size() == 4) return lstm_step(h, c);
  if (input_sums.size() == 3) return gru_step(h);
  INVAR_TRY(Value next, gate_input(0, h));
  return activate(0, next);
}

Result<Cell::State> Cell::masked_step(int64_t t, const State& from) {
  Value c = from.c;
  INVAR_TRY(Value next, step(t, from.h, c));
  Value output = next;
  if (lengths) {  // past its length a sequence keeps its state, and its rows of Y are zeros
    Value at = now;
    if (!at) at = node.constant(bytes_of({&t, 1}, 8), DType::i64);
    INVAR_TRY(Value runs, node.make<LessOp>({at, lengths}));
    INVAR_TRY(output, node.make<WhereOp>({runs, next, node.constant(0.0f)}));
    INVAR_TRY(next, node.make<WhereOp>({runs, next, from.h}));
    if (c) {
      INVAR_TRY(c, node.make<WhereOp>({runs, c, from.c}));
    }
  }
  return State{next, c, output};
}

SmallVector<Value> Cell::loop_invariants() const {
  SmallVector<Value> all(input_sums.begin(), input_sums.end());
  all.append(recurrent_weights.begin(), recurrent_weights.end());
  all.append(peepholes);
  for (Value v : {reset_bias, lengths})
    if (v) all.push_back(v);
  return all;
}

Cell Cell::in_loop_body(NodeView& other, ValueRange invariants) const {
  size_t next = 0;
  Cell cell{.node = other,
            .hidden = hidden,
            .batch = batch,
            .functions = functions,
            .reset_after = reset_after,
            .bound = bound,
            .in_loop = true};
  for (size_t g = 0; g < input_sums.size(); ++g) cell.input_sums.push_back(invariants[next++]);
  for (size_t g = 0; g < recurrent_weights.size(); ++g) cell.recurrent_weights.push_back(invariants[next++]);
  for (size_t g = 0; g < peepholes.size(); ++g) cell.peepholes.push_back(invariants[next++]);
  if (reset_bias) cell.reset_bias = invariants[next++];
  if (lengths) cell.lengths = invariants[next++];
  return cell;
}

Result<Cell::State> Cell::run_loop(const DimExpr& steps, bool backwards, const State& from) const {
  const std::optional<DimExpr> last = invar::sum(steps, -1);
  if (!last) return not_covered("more steps than can be counted");
  SmallVector<Value> carried{from.h};
  if (from.c) carried.push_back(from.c);
  INVAR_TRY(SmallVector<Value> all,
            node.make_loop(
                steps, carried, loop_invariants(),
                [&](NodeView& inner, Value number, ValueRange states,
                    ValueRange given) -> Result<SmallVector<Value>> {
                  Cell cell = in_loop_body(inner, given);
                  cell.now = number;
                  if (backwards) {
                    INVAR_TRY(cell.now, inner.make<SubOp>({inner.size_tensor(*last, {}), number}));
                  }
                  INVAR_TRY(State to, cell.masked_step(0, {states[0], from.c ? states[1] : Value(), {}}));
                  SmallVector<Value> next{to.h};
                  if (to.c) next.push_back(to.c);
                  next.push_back(to.output);
                  return next;
                }));
  Value output = all.back();
  if (backwards) {
    const int64_t back = -1;
    INVAR_TRY(
        Value reversed,
        node.make<IotaOp>({node.size_tensor(*last, {}), node.constant(bytes_of({&back, 1}, 8), DType::i64)},
                          {}, tensor_of({Dim::of(steps)}, node.builder().getI64Type())));
    INVAR_TRY(output, node.make<GatherOp>({output, reversed}));
  }
  return State{all[0], from.c ? all[1] : Value(), output};
}

std::vector<std::string> default_activations(size_t gates) {
  if (gates == 1) return {"Tanh"};
  if (gates == 3) return {"Sigmoid", "Tanh"};
  return {"Sigmoid", "Tanh", "Tanh"};
}

// The activation functions of all directions.
Result<std::vector<std::string>> activation_names(NodeView& node, std::vector<std::string> standard,
                                                  size_t directions) {
  std::vector<std::string> all;
  if (auto given = dyn_cast_or_null<ArrayAttr>(node.attribute("activations"))) {
    for (Attribute a : given)
      if (auto text = dyn_cast<StringAttr>(a)) all.push_back(text.str());
  } else {
    for (size_t d = 0; d < directions; ++d) all.insert(all.end(), standard.begin(), standard.end());
  }
  if (all.size() != standard.size() * directions)
    return bad_input("attribute \"activations\" does not name " + std::to_string(standard.size()) +
                     " functions for each direction");
  return all;
}

// An initial state in its required shape. One dimension that only may be equal is checked in each
// call.
Result<Value> initial_state(NodeView& node, unsigned operand, const Shape& given, const Shape& wanted) {
  const DimText text =
      "operand " + std::to_string(operand) + " of shape " + text_of(given) + " instead of " + text_of(wanted);
  size_t differ = 0;
  bool wrong = given.size() != wanted.size();
  for (size_t d = 0; d < given.size() && !wrong; ++d) {
    differ += given[d] != wanted[d];
    wrong |= given[d] != wanted[d] && given[d].constant() && wanted[d].constant();
  }
  if (wrong) return bad_input(text);
  if (differ > 1 || !may_be_equal(given, wanted)) return not_covered(text);
  return reshape(node, node.in(operand), wanted);
}

// Checks weights, recurrent weights, biases and peepholes.
Status check_weight_shapes(const NodeView& node, size_t gates, size_t directions) {
  const Shape weights = node.shape(1), matrix = node.shape(2);
  if (node.shape(0).size() != 3 || weights.size() != 3 || matrix.size() != 3)
    return bad_input("operand, weights or recurrent weights are not of rank 3");
  if (!matrix[2].constant()) return not_covered("a hidden size that is not known");
  const int64_t hidden = matrix[2].value;
  const Dim rows = Dim::of(hidden * static_cast<int64_t>(gates)),
            all = Dim::of(static_cast<int64_t>(directions));
  if (weights[0] != all || matrix[0] != all || weights[1] != rows || matrix[1] != rows)
    return shape_error({weights, matrix}, "weights of " + text_of(weights) + " and " + text_of(matrix) +
                                              " are not those of " + std::to_string(directions) +
                                              " directions");
  const std::pair<unsigned, int64_t> lists[] = {{3, 2 * rows.value}, {7, 3 * hidden}};
  for (auto [operand, length] : lists)
    if (node.has(operand) && node.shape(operand) != Shape{all, Dim::of(length)})
      return shape_error({node.shape(operand)}, "operand " + std::to_string(operand) + " is not " +
                                                    std::to_string(length) + " numbers for each direction");
  return {};
}

// All steps of a constant number, one after the other; `shown` is then [T, 1, B, H].
Result<Cell::State> run_unrolled(NodeView& node, Cell& cell, int64_t steps, bool backwards,
                                 Cell::State state) {
  SmallVector<Value> rows(static_cast<size_t>(steps));
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = backwards ? steps - 1 - i : i;
    INVAR_TRY(state, cell.masked_step(t, state));
    INVAR_TRY(rows[static_cast<size_t>(t)],
              reshape(node, state.output, {Dim::of(1), Dim::of(1), cell.batch, Dim::of(cell.hidden)}));
  }
  INVAR_TRY(state.output, concat(node, rows, 0));
  return state;
}

// The initial state of one direction; zeros if the node has no such operand.
Result<Value> start_state(NodeView& node, const Cell& cell, unsigned operand, const Dim& directions,
                          unsigned direction, bool batch_first) {
  if (!node.has(operand)) return expand(node, node.constant(0.0f), cell.state());
  const Dim hidden = Dim::of(cell.hidden);
  const Shape given = node.shape(operand), wanted = batch_first ? Shape{cell.batch, directions, hidden}
                                                                : Shape{directions, cell.batch, hidden};
  INVAR_TRY(Value states, initial_state(node, operand, given, wanted));
  INVAR_TRY(Value one, slice(node, states, batch_first ? 1 : 0, direction, 1));
  return reshape(node, one, cell.state());
}

// Sets a result to the final states of all directions.
Status replace_final_states(NodeView& node, unsigned result, ValueRange states, bool batch_first) {
  if (states.empty()) return {};
  INVAR_TRY(Value all, concat(node, states, 0));
  if (batch_first) {
    INVAR_TRY(all, transpose(node, all, {1, 0, 2}));
  }
  node.replace(result, all);
  return {};
}

// Before opset 7 Y could be left out by output_sequence = 0; where it is read, it is computed.
Status expect_recurrent(NodeView& node, size_t gates) {
  const char* last = node.version() < 7 ? "output_sequence" : "layout";
  INVAR_CHECK_OK(
      gates == 4
          ? node.expect(3, 8,
                        {"activations", kClipAttribute, "direction", "hidden_size", "input_forget", last}, 3)
      : gates == 3
          ? node.expect(
                3, 6,
                {"activations", kClipAttribute, "direction", "hidden_size", "linear_before_reset", last}, 2)
          : node.expect(3, 6, {"activations", kClipAttribute, "direction", "hidden_size", last}, 2));
  return node.require_attr("input_forget", int64_t{0});
}

template <size_t kGates>
Status recurrent(NodeView& node) {
  constexpr bool kIsLstm = kGates == 4;
  INVAR_CHECK_OK(expect_recurrent(node, kGates));
  INVAR_TRY(const float bound, node.float_attr(kClipAttribute, 0));
  if (node.attribute(kClipAttribute) && !(bound > 0))
    return bad_input("attribute \"clip\" is " + std::to_string(bound) + ", not above 0");
  std::string direction = "forward";
  if (auto given = dyn_cast_or_null<StringAttr>(node.attribute("direction"))) direction = given.str();
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return bad_input("attribute \"direction\" is none of forward, reverse and bidirectional");
  const size_t directions = direction == "bidirectional" ? 2 : 1;
  INVAR_TRY(const int64_t batch_first, node.int_attr("layout", 0));
  INVAR_TRY(const int64_t reset_after, node.int_attr("linear_before_reset", 0));
  const std::vector<std::string> standard = default_activations(kGates);
  INVAR_TRY(const std::vector<std::string> functions, activation_names(node, standard, directions));

  INVAR_CHECK_OK(check_weight_shapes(node, kGates, directions));
  const int64_t hidden = node.shape(2)[2].value;
  const Dim all = Dim::of(static_cast<int64_t>(directions));
  Value x = node.in(0);
  if (batch_first) {
    INVAR_TRY(x, transpose(node, x, {1, 0, 2}));
  }
  const Shape shape = shape_of(x.getType());
  const std::optional<DimExpr> steps = dim_expr_of(shape[0]);
  if (!steps) return not_covered("a sequence of " + text_of(shape[0]) + " steps");
  const bool unrolled = shape[0].constant() && shape[0].value > 0 && shape[0].value <= kMaxUnrolledSteps;
  Value lengths;
  if (node.has(4)) {
    INVAR_TRY(lengths, reshape(node, node.in(4), {shape[1], Dim::of(1)}));
    INVAR_TRY(lengths, node.make<CastOp>(
                           lengths, {}, tensor_of(shape_of(lengths.getType()), node.builder().getI64Type())));
  }
  SmallVector<Value> outputs, last_h, last_c;
  for (unsigned d = 0; d < directions; ++d) {
    Cell cell{.node = node,
              .hidden = hidden,
              .batch = shape[1],
              .functions = {},
              .reset_after = reset_after != 0,
              .bound = bound,
              .x = x,
              .lengths = lengths,
              .in_loop = !unrolled};
    cell.functions.assign(functions.begin() + static_cast<ptrdiff_t>(d * standard.size()),
                          functions.begin() + static_cast<ptrdiff_t>((d + 1) * standard.size()));
    INVAR_CHECK_OK(cell.load(d, kGates));
    INVAR_TRY(Value h, start_state(node, cell, 5, all, d, batch_first != 0));
    Value c;
    if (kIsLstm) {
      INVAR_TRY(c, start_state(node, cell, 6, all, d, batch_first != 0));
    }
    const bool backwards = direction == "reverse" || d == 1;
    Cell::State state{h, c, {}};
    if (unrolled) {
      INVAR_TRY(state, run_unrolled(node, cell, shape[0].value, backwards, state));
    } else {
      INVAR_TRY(state, cell.run_loop(*steps, backwards, state));
      INVAR_TRY(state.output, reshape(node, state.output, {shape[0], Dim::of(1), shape[1], Dim::of(hidden)}));
    }
    h = state.h, c = state.c;
    outputs.push_back(state.output);
    const Shape one = {Dim::of(1), shape[1], Dim::of(hidden)};
    INVAR_TRY(h, reshape(node, h, one));
    last_h.push_back(h);
    if (kIsLstm) {
      INVAR_TRY(c, reshape(node, c, one));
      last_c.push_back(c);
    }
  }
  INVAR_TRY(Value y, concat(node, outputs, 1));
  if (batch_first) {
    INVAR_TRY(y, transpose(node, y, {2, 0, 1, 3}));
  }
  INVAR_CHECK_OK(replace_final_states(node, 1, last_h, batch_first != 0));
  INVAR_CHECK_OK(replace_final_states(node, 2, last_c, batch_first != 0));
  return node.replace(y);
}

}  // namespace

void decompose_recurrent(RuleRegistry& registry) {
  registry.add_rule("RNN", 1, recurrent<1>);
  registry.add_rule("GRU", 1, recurrent<3>);
  registry.add_rule("LSTM", 1, recurrent<4>);
}

}  // namespace invar::compiler
