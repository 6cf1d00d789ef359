// The plan's nodes with their kernels and buffers. Knows no operation by name (law 1).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernel.h"
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
  // Chooses the kernel of every node: of an instruction set, or those of a GPU; those of libraries where the plan's operation set
  // allows them, they are here and no instruction set is named. The plan must outlive the program.
  // `numbers`: of its nodes, where errors are to say others than those of this plan.
  static Result<Program> make(const plan::Plan& plan, const std::string& isa,
                              std::shared_ptr<Device> device = {}, std::span<const int> numbers = {});

  // Whether every room takes what its nodes ask for, of `slots` sequences in one step. To be called before weights are packed
  // or memory is reserved.
  Status check(int64_t slots);

  std::vector<Weights::Use> weight_uses() const;  // in the order in which attach() takes their views
  void attach(const Weights&);

  // Memory of `slots` sequences; for steps of one of them, of up to `rows` rows in the nodes that some state depends on and up
  // to `tail_rows` in the rest, and for one row of each. On a GPU `ports` asks for the host's side of all inputs and outputs;
  // without, each has one when it is first fed from there or fetched.
  Status reserve(int64_t rows, int64_t tail_rows, int64_t capacity, int64_t slots, bool ports = true);
  // Makes ready for a step of `rows` rows of each of the sequences, of which there is at least one.
  Status bind(int64_t rows, std::span<const ops::Sequence> sequences);
  // Runs the nodes; without `tail` only those that some state depends on. An index that names no place is an error. While a GPU
  // does them, `beside` is called once; outputs of the run before may be read there.
  Status run(Pool&, bool tail, const std::function<void()>& beside = {});

  // The bytes of an input of the plan in a step, which run() reads where they lie if they are aligned to their elements and on the
  // host; otherwise they are copied.
  Status feed(int v, std::span<const std::byte> bytes);
  // As many as the input has, that lie on the GPU: copied there, in order with what its queue does.
  Status feed_there(int v, const void* bytes);
  // Which outputs run() brings from a GPU to the host; unless it is called, all.
  void fetch_only(std::vector<int> outputs) { fetched_ = std::move(outputs); }
  // An input or output of the plan as the host sees it: written before run(), read after it.
  ops::View port(int v) const;
  // An output where the nodes wrote it, until the next run.
  const ops::View& there(int v) const { return values_[v]; }
  // False: a step depends on all rows before it, and nothing remembers them between steps.
  bool has_memory() const { return has_memory_; }
  // Where a value has the sequences of a step: nowhere, on its leading axis alone, or otherwise.
  enum class Batch { absent, leading, elsewhere };
  Batch batch_of(int v) const;
  // The most sequences that an operation with memory has, as far as these are constants of the plan; at least 1.
  int64_t constant_sequences() const;
  // No such operation has more positions, as far as dimensions are constants of the plan; at least 1.
  int64_t constant_positions() const;
  std::vector<std::string> kernels() const;
  std::vector<std::string> libraries() const;  // "oneDNN 2.6.3", of each that some kernel is of
  size_t bytes() const;
  size_t fused() const;          // nodes that run in the epilogue of another
  size_t channels_last() const;  // values
  size_t parts() const;          // nodes whose results are parts of their operands, where they lie
  void set_workers(int n) { workers_ = n; }

 private:
  struct Node {
    const plan::Node* node;
    const ops::Kernel *kernel, *reference;
    const ops::Library* library;  // that the kernel is of; null: Invar's own
    bool core;                    // some state depends on it
    const Attrs* attrs;           // of the node, or the equal ones of an earlier node, which a cache may have
    std::vector<ops::View> in, out;
    ops::Call call;
    std::vector<int64_t> units;           // of its phases in this step
    int64_t work = 0;                     // bytes it touches in this step
    size_t shared = 0;                    // bytes that its phases hand on in this step
    size_t slots_at = 0, slot_bytes = 0;  // its memory in states_; 0 bytes: none
    size_t followers = 0;                 // nodes behind it that run in its epilogue
    ops::Epilogue epilogue{};
    bool lies = false;   // its result is a part of its operand: nothing is run
    bool joins = false;  // it may run beside the nodes before it, back to the last that does not join
  };
  enum class Symbol { batch, seq, past };
  // What the symbols stand for.
  struct Extent {
    int64_t batch, rows, past;
  };

  const ops::LibraryRow* library_row(const plan::Node&);
  Status check(const ops::Kernel& reference, Node&, size_t number, const Extent&) const;
  Status check_alone(size_t number);
  static constexpr uint64_t kTooLarge = uint64_t{1} << 62;
  uint64_t shape(int v, const Extent&, ops::View& view) const;  // bytes; kTooLarge on overflow
  Status reserve_states(int64_t slots);
  Status bind(Node&, const Extent&);
  void mark_core();
  Error names_no_place(const Node&, const ops::Stray&) const;
  std::string name_of_node(size_t n) const;  // "Add (node "sum"), operation 7 of the plan, add"
  int fuse();                                // program_fused.cc; as many buffers as that takes
  void lay_out();                            // program_layout.cc
  std::vector<int> place_parts();            // per value: that of which it is a part, or -1
  uint64_t bytes_in(const plan::Slots&) const;
  struct Reads {
    std::vector<size_t> maker, last;  // per value: the node that makes it, and the last that reads it
  };
  bool follows(size_t head, size_t node, const Reads&) const;
  bool follows_lightly(size_t head, size_t node, const Reads&) const;
  static ops::Epilogue epilogue_of(const Node& head);
  static void follow(const void* head, const ops::Region&);
  size_t behind(size_t head) const { return head + 1 + nodes_[head].followers; }
  void mark_joins();
  size_t joined_end(size_t first) const;  // past the nodes after it that run with it or may run beside it
  void mark_turns();
  std::vector<const ops::Call*> calls(size_t begin, size_t end) const;
  Status reserve_shared(size_t bytes);
  struct Turn;
  void run(Pool&, const Turn&);
  Status check_libraries() const;
  // program_device.cc
  int64_t bound_of(int64_t rows, int64_t past) const;
  Status reserve_ports(const std::vector<uint64_t>& size);
  Status run_on_device(bool tail, const std::function<void()>& beside);
  Status queue(bool tail);
  bool fetches(int v, bool tail) const;
  Status fetch(bool tail);
  std::byte* result_on_host(int v) const;
  Status find_fault(bool tail);

  // Nodes that run at once, on the host.
  struct Turn {
    size_t begin, end;
    int workers;
    bool strays;  // indices among their operands may name no place
  };
  const plan::Plan* plan_ = nullptr;
  std::shared_ptr<Device> device_;                                 // null: the host
  std::map<const ops::Library*, std::shared_ptr<void>> attached_;  // to its queue; null: cannot be
  std::vector<Symbol> symbols_;
  std::vector<Node> nodes_;
  std::map<int, std::vector<ops::View*>> readers_;  // of inputs: operands of nodes_
  std::vector<Turn> turns_;                         // of the last bind()
  bool libraries_ = false;                          // some kernel is of one
  std::vector<int> numbers_;                        // of nodes_, in errors
  std::vector<bool> core_value_;
  std::vector<int> buffer_;       // per value: its slot, or one of its own
  std::vector<int64_t> pitch_;    // per value: as View::pitch
  std::vector<uint64_t> shift_;   // per value, bytes into its buffer
  std::vector<uint64_t> offset_;  // per buffer, into arena_
  std::vector<ops::View> values_;
  Block states_;                // of all nodes
  std::vector<Block> scratch_;  // per worker
  Block shared_;                // of the node that runs
  Block arena_;
  int64_t capacity_ = 0;
  Extent bound_{};               // of the last bind(); no rows: none holds
  bool shaped_by_past_ = false;  // the shape of some value
  int workers_ = 1;
  bool has_memory_ = true;

  // What a step stands at: this, and behind it its sequences. For a GPU it is in pinned memory, and copied there.
  struct Now {
    int64_t past;  // the most of the sequences
    uint32_t fault, unused;
  };
  ops::Sequence* sequences_in(const Block& now) const {
    return reinterpret_cast<ops::Sequence*>(now.data() + sizeof(Now));
  }
  Block now_;

  // On a GPU: the ports of the plan in pinned memory, outputs in two halves in turn, and steps as graphs, by their sequences,
  // their rows, the bound of what they find filled, tail, and the inputs that do not come from the host.
  std::map<int, Block> inputs_, outputs_;
  std::set<int> there_;
  std::optional<std::vector<int>> fetched_;
  bool second_half_ = false;
  Block now_on_device_;
  std::map<std::tuple<int64_t, int64_t, int64_t, bool, std::set<int>>, std::unique_ptr<Device::Graph>>
      graphs_;
};

}  // namespace invar::run
