// A file of requests in OpenAI's batch form -> answers and receipts in a folder, by the code of the
// server, without HTTP. Any number of workers share the folder; the merged answers are the same for
// each number of workers and each size of their batches.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/text/json.h"
#include "generate/observer.h"
#include "serve/models/models.h"

namespace invar::serve {

struct BatchOptions {
  std::string input;                         // JSON lines
  std::string folder;                        // of results, src/serve/batch/results.h
  std::string output;                        // the merged answers; "": output.jsonl in the folder
  int64_t context = 4096;                    // positions of prompt and answer, at most the model's
  std::string date = {};                     // of chats that have none (chat.1); "": none
  uint64_t shard = 0, shards = 1;            // this worker computes these rows
  double recheck = 0;                        // percent of the results of others that it computes again
  std::optional<int64_t> max_failures = {};  // more rows without an answer end the run
  bool retry_failed = false;                 // rows that have an error are computed again
  std::chrono::seconds drain{30};            // that running rows have after the end
};

struct BatchCounts {
  size_t rows = 0;                                           // of the input, all shards
  size_t computed = 0;                                       // by this worker, now
  size_t found = 0;                                          // that had a result, of this worker's rows
  size_t answers = 0, refused = 0, failed = 0, crashed = 0;  // of this worker's rows, or of all when merged
  size_t rechecked = 0;
  size_t missing = 0;          // rows that have no result yet, all shards
  std::string output, sha256;  // of the merged answers; "": rows are missing
  size_t errors() const { return refused + failed + crashed; }
};

class Batch {
 public:
  // The model, which is one and may have adapters behind it, outlives it; an engine was opened for
  // no request.
  static Result<std::unique_ptr<Batch>> make(const Models&, BatchOptions);
  ~Batch();

  // Computes what this shard has no result of, then rechecks, then merges where nothing is missing.
  // Errors: failed: results differ; bad_input: too many failures, a full disk, ended by stop().
  Result<BatchCounts> run(generate::Observer&);
  // The same of lines of this open file as they come, until its end. What becomes of each goes to
  // `give`: the merged form, with receipts, worker, its line from 1, and whether it was there.
  // Nothing is merged.
  Result<BatchCounts> run_stream(int file, std::function<Status(const json::Value&)> give);
  // From any thread: no row begins from now on.
  void stop();

  struct Impl;

 private:
  explicit Batch(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

// Merges what is there. bad_input: rows have no result yet.
Result<BatchCounts> merge_batch(const BatchOptions&);

}  // namespace invar::serve
