// A plan prepared for execution: its nodes with kernels, buffers and a schedule. The passes that
// make one are in this folder, the executors in src/run/execute; README.md has their order. Knows
// no operation by name (law 1).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/registry.h"
#include "kernels/vendor/vendor_kernel.h"
#include "plan/plan.h"
#include "run/execute/memory.h"
#include "run/weights/weights.h"

namespace invar::run {

inline size_t bytes_of(const ops::View& v) {
  return static_cast<size_t>(v.elements()) * size_of(v.dtype);
}

class Program {
 public:
  // Selects a kernel for every node, of an instruction set ("": the best here) or of a GPU. Uses
  // vendor kernels if the plan's operation set allows them, they are installed and `isa` is "".
  // Then fuses, assigns layouts and schedules. The plan must outlive the program. `node_numbers`:
  // the numbers that errors give the nodes, if not their positions in this plan.
  static Result<Program> make(const plan::Plan& plan, const std::string& isa,
                              std::shared_ptr<Device> device = {}, std::span<const int> node_numbers = {});

  // Checks that every room accepts its nodes, in steps of up to `max_sequences` sequences. To be
  // called before weights are packed or memory is reserved.
  Status check(int64_t max_sequences);

  std::vector<Weights::Use> weight_uses() const;  // in the order in which attach() takes their views
  void attach(const Weights&);

  // Allocates the memory of `max_sequences` sequences and of the largest steps. These are one
  // sequence with up to `rows` rows in the nodes that feed a state and up to `tail_rows` in the
  // others, and every sequence with one row. On a GPU `host_ports` also allocates the host's side
  // of all inputs and outputs; without it, each is allocated at its first use.
  Status reserve(int64_t rows, int64_t tail_rows, int64_t capacity, int64_t max_sequences,
                 bool host_ports = true);
  // Prepares a step of `rows` rows of each of these sequences, of which there is at least one.
  Status bind(int64_t rows, std::span<const ops::Sequence> sequences);
  // Runs a step; without `tail` only the nodes that feed a state. An out-of-bounds index is an
  // error. `overlapped` is called once while a GPU computes, and may read outputs of the run
  // before; on the host it is not called.
  Status run(Pool&, bool tail, const std::function<void()>& overlapped = {});

  // Sets an input of the plan for a step. On the host run() reads these bytes in place if they are
  // aligned to their elements; otherwise they are copied.
  Status feed(int v, std::span<const std::byte> bytes);
  // Sets an input from device memory of the same size: copied on the device, in the order of its
  // queue.
  Status feed_device(int v, const void* bytes);
  // The outputs that run() downloads from a GPU. Until this is called: all.
  void select_outputs(std::vector<int> outputs) { selected_outputs_ = std::move(outputs); }
  // The host's view of an input or output: written before run(), read after it.
  ops::View port(int v) const;
  // The view of an input or output where the nodes read or write it, valid until the next run.
  const ops::View& device_view(int v) const { return values_[v].view; }
  // False: a step depends on all rows before it, and no state remembers them between steps.
  bool has_memory() const { return has_memory_; }
  // Which axis of a value is the batch of sequences: none, the leading one alone, or another.
  enum class Batch { absent, leading, elsewhere };
  Batch batch_of(int v) const;
  // The largest number of sequences, and of positions, of any stateful operation, as far as
  // dimensions are constants of the plan; at least 1.
  int64_t constant_sequences() const;
  int64_t constant_positions() const;
  std::vector<std::string> kernels() const;
  std::vector<std::string> libraries() const;  // vendors' libraries in use, e.g. "oneDNN 2.6.3"
  size_t bytes() const;
  size_t fused() const;          // the number of nodes that run in another one's epilogue
  size_t channels_last() const;  // the number of values in channels-last layout
  size_t views() const;          // the number of nodes whose result is a view of their operand
  void set_workers(int n) { workers_ = n; }

 private:
  // A node of the plan and what the passes and bind() decide about it.
  struct PreparedNode {
    const plan::Node* node;
    ops::KernelRef kernel;
    const ops::OpContract* contract;
    const ops::Library* library;  // the vendor's library of the kernel; null: Invar's own kernel
    bool feeds_state;             // some state depends on it
    // Of the node, or equal ones of an earlier node of its operation, which a cache may still have.
    const Attributes* attrs;
    std::vector<ops::View> in, out;
    size_t fused_count = 0;   // the number of following nodes that run in its epilogue
    bool is_view = false;     // its result is a view of its operand: nothing runs
    bool concurrent = false;  // may run with the nodes before it, back to the last that is not concurrent
    size_t states_offset = 0, slot_bytes = 0;  // its memory in states_; 0 bytes: stateless
    // Set by bind() for a step:
    ops::Call call;
    ops::Epilogue epilogue{};
    std::vector<int64_t> units;  // per phase
    int64_t bytes_touched = 0;
    size_t shared_bytes = 0;  // what its phases hand on to later ones
  };
  // A value of the plan, its memory and its layout.
  struct PreparedValue {
    ops::View view;            // in the current step
    int buffer = -1;           // the plan's slot, or a buffer of its own
    uint64_t offset = 0;       // bytes into that buffer; not 0 only for views
    int64_t pitch = 0;         // not 0: channels last, see View::pitch
    bool feeds_state = false;  // exists in steps without tail: an input, or made by a node that feeds a state
  };
  enum class Symbol { batch, seq, past };
  // The sizes that the plan's symbols have in a step.
  struct StepShape {
    int64_t batch, rows, past;
  };
  // Nodes [begin, end) that the host runs concurrently: one kernel, one range of work units.
  struct Wave {
    size_t begin, end;
    int workers;
    bool has_indices;  // some operand is an index, which may be out of bounds
  };
  // Per value: the node that defines it, and the last that uses it.
  struct DefUse {
    std::vector<size_t> def, last_use;
  };

