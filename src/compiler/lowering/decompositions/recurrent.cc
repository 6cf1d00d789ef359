// Recurrent networks: products, sums and functions in the order of ONNX's formulas, unrolled over their steps, or, over an open dimension,
// as a loop of them.
#include "compiler/dialects/constant_data.h"
#include "compiler/lowering/op_builder.h"

namespace invar::compiler {
namespace {

constexpr int64_t kMostSteps = 4096;  // that are unrolled

// One direction of one node. kGates: 1 RNN, 3 GRU (z r h), 4 LSTM (i o f c).
struct Cell {
  Node& node;
  int64_t hidden;
  Extent batch;
  std::vector<std::string> functions;
  bool reset_after = false;  // GRU: linear_before_reset
  Value x;                   // [T, B, I]
  Value lengths;             // i64 [B, 1], or none
  std::vector<Value> in,
      of;  // for each gate: x times its weights and the biases [T, B, H]; its recurrent weights [H, H]
  Value reset_bias;  // GRU with linear_before_reset: the bias that r scales
  SmallVector<Value> peepholes;
  bool in_loop = false;
  Value now{};                     // i64 [], the step there
  std::vector<Value> from_x = {};  // rows of `in` of this step: all at once, before the products

  // Of a step among many: a slice of them keeps their axis.
  Shape state() const {
    return in_loop ? Shape{batch, Extent::of(hidden)} : Shape{Extent::of(1), batch, Extent::of(hidden)};
  }
  Result<Value> activate(size_t i, Value v) {
    if (functions[i] == "Sigmoid") return node.make<SigmoidOp>(v);
    if (functions[i] == "Tanh") return node.make<TanhOp>(v);
    if (functions[i] == "Relu") return node.make<ReluOp>(v);
    return not_covered("activation \"" + functions[i] + "\"; covered are Sigmoid, Tanh and Relu");
  }
  Result<Value> sum(Value a, Value b) { return node.make<AddOp>({a, b}); }
  Result<Value> times(Value a, Value b) { return node.make<MulOp>({a, b}); }
  Result<Value> row(Value all, int64_t t) {
    if (in_loop) return node.make<GatherOp>({all, now});
    return part(node, all, 0, t, 1);
  }

