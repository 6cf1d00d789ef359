// Runs the passes of a decoder through its stages. Each lane, a device or a worker process, has a
// thread of its own, so that stages compute different passes at the same time. A single lane runs
// in the calling thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "run/partitions/stage.h"

namespace invar::run {

class Pipeline {
 public:
  // Called for each pass, in their order, with the wanted logits in one or more pieces of whole
  // rows: those behind `before` floats. A pass without a tail has one piece, which is empty. The
  // last piece of a call of run() is valid until its next call, the others until `take` returns.
  using Take = std::function<void(size_t pass, size_t before, std::span<const float> logits)>;

  // parts: per stage its part of the plan; a stage reads from those before it. arenas: what stages
  // share.
  static Result<std::unique_ptr<Pipeline>> make(std::vector<std::unique_ptr<Stage>> stages,
                                                const std::vector<plan::Stage>& parts,
                                                const DecoderPorts& ports,
                                                std::vector<std::shared_ptr<Allocation>> arenas = {});
  ~Pipeline();

  std::span<const std::unique_ptr<Stage>> stages() const { return stages_; }
  // Into how many passes a step is divided so that all lanes work: the ranks of a partition work on
  // the same one.
  size_t groups() const { return groups_; }
  // Whether stages compute while `take` runs.
  bool overlaps() const { return lanes_ > 1; }
  // All weights, the stages one after another.
  Status load();
  Status reserve(int64_t rows, int64_t tail_rows, int64_t capacity);
  // While nothing is in flight.
  Status run(std::span<const StagePass> passes, const std::function<void()>& overlapped, const Take& take);
  // Of several lanes: a pass with logits memory of its own begins as soon as a stage has the time,
  // and is in flight until it is taken. What it refers to lives until then.
  void start(const StagePass& pass);
  // Waits for the pass that was started first. After an error nothing is in flight.
  Status take();
  size_t in_flight() const { return jobs_.size(); }
  // Waits until the stages are through with what is in flight.
  void rest();
  // The same, and forgets it.
  void abandon();
  // Whoever has it alone knows that no stage prepares a pass meanwhile.
  std::shared_mutex& preparing() { return preparing_; }
  size_t bytes() const;

 private:
  // A value that a stage hands to others on one device, and memory for each pass in flight.
  struct Edge {
    size_t from;
    std::vector<size_t> to;
    int value;
    bool feeds;  // also in passes without a tail
    std::vector<Handover> memory;
  };
  // A pass in flight. Passes have numbers from the first call on.
  struct Job {
    StagePass pass;
    size_t left;  // stages that it has to go through
  };
  explicit Pipeline(std::vector<std::unique_ptr<Stage>> stages);
  Status connect(const std::vector<plan::Stage>& parts, const DecoderPorts& ports);
  void connect(size_t from, size_t to, int value, bool feeds);
  void start_lanes();
  void work(size_t lane);
  void wait_for_job(std::unique_lock<std::mutex>&, size_t lane, size_t& stage, size_t& pass);
  void wait_for_change(std::unique_lock<std::mutex>&);
  void notify();
  bool is_skipped(size_t stage, const StagePass& pass) const { return !pass.tail && !feeds_[stage]; }
  Status run_stage(size_t stage, const StagePass& pass, size_t slot, const std::function<void()>& overlapped,
                   Handover* logits);
  Status run_in_order(std::span<const StagePass> passes, const std::function<void()>& overlapped,
                      const Take& take);
  Status run_overlapped(std::span<const StagePass> passes, const std::function<void()>& overlapped,
                        const Take& take);
  Handover& result(size_t pass) { return results_[pass % results_.size()]; }
  bool next_job(size_t lane, size_t& stage, size_t& pass) const;
  void add(std::span<const StagePass> passes);
  // Under the lock:
  Status wait_for_first(std::unique_lock<std::mutex>&);
  void drop_first();
  Status end(std::unique_lock<std::mutex>&);
  bool is_busy() const { return std::ranges::find(busy_, true) != busy_.end(); }

  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<std::shared_ptr<Allocation>> arenas_;
  std::vector<Edge> edges_;
  std::vector<std::vector<size_t>> edges_to_, edges_from_;  // per stage
  std::vector<std::vector<size_t>> before_;                 // per stage: those that it reads from
  std::vector<bool> feeds_;                     // per stage: whether it runs in passes without a tail
  std::vector<size_t> lane_of_;                 // per stage
  std::vector<std::vector<size_t>> stages_of_;  // per lane, the last stage first
  size_t lanes_ = 1, groups_ = 1, slots_ = 1, last_ = 0;
  int logits_ = -1;
  bool on_gpus_ = false;  // all stages
  // Several lanes need the logits of each pass in flight, and those that the last call returned.
  std::vector<Handover> results_;

  std::shared_mutex preparing_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<uint64_t> changes_ = 0;
  bool ends_ = false;
  std::deque<Job> jobs_;  // in flight
  size_t first_ = 0;      // the number of the first of them
  // done_[s]: how many passes stage s is through with. A stage takes the passes in their order, and
  // a pass goes through a stage behind those that it reads from.
  std::vector<size_t> done_;
  std::vector<bool> busy_;  // per lane
  Status status_;           // of what is in flight
  std::vector<std::thread> threads_;
};

}  // namespace invar::run
