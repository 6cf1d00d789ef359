// Two files about one answer -> the first thing that differs, and its likely cause.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "dispute/exchange.h"
#include "dispute/trace.h"
#include "receipt/receipt.h"

namespace invar::dispute {

struct Difference {
  bool equal = false;
  // Where: "field", "step", "layer", "operation", "position", "element", ... and both contents.
  std::vector<std::pair<std::string, std::string>> where;
  std::string cause, next;  // the likely cause and why; what each side runs next; may be empty
};
// As lines for people, safe for a terminal.
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

// Of two files of values that compare_files() finds different in their results alone: computes the
// element here, by the reference kernel, and says which side is right.
Status decide(const Subject&, const NamedText& a, const NamedText& b, Difference&);

// A receipt with this machine: the first step that does not follow, and whether this machine's
// kernels equal the reference kernels in every result. other_model: what
// receipt::compare_model() found.
Result<Difference> compare_with_machine(const Subject&, const std::vector<receipt::Finding>& other_model);

}  // namespace invar::dispute
