// Measures items: ours and the peer's in turns, medians; the machine's limits in the same run.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/profile.h"
#include "bench/peak/peak.h"
#include "bench/peer.h"
#include "bench/suite.h"
#include "generate/observer.h"

namespace invar::bench {

struct Settings {
  std::vector<std::string> suites{"all"};
  std::string op, shape;          // one operation; a line of bench.txt instead of the room's
  std::vector<int> threads;       // empty: 1 and one per core
  std::vector<std::string> isas;  // empty: the best of this CPU
  std::string device = "cpu";     // or "cuda", "cuda:1"
  double seconds = 0.4;           // per item, thread count and instruction set
  std::string peer, python;
  std::optional<Profile> profile = {};  // of the suite model
};

struct Limit {  // one of the machine's, as measured
  std::string isa;
  int threads;               // 0: a GPU
  double flops, read, copy;  // per second; bytes out of cache
};

double median(std::vector<double> v);  // of at least one

struct Row {
  std::string suite, op, shape, text, isa;
  int threads = 0;                       // 0: a GPU
  double seconds = 0, best_seconds = 0;  // of a call: median and least
  double flops = 0, bytes = 0;           // of a call; bytes: operands, memory and results once
  double limit_seconds = 0;              // what the machine's peaks allow
  bool by_flops = false;                 // which of them
  double elements = 0;                   // of results
  std::string peer;                      // its spelling; "" without one
  double peer_seconds = 0, peer_best_seconds = 0;
  double fraction() const { return limit_seconds / seconds; }
  double ratio() const { return peer_seconds / seconds; }  // > 1: we are faster
  double best_ratio() const { return peer_best_seconds / best_seconds; }
  // Medians and best times disagree: something else had the cores.
  bool unsteady() const { return seconds > 1.5 * best_seconds || peer_seconds > 1.5 * peer_best_seconds; }
};

struct Report {
  std::string device = "cpu";  // or "cuda:0 NVIDIA H200"
  std::string peer;            // version
  std::vector<Limit> limits;
  std::vector<Row> rows;
  bool has(const Row&) const;  // a row of the same call, instruction set and threads
  // An error where the rows that are there are another device's, or compare with another peer.
  Status begin(const std::string& device, const std::string& peer);
};

// Called before each measurement with how many are done and what comes next.
using Progress = std::function<void(size_t done, size_t total, const std::string& next)>;
// Called after each measurement with all so far.
using Keep = std::function<Status(const Report&)>;
// Adds to the report what it does not have.
Status measure(const Settings&, Report&, const Progress&, const Keep&);
Status measure_on_device(const Settings&, const std::vector<Item>&, Report&, const Progress&, const Keep&);

// A prompt and an answer of a model, per token, as rows of the report; the limit of decoding is
// reading the weights once per token. `model_name`: "" is the shipped model.
Status measure_model(const Settings&, const std::string& model_name, Report&, generate::Observer&,
                     const Keep&);

}  // namespace invar::bench
