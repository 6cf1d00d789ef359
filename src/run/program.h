// The plan's nodes with their kernels and buffers. Knows no operation by name (law 1).
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/pool.h"
#include "ops/kernel.h"
#include "plan/plan.h"
#include "run/memory.h"
#include "run/weights.h"

namespace invar::run {

class Program {
 public:
  // Chooses the kernel of every node: of an instruction set, or those of a GPU. The plan must outlive the program.
  static Result<Program> make(const plan::Plan& plan, const std::string& isa,
                              std::shared_ptr<Device> device = {});

  // Whether every room takes what its nodes ask for. To be called before weights are packed or memory is reserved.
  Status check();

  std::vector<Weights::Use> weight_uses() const;  // in the order in which attach() takes their views
  void attach(const Weights&);

  // Memory for steps of up to `rows` rows in the nodes that some state depends on, and up to `tail_rows` in
  // the rest.
  Status reserve(int64_t rows, int64_t tail_rows, int64_t capacity);
  // Makes ready for a step of `rows` rows after `past` ones.
  Status bind(int64_t rows, int64_t past);
  // Runs the nodes; without `tail` only those that some state depends on. An index that names no place is an error.
  Status run(Pool&, bool tail);

  // An input or output of the plan as the host sees it: written before run(), read after it.
  ops::View port(int v) const;
  // False: a step depends on all rows before it, and nothing remembers them between steps.
  bool has_memory() const { return has_memory_; }
  std::vector<std::string> kernels() const;
  size_t bytes() const;
  void set_workers(int n) { workers_ = n; }

 private:
  struct Node {
    const plan::Node* node;
    const ops::Kernel *kernel, *reference;
    bool core;  // some state depends on it
    std::vector<ops::View> in, out;
    ops::Call call;
    std::vector<int64_t> units;  // of its phases in this step
    int64_t work = 0;            // bytes it touches in this step
    size_t shared = 0;           // bytes that its phases hand on in this step
    bool joins = false;          // it may run beside the nodes before it, back to the last that does not join
  };
  enum class Symbol { batch, seq, past };

  Status check(const ops::Kernel& reference, Node&, size_t number) const;
  uint64_t shape(int v, int64_t rows, int64_t past, ops::View& view) const;  // bytes; kTooLarge on overflow
  Status bind(Node&, Block& state, int64_t rows, int64_t past);
  void mark_core();
  Error names_no_place(const Node&, const ops::Stray&) const;
  void mark_joins();
  bool independent(const Node& before, const Node& after) const;
  void run(Pool&, size_t begin, size_t end, int workers);
  // program_device.cc
  int64_t bound_of(int64_t rows, int64_t past) const;
  Status reserve_ports(const std::vector<uint64_t>& size);
  Status run_on_device(bool tail);
  Status queue(bool tail);
  Status find_fault(bool tail);

  const plan::Plan* plan_ = nullptr;
  std::shared_ptr<Device> device_;  // null: the host
  std::vector<Symbol> symbols_;
  std::vector<Node> nodes_;
  std::vector<bool> core_value_;
  std::vector<int> buffer_;       // per value: its slot, or one of its own
  std::vector<uint64_t> offset_;  // per buffer, into arena_
  std::vector<ops::View> values_;
  std::vector<Block> states_;   // per node; empty without memory
  std::vector<Block> scratch_;  // per worker
  Block shared_;                // of the node that runs
  Block arena_;
  int64_t capacity_ = 0;
  int64_t rows_ = 0;             // of the last bind(); 0: none holds
  bool shaped_by_past_ = false;  // the shape of some value
  int workers_ = 1;
  bool has_memory_ = true;

  // On a GPU: the ports of the plan in pinned memory, [past, fault] there and on the device, and steps as graphs, by their
  // rows, the bound of what they find filled, and tail.
  struct Now {
    int64_t past;
    uint32_t fault, unused;
  };
  std::map<int, Block> ports_;
  Block now_, now_on_device_;
  std::map<std::tuple<int64_t, int64_t, bool>, std::unique_ptr<Device::Graph>> graphs_;
  int64_t bound_ = 0;  // of the last bind()
};

}  // namespace invar::run
