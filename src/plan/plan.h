// The plan: a compiled program as data. Knows neither MLIR nor CUDA. Text format and digest: spec/plan.md.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/attributes.h"
#include "base/dtype.h"
#include "base/hash/sha256.h"
#include "base/operation_set.h"
#include "base/status.h"

namespace invar::plan {

// The arithmetic that this build writes into plans and receipts (spec/README.md). Old ones stay runnable for
// ever.
inline constexpr std::string_view kNumerics = "invar-1";

// A dimension: a constant, or the index of a symbol: bound at run time ("batch", "seq", "past"), or computed from such ("batch*seq").
struct Dim {
  int64_t value = 0;
  int symbol = -1;
  bool operator==(const Dim&) const = default;
};

struct Value {  // an activation
  DType dtype;
  std::vector<Dim> shape;
  int slot = -1;  // tuning: which planned buffer holds it; values alive at the same time never share one
};

struct Weight {  // a constant by reference
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  Digest sha256;  // of its bytes as stored, little-endian
  // Where the bytes are; outside the digest, so resharding a checkpoint keeps the program.
  std::string file;  // relative to the plan's folder, never absolute, never with ".."
  uint64_t offset = 0, length = 0;
};

struct Operand {
  enum Kind { value, weight } kind;
  int index;
  bool operator==(const Operand&) const = default;
};

// The ONNX node that a node was made of: its operator, and its name or that of its first output. For messages alone, outside the
// digest (plan.17). Empty: unknown.
struct Origin {
  std::string op, name;
  bool operator==(const Origin&) const = default;
};
// As messages begin, e.g. `Gather (node "pick"), `; nothing where it is unknown. Names come from a model: shortened, without control bytes.
std::string text_of(const Origin&);

struct Node {
  std::string op;  // a name of spec/opset.toml
  int version;
  std::vector<Operand> in;
  std::vector<int> out;  // values
  int state = -1;        // index into states for operations with memory
  Attrs attrs;           // numerics only (law 4)
  std::vector<int>
      bodies{};  // of control flow (plan.16): a "loop" has one, an "if" two; no other node has any
  Origin origin{};
};

// Nodes that a node of control flow runs, as often as it says. They read what the body takes and what they make.
struct Body {
  std::vector<int> inputs, outputs;  // values
  std::vector<Node> nodes;
};

// A symbol whose size a program computes: element `element` of a value, i64 of rank 0 or 1 (plan.15).
struct Binding {
  int symbol, value;
  int64_t element;
};

struct State {  // memory between steps, e.g. one layer's keys and values
  std::string name;
};

struct Port {  // a named input or output of the program
  std::string name;
  int value;
};

struct Plan {
  std::string numerics{kNumerics};
  OperationSet operation_set = OperationSet::reproducible;
  std::vector<std::string> choices;  // numerics choices that were applied (plan.14), ascending
  std::vector<std::string> symbols;  // names, and texts of polynomials in them (plan.12)
  std::vector<Value> values;
  std::vector<Weight> weights;
  std::vector<State> states;
  std::vector<Port> inputs, outputs;
  std::vector<Node> nodes;        // in execution order
  std::vector<Body> bodies;       // each of one node
  std::vector<Binding> bindings;  // in the order in which nodes make the values, and of their elements
  int slots = 0;
};

// Slots for the values that nodes make, few and of like sizes, so that values alive at the same time never share; -1: fed by the
// caller. Nodes whose `step` is the same run together (steps ascend; none given: each on its own), and what they touch is alive
// throughout. A value lies where `host` of it does, made in the same step, where that is not -1; it is a part of `within` of it, made
// before, where that is not. `typical`: sizes of the symbols where the caller has them.
struct Slots {
  std::vector<int> of;
  int count = 0;
};
Slots slots_of(const Plan&, std::span<const int> step = {}, std::span<const int> host = {},
               std::span<const int> within = {}, std::span<const double> typical = {});
void assign_slots(Plan&, std::span<const double> typical = {});
// Sizes of the symbols if every one that is bound were kTypical: good enough to tell big values from small ones.
std::vector<double> typical_sizes(const Plan&);

// Nodes cut where sizes become known and at control flow: each part is a program whose symbols are all known when it starts, and
// which has no more nodes behind what it waits for than must be there. Nodes without such places are their only part.
struct Part {
  Plan plan;  // its symbols are those that occur in it, and what they are computed from
  std::vector<int> values, symbols;  // of the whole, for each of the part
  std::vector<int> inputs, outputs;  // values of the whole, for each port of the part
  std::vector<int> numbers;          // of its nodes, in the order of the text
  std::vector<int> calls;  // nodes of control flow that run before it: where they stand among the nodes
  std::vector<int> bindings,
      known;  // what is bound before it; symbols of the whole that are known from it on
};
struct Parts {
  std::vector<Part> parts;
  std::vector<int> own;      // symbols that are bound here, ascending
  std::vector<int> numbers;  // of all nodes, in the order of the text
};
// Of the program, then of each body.
std::vector<Parts> parts_of(const Plan&);

// Bytes of a program's tensors for sizes of its symbols; memory of states, packed copies and kernels' scratch come on top.
struct Footprint {
  int64_t weights = 0;
  int64_t live = 0;     // inputs, and what is alive together, where that is most: no planning needs less
  int64_t buffers = 0;  // inputs, and the slots of all parts as they are assigned
  int node = 0;         // where most is alive
  std::string
      formula;  // what that is, as a sum in the symbols (plan.12); for other sizes another node may have more
};
// Sizes by the names of symbols; those not given: kTypical. bad_input: a name that the plan does not have, a size below 0, or more
// bytes than can be counted.
inline constexpr int64_t kTypical = 64;
Result<Footprint> footprint(const Plan&, const std::map<std::string, int64_t>& sizes);

// Canonical text. print(parse(text)) == text for every text that print made.
std::string print(const Plan&);
// Checks everything a reader may rely on: indices, single assignment before use, known dtypes, file names,
// sizes. An error names the line. A numerics version this build cannot run is refused by name (not_covered).
Result<Plan> parse(std::string_view text, std::string_view file_name_for_errors);
Result<Plan> load(const std::string& path);
// SHA-256 over the program part: everything but where the weights lie and the buffer slots.
Digest digest(const Plan&);
// Merkle root over (name, dtype, shape, SHA-256) of every weight, in name order.
Digest weights_digest(const Plan&);

}  // namespace invar::plan