  // prepare/program.cc
  Status bind_symbols();
  Status select_kernels(const std::string& isa);
  const ops::VendorRow* vendor_kernel_of(const plan::Node&);
  void find_readers();
  void mark_feeds_state();
  int assign_buffers();
  std::string name_of_node(size_t n) const;  // "Add (node "sum"), operation 7 of the plan, add"

  // prepare/validate.cc
  Status check(PreparedNode&, size_t number, const StepShape&) const;
  Status check_batch_independence(size_t number);

  // prepare/fuse_epilogues.cc
  int fuse_epilogues();  // returns the number of buffers
  std::vector<int> alias_views();
  uint64_t buffer_bytes(const plan::SlotAssignment&) const;
  bool can_fuse(size_t head, size_t node, const DefUse&) const;
  bool can_fuse_in_register(size_t head, size_t node, const DefUse&) const;
  static ops::Epilogue make_epilogue(const PreparedNode& head);
  static void run_fused(const void* head, const ops::Region&);
  // The end of a fused group: the node behind `head` and those fused into it.
  size_t group_end(size_t head) const { return head + 1 + nodes_[head].fused_count; }

  // prepare/assign_layouts.cc
  void assign_layouts();

  // prepare/schedule.cc
  void mark_concurrent();
  size_t concurrent_end(size_t first) const;
  void schedule_waves();

  // execute/step_memory.cc
  static constexpr uint64_t kTooLarge = uint64_t{1} << 62;
  // The shape of a value in a step, and its bytes; kTooLarge on overflow.
  uint64_t shape(int v, const StepShape&, ops::View& view) const;
  Status reserve_states(int64_t max_sequences);
  Status reserve_shared(size_t bytes);
  Status bind(PreparedNode&, const StepShape&);
  std::vector<const ops::Call*> calls(size_t begin, size_t end) const;

  // execute/cpu_executor.cc
  Status run_on_host(Pool&, bool tail);
  void run_wave(Pool&, const Wave&);
  Status check_libraries() const;
  Error out_of_bounds_error(const PreparedNode&, const ops::OutOfBounds&) const;

  // execute/cuda_executor.cc
  int64_t past_bound(int64_t rows, int64_t past) const;
  Status reserve_ports(const std::vector<uint64_t>& buffer_sizes);
  Status run_on_device(bool tail, const std::function<void()>& overlapped);
  Status queue(bool tail);
  bool is_downloaded(int v, bool tail) const;
  Status download_outputs(bool tail);
  std::byte* result_on_host(int v) const;
  Status find_fault(bool tail);

  const plan::Plan* plan_ = nullptr;
  std::shared_ptr<Device> device_;  // null: the host
  // Vendors' libraries attached to the device's queue; null: cannot be.
  std::map<const ops::Library*, std::shared_ptr<void>> attached_;
  std::vector<Symbol> symbols_;  // per symbol of the plan
  std::vector<PreparedNode> nodes_;
  std::vector<PreparedValue> values_;
  std::vector<uint64_t> buffer_offset_;             // per buffer, into arena_
  std::map<int, std::vector<ops::View*>> readers_;  // per input: the operands of nodes_ that read it
  std::vector<Wave> waves_;                         // of the last bind()
  bool uses_libraries_ = false;
  std::vector<int> node_numbers_;    // per node, for errors
  Allocation states_;                // of all nodes
  std::vector<Allocation> scratch_;  // per worker
  Allocation shared_;                // of the node that runs, between its phases
  Allocation arena_;                 // all buffers
  int64_t capacity_ = 0;
  StepShape step_shape_{};       // of the last bind(); 0 rows: none holds
  bool shaped_by_past_ = false;  // the shape of some value depends on `past`
  int workers_ = 1;
  bool has_memory_ = true;

  // What kernels read about the current step; the step's sequences follow it in the same
  // allocation. With a GPU it is in pinned memory and uploaded for each step.
  struct StepHeader {
    int64_t past;  // the largest of the sequences
    uint32_t fault, unused;
  };
  ops::Sequence* sequences_in(const Allocation& header) const {
    return reinterpret_cast<ops::Sequence*>(header.data() + sizeof(StepHeader));
  }
  Allocation step_header_, device_step_header_;

  // With a GPU: the plan's ports in pinned memory. Outputs have two halves that steps alternate
  // between, so that `overlapped` can read the last step's.
  std::map<int, Allocation> inputs_, outputs_;
  bool second_half_ = false;
  std::set<int> fed_on_device_;  // inputs of this step that do not come from the host
  std::optional<std::vector<int>> selected_outputs_;
  // Recorded steps, by batch, rows, past_bound(), tail and fed_on_device_.
  std::map<std::tuple<int64_t, int64_t, int64_t, bool, std::set<int>>, std::unique_ptr<Device::Graph>>
      graphs_;
};

}  // namespace invar::run
