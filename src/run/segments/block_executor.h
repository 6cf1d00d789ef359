// The executor of a block of nodes: the program, or a body of control flow (plan.16). It runs the
// block's segments in order and, before each, binds data-dependent sizes (plan.15) and runs the
// control flow that the segment waits for.
#pragma once

#include <map>
#include <memory>

#include "run/segments/segment.h"

namespace invar::run {

// A tensor in memory that somebody else owns.
struct TensorRef {
  ops::View view;
  bool on_device;
};
// Copies a tensor to the host or to the device; with a device it has arrived after Device::wait().
Status copy(const ExecutionContext&, void* to, bool to_device, const TensorRef& from);

struct ControlFlowState;

class BlockExecutor {
 public:
  // Opens the plan (body -1) or one of its bodies. `partition`: of plan::partition(plan); the
  // executors of all blocks move their segments out of it. The plan and the context must outlive
  // the executor.
  static Result<std::unique_ptr<BlockExecutor>> open(const plan::Plan&,
                                                     std::vector<plan::BlockPartition>& partition, int body,
                                                     const ExecutionContext&);
  ~BlockExecutor();

  // Sets an input, whose memory must not change until all results were read.
  void set_input(int v, const TensorRef& tensor) { inputs_[v] = tensor; }
  // Runs the program. `sizes`: per symbol, the sizes that inputs determine, -1 for those bound on
  // the way. `fetched`: the values that the host reads.
  Status run(std::vector<int64_t>& sizes, const std::vector<int>& fetched = {});
  // Runs a body: binds its own symbols to the dimensions of its inputs, then as run().
  Status run_body(std::vector<int64_t>& sizes);
  // True if the shapes of a body's inputs decide all its sizes. Then rerun() is the same as
  // run_body() for inputs of the shapes that the last call had.
  bool shapes_decide_sizes() const { return shapes_decide_sizes_; }
  Status rerun() { return run_segment(segments_[0]); }

  // An input or a produced value, where it is in memory; with `fetched` a produced value on the
  // host, which the last run must have fetched.
  TensorRef value(int v, bool fetched = false) const;
  bool produces(int v) const { return produced_.contains(v); }
  // Whether a value of a body is computed from constants only.
  bool is_constant(int v) const;

  Status weights_unchanged();
  size_t bytes() const;
  // Appends names that are not there yet: of all segments, then of all bodies.
  void add_names(std::vector<std::string> (*names_of)(const Executable&),
                 std::vector<std::string>& all) const;

 private:
  BlockExecutor(const plan::Plan&, const ExecutionContext&, int body);
  // The symbols that a segment's bindings define: elements of computed values.
  std::string reader_of(int symbol) const;
  Status bind_symbols(const plan::Segment&, std::vector<int64_t>& sizes) const;
  // The symbols that are known from a segment on; expressions are evaluated.
  Status evaluate_symbols(const plan::Segment&, std::vector<int64_t>& sizes) const;
  // Binds unknown symbols of this block to the dimensions of values, and checks the known ones.
  // `what` names the values in errors.
  Status bind_dims(const std::vector<int>& values, const std::string& what,
                   std::vector<int64_t>& sizes) const;
  Status run_segment(SegmentExecutor&);  // whose sizes are set
  template <class T>
  Result<T> read_element(int v, int64_t element = 0) const;
  const plan::Node& node(int at) const {
    return body_ < 0 ? plan_.nodes[static_cast<size_t>(at)]
                     : plan_.bodies[static_cast<size_t>(body_)].nodes[static_cast<size_t>(at)];
  }
  // control_flow.cc; `at`: the node's position in the block.
  Status open_control_flow(int at, std::vector<plan::BlockPartition>& partition);
  Status run_control_flow(int at, std::vector<int64_t>& sizes);
  Status run_loop(ControlFlowState&, std::vector<int64_t>& sizes);
  Status run_branch(ControlFlowState&, std::vector<int64_t>& sizes);

  const plan::Plan& plan_;
  const ExecutionContext& context_;
  int body_;
  std::vector<SegmentExecutor> segments_;
  std::vector<int> own_symbols_, node_numbers_;  // see plan::BlockPartition
  struct SegmentValue {
    size_t segment;
    int value;  // its number in that segment
  };
  std::map<int, SegmentValue> produced_;  // segments' outputs
  std::map<int, TensorRef> inputs_;       // and results of control flow
  // The source of a segment's input: inputs_, or an earlier segment if `input` is null.
  struct Source {
    const TensorRef* input;
    SegmentValue produced;
  };
  std::vector<std::vector<Source>> sources_;  // per segment, per input
  TensorRef value(const Source&, bool fetched = false) const;
  bool shapes_decide_sizes_ = false;
  std::map<int, std::unique_ptr<ControlFlowState>> control_flow_;  // by the node's position
};

}  // namespace invar::run
