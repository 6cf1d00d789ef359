// Runs a bound step on a GPU: uploads inputs, queues the nodes one after another, downloads
// outputs. Small steps recur, so they are recorded and replayed as CUDA graphs.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "kernels/fusion/join_kernels.h"
#include "run/execute/executor.h"

namespace invar::run {

class CudaExecutor final : public Executor {
 public:
  CudaExecutor(std::shared_ptr<const Executable>, std::shared_ptr<Device>);
  Status run(bool tail, const std::function<void()>& overlapped) override;
  Status feed(int v, std::span<const std::byte> bytes) override;
  Status feed_device(int v, const void* bytes) override;
  Status feed_in_place(int v, void* bytes) override;
  void select_outputs(std::vector<int> outputs) override { selected_outputs_ = std::move(outputs); }
  void select_inputs(std::vector<int> inputs) override { selected_inputs_ = std::move(inputs); }
  void download_whole(int64_t rows) override { whole_rows_ = rows; }
  Status read_output(int v, size_t begin,
                     const std::function<void(std::span<const std::byte>)>& take) override;
  ops::View port(int v) const override;
  size_t bytes() const override;

 private:
  Status reserve_header(uint64_t bytes) override;
  const Allocation& header_of_calls() const override { return device_step_header_; }
  Status release_memory() override;
  int64_t past_bound(int64_t rows, int64_t past) const override;
  Status bind_call(size_t n) override;
  Status schedule(bool reshape) override;
  void preload_bound(bool tail) override;
  Status reserve_ports(const std::vector<uint64_t>& buffer_sizes, std::span<const StepShape> steps) override;

  size_t concurrent_end(size_t first) const;
  std::vector<const ops::Call*> calls(size_t begin, size_t end) const;
  std::vector<const float*> addends(size_t begin, size_t end) const;
  void enqueue(size_t begin, size_t end, uint32_t& joins) const;
  Status queue(bool tail);
  void enqueue_chain(size_t last) const;
  void queue_constants() const;
  Status launch(bool tail);
  Status replay_together(const Device::Graph&);
  Status reserve_mailbox(int64_t part_bytes) override;
  ops::GpuJoin join_of(size_t node, uint32_t number) const;
  void enqueue_join(size_t begin, size_t end, uint32_t number) const;
  bool left_on_device() const { return step_shape_.rows > whole_rows_; }
  bool is_downloaded(int v, bool tail) const;
  Status download_outputs(bool tail);
  std::byte* result_on_host(int v) const;
  Status reserve_pieces(size_t bytes);
  Status find_fault(bool tail);

  Allocation device_step_header_;
  // The plan's ports in pinned memory. Outputs have two halves that steps alternate between, so
  // that `overlapped` can read the last step's.
  std::map<int, Allocation> inputs_, outputs_;
  bool second_half_ = false;
  // Buffers of read_output() for pieces of what is left on the device: one is taken while the next
  // one is sent.
  int64_t whole_rows_ = INT64_MAX;
  Allocation pieces_[2];
  std::set<int> fed_on_device_;          // inputs of this step that do not come from the host
  std::map<int, const void*> in_place_;  // of these, the ones that are read where they lie
  std::optional<std::vector<int>> selected_inputs_, selected_outputs_;
  // Recorded steps, by batch, rows, past_bound(), tail, fed_on_device_ and in_place_; and the last
  // small ones: groups of sequences come to a stage by turns, in memory of their own. One that does
  // not come again soon, as while sequences join and leave, is not worth recording.
  using Step = std::tuple<int64_t, int64_t, int64_t, bool, std::set<int>, std::map<int, const void*>>;
  std::map<Step, std::unique_ptr<Device::Graph>> graphs_;
  std::deque<Step> last_small_;
  bool comes_again(const Step&);
  // Of ranks that join within a step: that of a step that does not recur, and the memory that the
  // others write into.
  std::unique_ptr<Device::Graph> single_graph_;
  Allocation mailbox_;
};

}  // namespace invar::run