  Status load(unsigned direction, size_t gates);
  // What gate g is given at step t, before its function. What is done with it stands right behind its product, which takes it along.
  Result<Value> given(size_t g, Value h) {
    INVAR_TRY(Value from_h, product(node, h, of[g], /*transposed=*/true));
    return sum(from_x[g], from_h);
  }
  Result<Value> gated(Value h);             // GRU
  Result<Value> stored(Value h, Value& c);  // LSTM
  Result<Value> step(int64_t t, Value h, Value& c);
  // From a state to the next one, and what is shown of it.
  struct State {
    Value h, c, shown;
  };
  Result<State> advance(int64_t t, const State& from);
  // What all steps read; the same cell of such values, in a function of its own.
  SmallVector<Value> fixed() const;
  Cell with(Node& other, ValueRange fixed) const;
  // All steps as a loop; `shown` is then of all, [T, B, H].
  Result<State> looped(const Polynomial& steps, bool backwards, const State& from) const;
};

// An operand of [directions, ...] for one of them.
Result<Value> of_direction(Node& node, unsigned operand, unsigned direction) {
  Shape shape = node.shape(operand);
  INVAR_TRY(Value one, part(node, node.in(operand), 0, direction, 1));
  shape.erase(shape.begin());
  return shaped(node, one, shape);
}

Status Cell::load(unsigned direction, size_t gates) {
  INVAR_TRY(Value weights, of_direction(node, 1, direction));
  INVAR_TRY(Value recurrent, of_direction(node, 2, direction));
  Value biases;
  if (node.has(3)) {
    INVAR_TRY(biases, of_direction(node, 3, direction));
  }
  const auto n = static_cast<int64_t>(gates);
  for (int64_t g = 0; g < n; ++g) {
    INVAR_TRY(Value gate, part(node, weights, 0, g * hidden, hidden));
    INVAR_TRY(gate, product(node, x, gate, /*transposed=*/true));
    INVAR_TRY(Value matrix, part(node, recurrent, 0, g * hidden, hidden));
    if (biases) {
      INVAR_TRY(Value of_x, part(node, biases, 0, g * hidden, hidden));
      INVAR_TRY(Value of_h, part(node, biases, 0, (n + g) * hidden, hidden));
      INVAR_TRY(gate, sum(gate, of_x));
      if (reset_after && g == 2) {
        reset_bias = of_h;
      } else {
        INVAR_TRY(gate, sum(gate, of_h));
      }
    }
    in.push_back(gate), of.push_back(matrix);
  }
  if (node.has(7)) {
    INVAR_TRY(Value all, of_direction(node, 7, direction));
    for (int64_t g = 0; g < 3; ++g) {
      INVAR_TRY(Value one, part(node, all, 0, g * hidden, hidden));
      peepholes.push_back(one);
    }
  }
  return {};
}

Result<Value> Cell::gated(Value h) {
  INVAR_TRY(Value z, given(0, h));
  INVAR_TRY(z, activate(0, z));
  INVAR_TRY(Value rest, node.make<SubOp>({node.constant(1.0f), z}));
  INVAR_TRY(Value kept, times(z, h));
  INVAR_TRY(Value r, given(1, h));
  INVAR_TRY(r, activate(0, r));
  Value from_h;
  if (reset_after) {
    INVAR_TRY(from_h, product(node, h, of[2], /*transposed=*/true));
    if (reset_bias) {
      INVAR_TRY(from_h, sum(from_h, reset_bias));
    }
    INVAR_TRY(from_h, times(r, from_h));
  } else {
    INVAR_TRY(Value reset, times(r, h));
    INVAR_TRY(from_h, product(node, reset, of[2], /*transposed=*/true));
  }
  INVAR_TRY(Value candidate, sum(from_x[2], from_h));
  INVAR_TRY(candidate, activate(1, candidate));
  INVAR_TRY(Value fresh, times(rest, candidate));
  return sum(fresh, kept);
}

Result<Value> Cell::stored(Value h, Value& c) {
  // Peepholes are of i, o, f, as the gates are.
  auto open = [&](size_t g, Value cell) -> Result<Value> {
    INVAR_TRY(Value gate, given(g, h));
    if (!peepholes.empty()) {
      INVAR_TRY(Value seen, times(peepholes[g], cell));
      INVAR_TRY(gate, sum(gate, seen));
    }
    return activate(0, gate);
  };
  Value o;
  if (peepholes.empty()) {  // they let it see the next cell
    INVAR_TRY(o, open(1, c));
  }
  INVAR_TRY(Value i, open(0, c));
  INVAR_TRY(Value f, open(2, c));
  INVAR_TRY(Value kept, times(f, c));
  INVAR_TRY(Value candidate, given(3, h));
  INVAR_TRY(candidate, activate(1, candidate));
  INVAR_TRY(Value fresh, times(i, candidate));
  INVAR_TRY(c, sum(kept, fresh));
  INVAR_TRY(Value shown, activate(2, c));
  if (!o) {
    INVAR_TRY(o, open(1, c));
  }
  return times(o, shown);
}

Result<Value> Cell::step(int64_t t, Value h, Value& c) {
  from_x.clear();
  for (Value all : in) {
    INVAR_TRY(Value one, row(all, t));
    from_x.push_back(one);
  }
  if (in.size() == 4) return stored(h, c);
  if (in.size() == 3) return gated(h);
  INVAR_TRY(Value next, given(0, h));
  return activate(0, next);
}

Result<Cell::State> Cell::advance(int64_t t, const State& from) {
  Value c = from.c;
  INVAR_TRY(Value next, step(t, from.h, c));
  Value shown = next;
  if (lengths) {  // beyond its length a sequence stands still and shows zeros
    Value at = now;
    if (!at) at = node.constant(bytes_of({&t, 1}, 8), DType::i64);
    INVAR_TRY(Value runs, node.make<LessOp>({at, lengths}));
    INVAR_TRY(shown, node.make<WhereOp>({runs, next, node.constant(0.0f)}));
    INVAR_TRY(next, node.make<WhereOp>({runs, next, from.h}));
    if (c) {
      INVAR_TRY(c, node.make<WhereOp>({runs, c, from.c}));
    }
  }
  return State{next, c, shown};
}

SmallVector<Value> Cell::fixed() const {
  SmallVector<Value> all(in.begin(), in.end());
  all.append(of.begin(), of.end());
  all.append(peepholes);
  for (Value v : {reset_bias, lengths})
    if (v) all.push_back(v);
  return all;
}

Cell Cell::with(Node& other, ValueRange fixed) const {
  size_t next = 0;
  Cell cell{other, hidden, batch, functions, reset_after, {}, {}, {}, {}, {}, {}, /*in_loop=*/true};
  for (size_t g = 0; g < in.size(); ++g) cell.in.push_back(fixed[next++]);
  for (size_t g = 0; g < of.size(); ++g) cell.of.push_back(fixed[next++]);
  for (size_t g = 0; g < peepholes.size(); ++g) cell.peepholes.push_back(fixed[next++]);
  if (reset_bias) cell.reset_bias = fixed[next++];
  if (lengths) cell.lengths = fixed[next++];
  return cell;
}

Result<Cell::State> Cell::looped(const Polynomial& steps, bool backwards, const State& from) const {
  const std::optional<Polynomial> last = invar::sum(steps, -1);
  if (!last) return not_covered("more steps than can be counted");
  SmallVector<Value> carried{from.h};
  if (from.c) carried.push_back(from.c);
  INVAR_TRY(SmallVector<Value> all,
            node.steps(steps, carried, fixed(),
                       [&](Node& inner, Value number, ValueRange states,
                           ValueRange given) -> Result<SmallVector<Value>> {
                         Cell cell = with(inner, given);
                         cell.now = number;
                         if (backwards) {
                           INVAR_TRY(cell.now, inner.make<SubOp>({inner.sizes(*last, {}), number}));
                         }
                         INVAR_TRY(State to, cell.advance(0, {states[0], from.c ? states[1] : Value(), {}}));
                         SmallVector<Value> next{to.h};
                         if (to.c) next.push_back(to.c);
                         next.push_back(to.shown);
                         return next;
                       }));
  Value shown = all.back();
  if (backwards) {
    const int64_t back = -1;
    INVAR_TRY(Value places,
              node.make<IotaOp>({node.sizes(*last, {}), node.constant(bytes_of({&back, 1}, 8), DType::i64)},
                                {}, tensor_of({Extent::of(steps)}, node.build().getI64Type())));
    INVAR_TRY(shown, node.make<GatherOp>({shown, places}));
  }
  return State{all[0], from.c ? all[1] : Value(), shown};
}

// The functions of all directions, as many for each.
Result<std::vector<std::string>> functions_of(Node& node, std::vector<std::string> standard,
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

// Initial states in the shape that they must have. Of one dimension that may be another each call is asked.
Result<Value> state_of(Node& node, unsigned operand, const Shape& given, const Shape& wanted) {
  const std::string text =
      "operand " + std::to_string(operand) + " of shape " + text_of(given) + " instead of " + text_of(wanted);
  size_t differ = 0;
  bool wrong = given.size() != wanted.size();
  for (size_t d = 0; d < given.size() && !wrong; ++d) {
    differ += given[d] != wanted[d];
    wrong |= given[d] != wanted[d] && given[d].constant() && wanted[d].constant();
  }
  if (wrong) return bad_input(text);
  if (differ > 1 || !may_be_equal(given, wanted)) return not_covered(text);
  return shaped(node, node.in(operand), wanted);
}

template <size_t kGates>
Status recurrent(Node& node) {
  constexpr bool kStores = kGates == 4, kGated = kGates == 3;
  INVAR_CHECK_OK(
      kStores ? node.expect(3, 8, {"activations", "direction", "hidden_size", "input_forget", "layout"}, 3)
      : kGated
          ? node.expect(3, 6, {"activations", "direction", "hidden_size", "layout", "linear_before_reset"}, 2)
          : node.expect(3, 6, {"activations", "direction", "hidden_size", "layout"}, 2));
  INVAR_CHECK_OK(node.only("input_forget", int64_t{0}));
  std::string direction = "forward";
  if (auto given = dyn_cast_or_null<StringAttr>(node.attribute("direction"))) direction = given.str();
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return bad_input("attribute \"direction\" is none of forward, reverse and bidirectional");
  const size_t directions = direction == "bidirectional" ? 2 : 1;
  INVAR_TRY(const int64_t batch_first, node.i("layout", 0));
  INVAR_TRY(const int64_t reset_after, node.i("linear_before_reset", 0));
  std::vector<std::string> standard =
      kGates == 1 ? std::vector<std::string>{"Tanh"} : std::vector<std::string>{"Sigmoid", "Tanh"};
  if (kStores) standard.push_back("Tanh");
  INVAR_TRY(const std::vector<std::string> functions, functions_of(node, standard, directions));

  const Shape weights = node.shape(1), matrix = node.shape(2);
  if (node.shape(0).size() != 3 || weights.size() != 3 || matrix.size() != 3)
    return bad_input("operand, weights or recurrent weights are not of rank 3");
  if (!matrix[2].constant()) return not_covered("a hidden size that is not known");
  const int64_t hidden = matrix[2].value;
  const Extent rows = Extent::of(hidden * static_cast<int64_t>(kGates)),
               all = Extent::of(static_cast<int64_t>(directions));
  if (weights[0] != all || matrix[0] != all || weights[1] != rows || matrix[1] != rows)
    return misfit({weights, matrix}, "weights of " + text_of(weights) + " and " + text_of(matrix) +
                                         " are not those of " + std::to_string(directions) + " directions");
  const std::pair<unsigned, int64_t> lists[] = {{3, 2 * rows.value}, {7, 3 * hidden}};
  for (auto [operand, length] : lists)
    if (node.has(operand) && node.shape(operand) != Shape{all, Extent::of(length)})
      return misfit({node.shape(operand)}, "operand " + std::to_string(operand) + " is not " +
                                               std::to_string(length) + " numbers for each direction");
  Value x = node.in(0);
  if (batch_first) {
    INVAR_TRY(x, permuted(node, x, {1, 0, 2}));
  }
  const Shape shape = shape_of(x.getType());
  const std::optional<Polynomial> steps = polynomial_of(shape[0]);
  if (!steps) return not_covered("a sequence of " + text_of(shape[0]) + " steps");
  const bool unrolled = shape[0].constant() && shape[0].value > 0 && shape[0].value <= kMostSteps;
  Value lengths;
  if (node.has(4)) {
    INVAR_TRY(lengths, shaped(node, node.in(4), {shape[1], Extent::of(1)}));
    INVAR_TRY(lengths, node.make<CastOp>(lengths, {},
                                         tensor_of(shape_of(lengths.getType()), node.build().getI64Type())));
  }
  SmallVector<Value> outputs, last_h, last_c;
  for (unsigned d = 0; d < directions; ++d) {
    Cell cell{node, hidden, shape[1], {}, reset_after != 0, x, lengths, {}, {}, {}, {}, !unrolled};
    cell.functions.assign(functions.begin() + static_cast<ptrdiff_t>(d * standard.size()),
                          functions.begin() + static_cast<ptrdiff_t>((d + 1) * standard.size()));
    INVAR_CHECK_OK(cell.load(d, kGates));
    auto start = [&](unsigned operand) -> Result<Value> {
      if (!node.has(operand)) return spread(node, node.constant(0.0f), cell.state());
      const Shape given = node.shape(operand), wanted = batch_first
                                                            ? Shape{shape[1], all, Extent::of(hidden)}
                                                            : Shape{all, shape[1], Extent::of(hidden)};
      INVAR_TRY(Value states, state_of(node, operand, given, wanted));
      INVAR_TRY(Value one, part(node, states, batch_first ? 1 : 0, d, 1));
      return shaped(node, one, cell.state());
    };
    INVAR_TRY(Value h, start(5));
    Value c;
    if (kStores) {
      INVAR_TRY(c, start(6));
    }
    const bool backwards = direction == "reverse" || d == 1;
    Cell::State state{h, c, {}};
    const Shape shown = {shape[0], Extent::of(1), shape[1], Extent::of(hidden)};
    if (unrolled) {
      SmallVector<Value> rows(static_cast<size_t>(shape[0].value));
      for (int64_t i = 0; i < shape[0].value; ++i) {
        const int64_t t = backwards ? shape[0].value - 1 - i : i;
        INVAR_TRY(state, cell.advance(t, state));
        INVAR_TRY(rows[static_cast<size_t>(t)],
                  shaped(node, state.shown, {Extent::of(1), Extent::of(1), shape[1], Extent::of(hidden)}));
      }
      INVAR_TRY(state.shown, joined(node, rows, 0));
    } else {
      INVAR_TRY(state, cell.looped(*steps, backwards, state));
      INVAR_TRY(state.shown, shaped(node, state.shown, shown));
    }
    h = state.h, c = state.c;
    outputs.push_back(state.shown);
    const Shape one = {Extent::of(1), shape[1], Extent::of(hidden)};
    INVAR_TRY(h, shaped(node, h, one));
    last_h.push_back(h);
    if (kStores) {
      INVAR_TRY(c, shaped(node, c, one));
      last_c.push_back(c);
    }
  }
  INVAR_TRY(Value y, joined(node, outputs, 1));
  if (batch_first) {
    INVAR_TRY(y, permuted(node, y, {2, 0, 1, 3}));
  }
  for (unsigned result : {1u, 2u}) {
    SmallVector<Value>& last = result == 1 ? last_h : last_c;
    if (last.empty()) continue;
    INVAR_TRY(Value state, joined(node, last, 0));
    if (batch_first) {
      INVAR_TRY(state, permuted(node, state, {1, 0, 2}));
    }
    node.replace(result, state);
  }
  return node.replace(y);
}

}  // namespace

void decompose_recurrent(Rooms& rooms) {
  rooms.on("RNN", 7, recurrent<1>);
  rooms.on("GRU", 7, recurrent<3>);
  rooms.on("LSTM", 7, recurrent<4>);
}

}  // namespace invar::compiler
