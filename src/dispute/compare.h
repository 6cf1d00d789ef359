// Two files about one answer -> the first thing that differs, and its likely cause.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "dispute/exchange.h"
#include "dispute/trace.h"
#include "receipt/receipt.h"

namespace invar::dispute {

// The step at which two answers to one prompt part: other tokens, or other logits (a == b).
struct Parting {
  int64_t step;
  int32_t a, b;
  std::vector<float> logits;  // [vocab], of this machine; empty: not computed
};
struct Difference {
  bool equal = false;
  // The place: "field", "step", "layer", "operation", "position", "element", ... and both contents.
  std::vector<std::pair<std::string, std::string>> where;
  std::string cause, next;  // the likely cause and why; what each side runs next; may be empty
  std::optional<Parting> parting = {};
};
// Lines for people, safe for a terminal.
std::string report(const Difference&);

struct NamedText {
  std::string_view text;
  std::string name;
};
// Two receipts, or two exchange files of one kind. A receipt that contradicts itself is a
// difference from every other. Errors: bad_input, with the file and the place that is wrong; files
// of two kinds.
Result<Difference> compare_files(const NamedText& a, const NamedText& b);
Difference compare_receipts(const receipt::Receipt& a, const receipt::Receipt& b);
Result<Difference> compare_traces(const Trace& a, const Trace& b);

// The first step whose tokens differ; none where the prompts do, or where one answer goes on.
std::optional<Parting> parting_of(const receipt::Receipt& a, const receipt::Receipt& b);
// The logits that the token of a step is chosen from, as this machine computes them: [vocab].
Result<std::vector<float>> logits_of_step(const Subject&, int64_t step);
std::vector<float> floats_of(std::string_view little_endian);
// Adds to d.where the texts of the tokens and the margin between their logits. text_of: a token's
// text in quotes; empty: nobody knows the tokenizer. drawn: logits alone do not decide.
void explain(const Parting&, bool drawn, const std::function<std::string(int32_t)>& text_of, Difference& d);

// Says which side is right where compare_files() finds that two files of values differ in results
// alone: the reference kernel computes the element here.
Status decide(const Subject&, const NamedText& a, const NamedText& b, Difference&);

// A receipt with this machine: the first step that does not follow, and whether this machine's
// kernels equal the reference kernels in every result. other_model: what
// receipt::compare_model() found.
Result<Difference> compare_with_machine(const Subject&, const std::vector<receipt::Finding>& other_model);

}  // namespace invar::dispute
