// The plan: a compiled program as data. Knows neither MLIR nor CUDA. Text format and digest:
// spec/plan.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/attributes.h"
#include "base/dtype.h"
#include "base/hash/sha256.h"
#include "base/operation_set.h"
#include "base/status.h"
#include "shape/dim_expr.h"

namespace invar::plan {

// The version of the arithmetic that this build writes into plans and receipts (spec/README.md).
// Plans of older versions stay runnable for ever.
inline constexpr std::string_view kNumerics = "invar-1";

// A dimension as a plan refers to it: a constant, or the index of a symbol. A symbol is either a
// name that is bound at run time ("batch", "seq", "past") or an expression of names ("batch*seq").
struct DimRef {
  int64_t value = 0;
  int symbol = -1;
  bool operator==(const DimRef&) const = default;
};

struct Value {  // an activation
  DType dtype;
  std::vector<DimRef> shape;
  // Tuning: the planned buffer that holds it; values alive at the same time never share one.
  int slot = -1;
};

struct Weight {  // a constant by reference
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  Digest sha256;  // of its bytes as stored, little-endian
  // The place of the bytes; outside the digest, so resharding a checkpoint keeps the program.
  std::string file;  // relative to the plan's folder, never absolute, never with ".."
  uint64_t offset = 0, length = 0;
};

struct Operand {
  enum Kind { value, weight } kind;
  int index;
  bool operator==(const Operand&) const = default;
};

// The ONNX node that a plan node comes from: its operator, and its name or the name of its first
// output. Only for messages, outside the digest (plan.17). Empty: unknown.
struct Origin {
  std::string op, name;
  bool operator==(const Origin&) const = default;
};
// The prefix of a message, e.g. `Gather (node "pick"), `; empty if the origin is unknown. Names
// come from a model, so they are shortened and stripped of control bytes.
std::string text_of(const Origin&);

struct Node {
  std::string op;  // a name of spec/opset.toml
  int version;
  std::vector<Operand> in;
  std::vector<int> out;  // values
  int state = -1;        // index into states for operations with memory
  Attributes attrs;      // numerics only (law 4)
  // Control flow (plan.16): a "loop" has one body, an "if" two, every other node none.
  std::vector<int> bodies{};
  Origin origin{};
};

// The nodes that a control-flow node executes. They read only the body's inputs and each other's
// results.
struct Body {
  std::vector<int> inputs, outputs;  // values
  std::vector<Node> nodes;
};

// A data-dependent size: the symbol takes the value of one element of an i64 tensor of rank 0 or 1
// (plan.15).
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

// The program that a plan was compiled from, before any optimization (spec/program.md). A claim: no
// digest covers it (plan.18).
struct Source {
  std::string recipe;           // the page of the specification that says what is computed
  Digest program;               // of the program text
  std::vector<Weight> tensors;  // that the recipe reads, as stored and without place; ascending by name
};

struct Plan {
  std::string numerics{kNumerics};
  OperationSet operation_set = OperationSet::reproducible;
  std::vector<std::string> choices;  // numerics choices that were applied (plan.14), ascending
  std::vector<DimExpr> symbols;      // names, and expressions of names (plan.12)
  std::vector<Value> values;
  std::vector<Weight> weights;
  std::vector<State> states;
  std::vector<Port> inputs, outputs;
  std::vector<Node> nodes;        // in execution order
  std::vector<Body> bodies;       // each belongs to one node
  std::vector<Binding> bindings;  // ordered by the node that makes the value, then by element
  int slots = 0;
  std::optional<Source> source;
};

// Memory planning: which buffer slot holds each value that a node makes. Values alive at the same
// time never share a slot.
struct SlotAssignment {
  std::vector<int> slot_of;  // per value; -1: an input, whose memory the caller owns
  int count = 0;
};
// What the memory planner must respect beyond lifetimes. Empty spans mean "none".
// - group: nodes of the same group run together, so all they touch is alive throughout. Groups
//   ascend; by default each node is a group of its own.
// - shares_slot_with: per value, a value of the same group whose slot it takes; -1: none.
// - view_of: per value, an earlier value that it is a view into; -1: none.
// - typical: sizes of the symbols, where the caller knows better than typical_sizes().
SlotAssignment plan_memory(const Plan&, std::span<const int> group = {},
                           std::span<const int> shares_slot_with = {}, std::span<const int> view_of = {},
                           std::span<const double> typical = {});
void assign_slots(Plan&, std::span<const double> typical = {});
// Sizes of the symbols if every bound name were kTypical: enough to tell large values from small
// ones.
std::vector<double> typical_sizes(const Plan&);

// A part of a block of nodes. A block is split where data-dependent sizes become known (plan.15)
// and at control flow (plan.16), so every size of a segment is known when it starts. A segment
// waits for no more than its nodes need. A block without such points is one segment.
struct Segment {
  Plan plan;  // its symbols: those that occur in it, and the names they are computed from
  std::vector<int> values, symbols;  // per value or symbol of `plan`: its number in the whole plan
  std::vector<int> inputs, outputs;  // per port of `plan`: its value in the whole plan
  std::vector<int> node_numbers;     // per node of `plan`: its number in the text of the whole plan
  // Steps before the segment runs: nodes of control flow (positions in their block), bindings.
  std::vector<int> control_flow_nodes, bindings;
  std::vector<int> known_symbols;  // of the whole plan, known from this segment on
};
struct BlockPartition {
  std::vector<Segment> segments;
  std::vector<int> own_symbols;   // symbols that get their sizes in this block, ascending
  std::vector<int> node_numbers;  // per node of the block: its number in the text
};
// [0] partitions the program, [1 + b] body b.
std::vector<BlockPartition> partition(const Plan&);

// Bytes of a program's tensors for given sizes of its symbols. State memory, packed weights and
// kernels' scratch memory are not included.
struct Footprint {
  int64_t weights = 0;
  int64_t live = 0;     // the peak of inputs and live values: no memory plan needs less
  int64_t buffers = 0;  // inputs, and the slots of all segments as they are assigned
  int node = 0;         // the node at which the peak occurs
  std::string formula;  // the peak as a sum in the symbols (plan.12); other sizes may peak elsewhere
};
// Sizes by the names of symbols; kTypical for the others. bad_input: a name that the plan does not
// have, a size below 0, or more bytes than can be counted.
inline constexpr int64_t kTypical = 64;
Result<Footprint> footprint(const Plan&, const std::map<std::string, int64_t>& sizes);

// Canonical text. print(parse(text)) == text for every text that print made.
std::string print(const Plan&);
// Checks everything a reader may rely on: indices, single assignment before use, known dtypes, file
// names, sizes. An error names the line. A numerics version that this build cannot run is refused
// by name (not_covered).
Result<Plan> parse(std::string_view text, std::string_view file_name_for_errors);
Result<Plan> load(const std::string& path);
// SHA-256 over the program: everything but the weights' locations and the buffer slots.
Digest digest(const Plan&);
// Merkle root over (name, dtype, shape, SHA-256) of every weight, in name order (plan.8).
Digest weights_digest(std::span<const Weight>);

}  // namespace invar::plan
