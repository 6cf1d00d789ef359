// The folder of a batch, which any number of workers share: a file per piece of work, by its id.
//
//   manifest.json       what the results follow from
//   results/AB/ID.json  a result: the response, its receipts by hash, who computed it, its SHA-256
//   receipts/HASH.json  the receipts
//   marks/ID.json       work that a worker has begun and not ended
//   unequal/            results that should be equal and are not
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/text/json.h"

namespace invar::serve {

struct BatchResult {
  int status = 0;                     // of HTTP; 0: there is no response
  json::Value body;                   // of the response
  std::string kind;                   // "": an answer; "refused", "failed", "crashed"
  std::string message;                // of an error
  std::vector<std::string> receipts;  // hashes
  json::Value worker;                 // who computed it; it is not part of what must be equal

  bool is_answer() const { return kind.empty(); }
  // The same for everybody: an answer, or the refusal of a request.
  bool is_final() const { return is_answer() || kind == "refused"; }
  bool same_as(const BatchResult& o) const;
};

// Work that was begun and is not ended.
struct BatchMark {
  int64_t alone = 0;  // how often it was begun with no other work beside it
  bool runs = false;  // by a process of this host that is still there
};

class BatchResults {
 public:
  // Makes what is missing of the folder. `worker`: the name of this one.
  static Result<BatchResults> open(const std::string& folder, json::Value worker);

  std::string receipts() const { return folder_ + "/receipts"; }
  const json::Value& worker() const { return worker_; }

  // Writes the manifest, or compares with what is there. bad_input: they differ. `input` is the
  // SHA-256 of the lines; "": it is not known.
  Status agree(const json::Value& identity, const std::string& input) const;
  // The identity of the manifest.
  Result<json::Value> identity() const;

  // The result whose digest holds, with its receipts; none: there is none, or it is damaged. A
  // damaged receipt gets another name.
  std::optional<BatchResult> find(const std::string& id) const;
  // Keeps a result, by a new file and a link. One that is there and equal stays. Code::failed: it
  // is there and differs: both are kept, and the message names both workers.
  Status keep(const std::string& id, const BatchResult&) const;
  // An error goes, so that the row is computed again.
  void forget(const std::string& id) const;
  // Code::failed: `again` differs from the result that is there.
  Status compare(const std::string& id, const BatchResult& there, const BatchResult& again) const;

  std::optional<BatchMark> mark_of(const std::string& id) const;
  Status mark(const std::string& id, const BatchMark&) const;
  void unmark(const std::string& id) const;

 private:
  explicit BatchResults(std::string folder, json::Value worker)
      : folder_(std::move(folder)), worker_(std::move(worker)) {}
  std::string path_of(const std::string& id) const;
  std::string mark_path(const std::string& id) const { return folder_ + "/marks/" + id + ".json"; }
  bool has_receipt(const std::string& hash) const;

  std::string folder_;
  json::Value worker_;
};

}  // namespace invar::serve
