// Runs an executable: owns the memory of its values and states, and the shapes and calls of the
// current step. CpuExecutor and CudaExecutor run the step.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "device/memory.h"
#include "kernels/fusion/row_steps.h"
#include "run/execute/joins/rank_joins.h"
#include "run/execute/snapshot_positions.h"
#include "run/execute/state_pages.h"
#include "run/prepare/executable.h"
#include "run/session.h"

namespace invar::run {

class Executor {
 public:
  // On a device, or on the host with the threads of the pool, which outlives the executor.
  static std::unique_ptr<Executor> make(std::shared_ptr<const Executable>, Pool&,
                                        const std::shared_ptr<Device>& device);
  virtual ~Executor() = default;
  const Executable& executable() const { return *executable_; }

  // Before reserve(): takes the memory of activations from executors of the same device, which run
  // in turn. What one leaves there is gone when the next one runs.
  void share_arena(std::shared_ptr<Allocation> arena) { arena_ = std::move(arena), shares_arena_ = true; }
  // Before reserve(): the executable joins with those of other ranks within its steps.
  void join_with(std::shared_ptr<RankJoins> joins, int rank) { joins_ = std::move(joins), rank_ = rank; }
  // On the host: the threads of the pool are those of other executors, too, by turns.
  void share_threads(std::shared_ptr<std::mutex> turn) { turn_ = std::move(turn); }
  // Weights that were loaded for executable().weight_uses(). May be called again with others.
  Status attach(const Weights&);
  // Forgets all sequences where the capacity is more than before. Allocates the memory of
  // `max_sequences` sequences and of the largest steps. These are one sequence with up to `rows`
  // rows in the nodes that feed a state and up to `tail_rows` in the others, several sequences with
  // so many rows together, and every sequence with one row. On a GPU `host_ports` also allocates
  // the host's side of all inputs and outputs; without it, each is allocated at its first use.
  Status reserve(int64_t rows, int64_t tail_rows, int64_t capacity, int64_t max_sequences,
                 bool host_ports = true);
  // Forgets a sequence but for its first `keep` positions: its pages behind them are free for other
  // sequences. States of fixed size go back to the last copy up to there (SnapshotPositions::last).
  Status forget(int64_t sequence, int64_t keep);
  // Behind a run: states of fixed size are copied where SnapshotPositions says so.
  Status keep_snapshot();
  // The positions of the sources in later steps.
  Status set_source(int64_t positions);
  // Before reserve(): nobody makes room in the pages where they are too few (StatePages::Place).
  void keep_pages_whole(bool whole) { whole_pages_ = whole; }
  // Null: there are none.
  StatePages* pages() { return pages_.empty() ? nullptr : &pages_; }
  // Before reserve(): copies are kept as Options::goes_back asks.
  void go_back_often(bool every) { snapshots_every_ = every; }
  // Prepares a step of `rows` rows of each of these sequences, of which there is at least one.
  Status bind(int64_t rows, std::span<const ops::Sequence> sequences);
  // Runs a step; without `tail` only the nodes that feed a state. An out-of-bounds index is an
  // error. `overlapped` is called once while a GPU computes, and may read outputs of the run
  // before; on the host it is not called.
  virtual Status run(bool tail, const std::function<void()>& overlapped = {}) = 0;

  // Makes ready what a GPU otherwise makes at the first step of this shape: above all, it loads the
  // code of the step's kernels. Nothing is computed.
  void preload(int64_t rows, std::span<const ops::Sequence>, bool tail);

  // Run for each node with results in memory once it has run; see Options::observe. On the host, of
  // an executable that was prepared to be observed.
  virtual void observe(std::function<void(const NodeResults&)>) {}

  // Sets an input of the plan for a step. On the host run() reads these bytes in place if they are
  // aligned to their elements; otherwise they are copied.
  virtual Status feed(int v, std::span<const std::byte> bytes) = 0;
  // Sets an input from device memory of the same size: copied on the device, in the order of its
  // queue. On a GPU only.
  virtual Status feed_device(int v, const void* bytes) = 0;
  // The same, read where it lies until the step is over.
  virtual Status feed_in_place(int v, void* bytes) = 0;
  // The outputs that run() downloads from a GPU, and the inputs that are written through port();
  // the others are fed, or handed on where they lie. Until these are called: all.
  virtual void select_outputs(std::vector<int> outputs) = 0;
  virtual void select_inputs(std::vector<int> inputs) = 0;
  // Steps of more rows of a sequence leave their outputs on the device, for read_output() alone.
  // Until it is called: none do.
  virtual void download_whole(int64_t /*rows*/) {}
  // An output of the last run from byte `begin` on, in one or more pieces of whole rows. A piece is
  // valid until `take` returns, the last one until the next run.
  virtual Status read_output(int v, size_t begin,
                             const std::function<void(std::span<const std::byte>)>& take);
  // The host's view of an input or output: written before run(), read after it.
  virtual ops::View port(int v) const = 0;
  // The view of an input or output where the nodes read or write it, valid until the next run.
  const ops::View& device_view(int v) const { return values_[v]; }
  virtual size_t bytes() const;

