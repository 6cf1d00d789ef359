// One forward pass -> commitments to every result of every node (spec/trace.md), and what a party
// answers from it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dispute/exchange.h"
#include "dispute/proof/range_proof.h"
#include "plan/plan.h"
#include "receipt/receipt.h"
#include "run/session.h"

namespace invar::dispute {

// A receipt with what this machine computes it by. Its plan is compiled from the checkpoint here.
struct Subject {
  receipt::Receipt receipt;
  plan::Plan plan;
  std::string folder;           // of the plan's weight files
  run::Options options;         // threads, instruction set, known digests, progress; on the CPU
  std::vector<int32_t> tokens;  // receipt.16: prompt and answer but its last token
  Computation of;
  // Per value of the plan: an encoder makes it of the receipt's source, as whoever needs it does
  // himself (trace.11). Empty: there is no encoder.
  std::vector<bool> encoded = {};
  bool is_encoded(int value) const { return !encoded.empty() && encoded[static_cast<size_t>(value)]; }
  run::Source source() const { return {.tokens = receipt.prompt_tokens}; }
};
// `mine`: the model and program fields of this machine, which need not be those of the receipt.
// not_covered: the plan has a value that is neither [batch, seq, constants...], where batch may be
// 1, nor [batch * seq, constants...], so it has no rows.
Result<Subject> subject_of(receipt::Receipt, const receipt::Receipt& mine, plan::Plan, std::string folder,
                           run::Options);

// The bytes of a row of a value of the plan: its elements without batch and seq.
int64_t row_elements(const plan::Value&);
int64_t row_bytes(const plan::Value&);
// The shape of so many rows of it, of one sequence.
std::vector<int64_t> shape_of_rows(const plan::Value&, int64_t rows);
// The trace's line of each result, its roots still open.
std::vector<TracedValue> results_of(const Subject&);
// The values that a row of `value` is computed from, results of other nodes, ascending, and the
// first row that is needed of them: the row itself, or 0 for an operation with memory.
struct Needed {
  std::vector<int> values;
  int64_t first;
};
Needed needed_for(const Subject&, int value, int64_t row);
// Null: an input, what an encoder makes, or no such value.
const plan::Node* maker_of(const Subject&, int value);

// Sees every result of a pass, and may change it: tests of dishonest parties do.
using Observer = std::function<void(const run::NodeResults&)>;

// The root of all rows of every result, or the digests of the rows of some, and the bytes of some
// rows. So a trace of a long sequence takes little more than its session.
class Recorder {
 public:
  struct Range {
    int value;
    int64_t first, last;
  };
  explicit Recorder(const plan::Plan& plan) : plan_(plan) {}
  void take_roots() { roots_.resize(plan_.values.size()); }
  void list(int value) { digests_[value]; }
  void keep(const Range& r) { kept_[r.value] = {r, {}}; }
  void add(const run::NodeResults&);
  Digest root(int value) const { return roots_[static_cast<size_t>(value)].root(); }
  const std::vector<Digest>& digests(int value) const { return digests_.at(value); }
  const std::vector<std::string>& rows(int value) const { return kept_.at(value).second; }

 private:
  const plan::Plan& plan_;
  std::vector<MerkleSum> roots_;                                    // per value; empty: nobody asks
  std::map<int, std::vector<Digest>> digests_;                      // of listed values, per row
  std::map<int, std::pair<Range, std::vector<std::string>>> kept_;  // little-endian
};
// Runs the forward pass. Memory: the digests that are listed, and the rows that are kept.
Status record(const Subject&, Recorder&, const Observer& before = {});

Result<Trace> trace(const Subject&, const Observer& before = {});
// bad_input: no such value, no such row.
Result<Rows> rows(const Subject&, int64_t value, const Observer& before = {});
Result<Values> values(const Subject&, int64_t value, int64_t row, const Observer& before = {});
// The first step whose logits or token are not the receipt's.
Result<Objection> objection(const Subject&, const Observer& before = {});
// The file that answers a question. bad_input: the question is about another computation.
Result<std::string> answer(const Subject&, const Question&, const Observer& before = {});

// The member of the files in which two computations differ, with both contents; all empty: none.
struct OtherComputation {
  std::string member, a, b;
};
OtherComputation compare(const Computation& a, const Computation& b);

}  // namespace invar::dispute
