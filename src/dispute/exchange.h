// The files that two sides exchange about one computation: what each asks and answers
// (spec/trace.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/file/file.h"
#include "base/hash/sha256.h"
#include "base/status.h"

namespace invar::dispute {

inline constexpr FileKind kExchangeFile{"an exchange file", uint64_t{1} << 30, true};

// The computation that a file is about. Only files about the same one can be compared (trace.1).
struct Computation {
  Digest receipt, weights, program, plan;  // receipt: its hash; plan: digest of the compiled plan
  Digest tokens;                           // of the ids that are fed, i32 little-endian
  std::string numerics;
  int64_t positions = 0;  // tokens that are fed
  bool operator==(const Computation&) const = default;
};

// A result of a node, and the Merkle root over the digests of its rows (trace.2).
struct TracedValue {
  int64_t value = 0, node = 0;  // numbers in the plan
  std::string operation;        // name and version, as in the plan
  std::string origin;           // of plan.17: the layer; "" where it is unknown
  std::string dtype;
  std::vector<int64_t> shape;  // [1, positions, ...]
  Digest root{};
};
struct Trace {
  Computation of;
  std::vector<TracedValue> values;  // in the order of the plan
};
// The digests of all rows of one value (trace.3).
struct Rows {
  Computation of;
  int64_t value = 0;
  std::vector<Digest> rows;  // one a position
};
// Neighbouring rows of an operand, and what shows that they belong to its root (trace.5).
struct OperandRows {
  int64_t value = 0, first = 0;
  std::vector<std::string> rows;  // the bytes of each, little-endian
  std::vector<Digest> proof;
};
// One row of a value, and the rows that it is computed from (trace.4).
struct Values {
  Computation of;
  int64_t value = 0, row = 0;
  std::string dtype;
  std::string result;  // bytes, little-endian
  std::vector<OperandRows> operands;
};
// A step of the answer at which the receipt does not follow from the trace (trace.7). Step -1:
// none.
struct Objection {
  Computation of;
  int64_t step = -1;
  std::string logits;  // the row of that step, f32 little-endian
  std::vector<Digest> proof;
};
// The question that both parties answer next (trace.6). value, row: -1 where the question has none.
struct Question {
  Computation of;
  int64_t round = 1;
  std::string asks;  // "trace", "rows", "values" or "objection"
  int64_t value = -1, row = -1;
  std::vector<Digest> answered_a, answered_b;  // SHA-256 of the files of the rounds before
  // The file that answers it, of party 'a' or 'b', in the folder of the case.
  std::string answer_file(char party) const {
    return std::string(1, party) + "/" + std::to_string(round) + ".json";
  }
};

// JSON, the same bytes for the same content.
std::string print(const Trace&);
std::string print(const Rows&);
std::string print(const Values&);
std::string print(const Objection&);
std::string print(const Question&);

using Exchange = std::variant<Trace, Rows, Values, Objection, Question>;
// The name of a file's kind in messages: "a trace", "rows", ...
std::string_view kind_of(const Exchange&);
// Reads one. Errors: bad_input with the file's name, and line and column or the member.
Result<Exchange> parse(std::string_view text, const std::string& name);
// One of this type; another kind of file is an error.
template <class T>
Result<T> parse_as(std::string_view text, const std::string& name) {
  INVAR_TRY(Exchange read, parse(text, name));
  if (T* wanted = std::get_if<T>(&read)) return std::move(*wanted);
  return bad_input(name + ": schema: this is " + std::string(kind_of(read)) + ", and " +
                   std::string(kind_of(T{})) + " is needed here");
}

std::string hex(std::string_view bytes);

}  // namespace invar::dispute