 protected:
  bool shares_arena() const { return shares_arena_; }
  // A node of the executable in the current step.
  struct BoundNode {
    std::vector<ops::View> in, out;
    size_t states_offset = 0, slot_bytes = 0;  // its memory in states_, or in a page; 0: stateless
    bool paged = false;                        // its state is in pages
    size_t stateful = 0;                       // its number among the paged nodes
    ops::Call call;
    ops::Epilogue epilogue{};
    std::vector<ops::RowStep> steps;  // of the epilogue
    std::vector<int64_t> units;       // per phase
    int64_t bytes_touched = 0;
    size_t shared_bytes = 0;  // what its phases hand on to later ones
    bool is_view = false;     // its result is a view of an operand in this step: nothing runs
    Allocation transient;     // Executable::is_transient: the memory of its calls
  };
  // The header of the current step, which kernels read; the step's sequences follow it in the same
  // allocation. With a GPU it is in pinned memory and uploaded for each step.
  struct StepHeader {
    int64_t past;  // the largest of the sequences
    uint32_t fault;
    uint32_t join_base, stalled;  // ops::GpuJoin
    uint32_t unused;
  };
  static StepHeader& header_in(const Allocation& a) { return *reinterpret_cast<StepHeader*>(a.data()); }
  static ops::Sequence* sequences_in(const Allocation& a) {
    return reinterpret_cast<ops::Sequence*>(a.data() + sizeof(StepHeader));
  }

  Executor(std::shared_ptr<const Executable>, std::shared_ptr<Device>);
  // The host and a GPU do these differently:
  virtual Status reserve_header(uint64_t bytes) = 0;
  virtual const Allocation& header_of_calls() const = 0;  // the header that kernels read
  virtual Status release_memory() = 0;  // called before memory is replaced that a queue or graph may use
  virtual int64_t past_bound(int64_t rows, int64_t past) const = 0;      // Call::past of a step
  virtual Status reserve_mailbox(int64_t /*part_bytes*/) { return {}; }  // what other ranks write into
  virtual Status bind_call(size_t n) = 0;                                // the rest of a node's call
  virtual Status schedule(bool reshape) = 0;                             // after all calls are bound
  virtual void preload_bound(bool /*tail*/) {}
  // steps: the largest ones with a tail.
  virtual Status reserve_ports(const std::vector<uint64_t>& buffer_sizes,
                               std::span<const StepShape> steps) = 0;

  Status reserve_shared(size_t bytes);
  Status check_libraries() const;
  Error out_of_bounds_error(size_t node, const ops::OutOfBounds&) const;

  const std::shared_ptr<const Executable> executable_;
  const std::shared_ptr<Device> device_;                                // null: the host
  std::vector<BoundNode> nodes_;                                        // per node of the executable
  std::vector<ops::View> values_;                                       // per value, in the current step
  std::vector<uint64_t> buffer_offset_;                                 // per buffer, into arena_
  std::shared_ptr<Allocation> arena_ = std::make_shared<Allocation>();  // all buffers
  Allocation step_header_;
  std::shared_ptr<RankJoins> joins_;  // null: the executable joins with no other
  int rank_ = 0;
  std::shared_ptr<std::mutex> turn_;  // of the pool's threads; null: nobody else has them
  Allocation transient_header_;       // of nodes with the memory of a call: sequences that begin at 0
  int64_t capacity_ = 0, states_capacity_ = 0, source_ = 1;
  bool has_constants_ = false;  // constants_ holds those of the attached weights
  StepShape step_shape_{};      // of the last bind(); 0 rows: none holds

 private:
  Status reserve_states(int64_t max_sequences);
  Status copy_states(std::byte* to, const std::byte* from) const;
  Status bind_views(const StepShape&);
  Status bind_node(size_t n, const StepShape&);
  Status reserve_transient(int64_t max_sequences);
  int64_t largest_part(int64_t rows, int64_t tail_rows, const StepShape& batch) const;
  Status bind_transient(BoundNode&, const ops::KernelRef&, int64_t sequences);

  Allocation constants_;                  // the buffers of PreparedValue::is_constant
  std::vector<bool> of_constants_;        // per buffer: it is one of them
  Allocation states_;                     // of the nodes of fixed size
  StatePages pages_;                      // of the other nodes
  SnapshotPositions snapshot_positions_;  // of the only sequence
  bool snapshots_every_ = false;
  bool whole_pages_ = true;
  size_t fixed_bytes_ = 0;  // of its states of fixed size; 0: several sequences, or none
  std::array<Allocation, SnapshotPositions::kKept> snapshots_;
  Allocation shared_;    // of the node that runs, between its phases
  bool sizing_ = false;  // reserve() and preload() bind steps that nobody runs
  bool uses_libraries_ = false, shares_arena_ = false;
  const std::byte* bound_arena_ = nullptr;  // that values_ point into
};

}  // namespace invar::run
