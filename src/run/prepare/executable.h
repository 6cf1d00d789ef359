// A plan prepared for a target: its nodes with kernels, its values with buffers and layouts, and
// what runs fused, aliased or concurrently. prepare() makes it, and then nothing changes it;
// executors (src/run/execute) own the memory and the state of a step. Knows no operation by name
// (law 1).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/registry.h"
#include "kernels/vendor/vendor_kernel.h"
#include "plan/plan.h"
#include "plan/stages.h"
#include "run/weights/weights.h"

namespace invar::ops {
struct ChainKernel;
}

namespace invar::run {

inline size_t bytes_of(const ops::View& v) {
  return static_cast<size_t>(v.elements()) * size_of(v.dtype);
}

// The sizes that the plan's symbols have in a step.
struct StepShape {
  int64_t batch, rows, past;
  int64_t source = 1;  // positions of the sources of a program with an encoder
};

// The shapes of a node's operands and results in a step, without data.
struct NodeShapes {
  std::vector<ops::View> in, out;
};

// A node of the plan and what the passes decide about it.
struct PreparedNode {
  const plan::Node* node;
  ops::KernelRef kernel;
  const ops::OpContract* contract;
  const ops::Library* library;  // the vendor's library of the kernel; null: Invar's own kernel
  // Those of the node, or equal ones of an earlier node of its operation, which a cache may have.
  const Attributes* attrs;
  bool feeds_state = false;   // some state depends on it
  size_t fused_count = 0;     // the number of following nodes that run in its epilogue
  bool in_registers = false;  // they are an addition and a relu that its kernel applies in registers
  size_t on_rows = 0;         // how many of them, from the first on, its kernel may run on rows
  // GPU: the nodes, ascending, that the kernels of the batch that begins here run first: the last
  // makes in[0] of every call of the batch, as rounded rows (GpuFusion). They are `in_prologue`,
  // and a step does not run them where they stand.
  std::vector<size_t> prologue = {};
  bool in_prologue = false;
  const ops::GpuKernel* prologue_kernel = nullptr;  // whose enqueue_rounded takes their calls
  const ops::RoundedJoin* prologue_join = nullptr;  // the same, where the last of them is a join
  size_t batch_end = 0;                             // with a prologue: behind the batch that begins here
  // GPU: the nodes, ascending, that run in one kernel with this one, at its place.
  std::vector<size_t> chain = {};
  bool in_chain = false;
  const ops::ChainKernel* chain_kernel = nullptr;
  bool is_view = false;      // its result is a view of its operand: nothing runs
  bool is_constant = false;  // so are its results: steps do not run it
  bool concurrent = false;   // may run with the nodes before it, back to the last that is not concurrent
  int join = -1;             // its number among the joins of ranks within the step
};

// A value of the plan, its memory and its layout.
struct PreparedValue {
  bool feeds_state = false;   // exists in steps without tail: an input, or made by a node that feeds a state
  int view_of = -1;           // the value that it is a view into
  uint64_t offset = 0;        // bytes into that value's buffer
  int may_view = -1;          // the value that it is a view into in steps of some shapes
  bool is_constant = false;   // depends on weights alone: computed once, in a buffer of its own
  int shares_slot_with = -1;  // the result of its fused group that takes its memory
  int buffer = -1;            // the plan's slot, or a buffer of its own
  int64_t pitch = 0;          // not 0: channels last, see View::pitch
  bool elsewhere = false;     // a part that another rank makes: it has no memory here
};

struct Executable {
  enum class Symbol { batch, seq, past, source, derived };  // derived: an expression of seq and past

  const plan::Plan* plan = nullptr;  // outlives the executable
  // The numbers that nodes and values have in the whole plan, for people; empty: those of this
  // plan.
  std::vector<int> node_numbers, value_numbers;
  std::vector<Symbol> symbols;        // per symbol of the plan
  std::vector<PreparedNode> nodes;    // per node of the plan
  std::vector<PreparedValue> values;  // per value of the plan
  std::vector<plan::Join> joins;      // where ranks join within the step, in the order of the nodes
  size_t buffers = 0;                 // their number
  bool shaped_by_past = false;        // the shape of some value depends on `past`
  // False: a step depends on all rows before it, and no state remembers them between steps.
  bool has_memory = true;
  std::vector<std::shared_ptr<void>> attached;  // vendors' libraries attached to the device's queue

  static constexpr uint64_t kTooLarge = uint64_t{1} << 62;
  // The shape of a value in a step, and its bytes; kTooLarge on overflow.
  uint64_t shape(int v, const StepShape&, ops::View& view) const;
  // The shapes of a node; false: some are too large for any memory.
  bool shapes(const PreparedNode&, const StepShape&, NodeShapes& shapes) const;
  // Checks that the room accepts the node in such a step.
  Status check(size_t node, const StepShape&) const;
  // The end of a fused group: the node behind `head` and those fused into it.
  size_t group_end(size_t head) const { return head + 1 + nodes[head].fused_count; }

  // The axis of a value that is the batch of sequences: none, the leading one alone, or another.
  enum class Batch { absent, leading, elsewhere };
  Batch batch_of(int v) const;
  // Whether a node that could have a state works without, on values that are whole in every step:
  // its memory is that of a call.
  bool is_transient(size_t n) const {
    return has_memory && nodes[n].contract->stateful && nodes[n].node->state < 0;
  }
  // The largest number of sequences, and of positions, of any stateful operation, as far as
  // dimensions are constants of the plan; at least 1.
  int64_t constant_sequences() const;
  int64_t constant_positions() const;

  // The uses of weights that are loaded and packed, in the order of Executor::attach().
  std::vector<Weights::Use> weight_uses() const;
  std::string name_of_node(size_t n) const;  // "Add (node "sum"), operation 7 of the plan, add"
  std::vector<std::string> kernels() const;
  std::vector<std::string> libraries() const;  // vendors' libraries in use, e.g. "oneDNN 2.6.3"
  size_t fused() const;                        // the number of nodes that run in another one's kernels
  size_t channels_last() const;                // the number of values in channels-last layout
  size_t views() const;                        // the number of nodes whose result is a view of their operand
};

}  // namespace invar::run
