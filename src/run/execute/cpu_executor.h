// Runs a bound step on the host: wave by wave, and each wave phase by phase over the thread pool.
#pragma once

#include <map>

#include "run/execute/executor.h"
#include "run/prepare/chosen_parts.h"

namespace invar::run {

class CpuExecutor final : public Executor {
 public:
  CpuExecutor(std::shared_ptr<const Executable>, Pool&);
  Status run(bool tail, const std::function<void()>& overlapped) override;
  Status feed(int v, std::span<const std::byte> bytes) override;
  Status feed_device(int v, const void* bytes) override;
  Status feed_in_place(int v, void* bytes) override { return feed_device(v, bytes); }
  void select_outputs(std::vector<int>) override {}
  void select_inputs(std::vector<int>) override {}
  ops::View port(int v) const override { return values_[v]; }
  size_t bytes() const override;
  void observe(std::function<void(const NodeResults&)> f) override { observe_ = std::move(f); }

 private:
  // Nodes [begin, end) that run concurrently: one kernel, one range of work units.
  struct Wave {
    size_t begin, end;
    int workers;
    bool has_indices;  // some operand is an index, which may be out of bounds
    bool has_parts;    // some node makes a part that may be unread
  };
  Status reserve_header(uint64_t bytes) override;
  const Allocation& header_of_calls() const override { return step_header_; }
  Status release_memory() override { return {}; }
  int64_t past_bound(int64_t, int64_t past) const override { return past; }
  Status bind_call(size_t n) override;
  Status schedule(bool reshape) override;
  Status reserve_ports(const std::vector<uint64_t>&, std::span<const StepShape>) override { return {}; }

  // Nodes [begin, end) that make a part of `tokens` rows, each of its own row: a step computes
  // those that have chosen it, one behind the other.
  struct RowsOfPart {
    size_t begin, end;
    int64_t tokens;
    std::vector<int> sources = {};  // the rows that they read and others made
    int result = -1;                // what others read
  };
  // What the nodes need is known when the shapes of a step are.
  Status find_rows_of_parts();
  bool add_node_of_part(size_t n, RowsOfPart&);
  bool is_made_in(const RowsOfPart& p, int v) const { return made_by_[v] >= p.begin && made_by_[v] < p.end; }
  bool bind_rows(const RowsOfPart&, int64_t count);
  void begin_part(int number);
  void end_part(int number);

  ops::Epilogue make_epilogue(size_t head) const;
  void append_steps(size_t head);
  static void run_fused(const void* context, const ops::Region&);
  size_t concurrent_end(size_t first) const;
  void find_unread(const Wave&);
  int64_t units_of(size_t n, int phase) const { return unread_[n] ? 0 : nodes_[n].units[phase]; }
  void run_wave(const Wave&);
  void run_in_turn(const Wave&);
  Status run_join(const Wave&);

  // The fused group of a node, for the epilogue callback.
  struct FusedGroup {
    const CpuExecutor* executor;
    size_t head, first;  // first: that the callback runs
  };
  Pool& pool_;
  std::function<void(const NodeResults&)> observe_;
  std::vector<FusedGroup> groups_;       // per node
  const std::vector<ChosenPart> parts_;  // per node
  std::vector<char> unread_;             // per node: nobody reads the part that it makes in this step
  std::vector<RowsOfPart> rows_of_parts_;
  std::vector<int> rows_of_part_;              // per node: its number in rows_of_parts_; -1: it has none
  std::vector<uint64_t> row_operands_;         // per node with a number: a bit for each operand
  std::vector<size_t> made_by_, last_reader_;  // per value: the nodes; made_by_: their number where none is
  std::vector<int64_t> chosen_rows_;           // of the part that runs
  Allocation gathered_;                        // sources, one behind the other
  std::map<int, std::vector<ops::View*>> readers_;  // per input: the operands of nodes_ that read it
  std::vector<Wave> waves_;                         // of the last bind()
  std::vector<Allocation> scratch_;                 // per worker
};

}  // namespace invar::run
