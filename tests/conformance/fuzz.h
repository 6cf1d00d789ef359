// Random programs of one operation: a case mutated from the room's own, run in a random mode by
// every row, its bytes compared with the reference's. Everything is a function of the seed.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "case_mutator.h"
#include "conformance/rooms.h"

namespace invar::conformance {

struct Subject {
  std::string op;
  const ops::CpuKernel* reference;
  std::vector<ops::KernelRef> rows;  // under test
  std::vector<Case> cases;           // what is mutated
};

struct Failure {
  ops::KernelRef row;
  std::string what, manner, text;  // of the case as found ...
  std::string shrunk, difference;  // ... and made small
};

struct Tally {
  int64_t cases = 0, runs = 0, elements = 0;
  int64_t asked = 0, refused = 0;  // shapes that no memory holds
};

// What each thread runs, for a handler of fatal signals: a row that crashes cannot report itself.
constexpr int kMostJobs = 256;
using InFlight = char[4096];
InFlight& in_flight();  // of the calling thread, one of at most kMostJobs
std::string all_in_flight();
void write_in_flight(int file);  // the same, in a handler of signals
// Whether a kernel has ended the use of the GPU by this process: nothing that follows tells.
bool gpu_is_lost();

// The case of a seed; it may exceed `limit` elements if nothing made it smaller.
Case case_of(const Subject&, uint64_t seed, int64_t limit);
// pool: two threads or more, each with ArithmeticEnv. limit: elements of a case.
std::optional<Failure> fuzz(const Subject&, uint64_t seed, int64_t limit, Pool& pool, Tally&);

// One case in one mode: "" or the difference from the reference.
std::string compare(const Subject&, ops::KernelRef row, const Case&, const RunMode&, Tally&);

// Parses "3 parts, reversed, ..." as RunMode::text writes it; nothing if it does not parse.
std::optional<RunMode> run_mode_from(const std::string& text, Pool&);

}  // namespace invar::conformance
