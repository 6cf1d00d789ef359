// Rows of a batch -> results, through the server's code, many at a time. A row that was running
// when a worker ended is computed alone, so that it is known which one ends it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "serve/batch.h"
#include "serve/batch/results.h"
#include "serve/batch/row.h"
#include "serve/service.h"

namespace invar::serve {

class BatchRunner {
 public:
  BatchRunner(const Models&, BatchOptions, BatchResults, json::Value identity);
  ~BatchRunner() { service_.reset(); }  // its threads use the rest
  Status open();

  void add(BatchRow row) { waiting_.push_back({{std::move(row)}}); }
  // Computes it again, to be compared.
  void add_again(BatchRow row, BatchResult there) {
    waiting_.push_back({{std::move(row)}, {}, 0, std::move(there)});
  }
  size_t waiting() const { return waiting_.size(); }
  // Until nothing is to do. `progress` gets the number of rows that are done.
  Status work_off(const std::function<void(size_t)>& progress);
  // The same of the lines of this open file as they come. `give` as in Batch::run_stream().
  Status work_off_lines(int file, std::function<Status(const json::Value&)> give);
  void stop();  // from any thread

  const BatchResults& results() const { return results_; }
  const json::Value& identity() const { return identity_; }
  BatchCounts counts = {};

 private:
  using Clock = std::chrono::steady_clock;
  // A piece of work, and the rows that want it.
  struct Work {
    std::vector<BatchRow> rows;
    BatchMark mark = {};
    int failures = 0;                       // in this process
    std::optional<BatchResult> there = {};  // it is computed again, to be compared with this
  };
  struct Arrived {
    size_t work;
    int status;
    std::string body;
  };

  void admit();
  bool start_one();
  void start_suspect();
  // Whether the row needs no computation of its own.
  bool is_settled(Work&);
  void start(Work, bool alone);
  bool wait();
  void take(Arrived);
  void take_result(Work, const BatchResult&);
  void deliver(const Work&, const BatchResult&, bool found);
  void end(Error, bool at_once);
  void read_lines(int file);

  const Models models_;
  const BatchOptions options_;
  const BatchResults results_;
  const json::Value identity_;
  std::unique_ptr<Service> service_;
  std::function<Status(const json::Value&)> give_;

  size_t window_ = 1, number_ = 0, done_ = 0;
  std::deque<Work> waiting_;   // yet to be looked at
  std::deque<Work> suspects_;  // each is computed alone
  std::map<size_t, Work> running_;
  std::unordered_map<std::string, size_t> running_ids_;
  bool alone_ = false;          // what runs does so alone
  std::optional<Error> ended_;  // why no row begins any more
  std::optional<Clock::time_point> deadline_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Arrived> arrived_;
  std::deque<std::string> lines_;  // of the stream
  size_t lines_read_ = 0;
  std::atomic<bool> streams_ = false;
  bool stopped_ = false;
  std::optional<Error> broken_;  // of the engine
  std::optional<Error> unkept_;  // of the disk
};

}  // namespace invar::serve
