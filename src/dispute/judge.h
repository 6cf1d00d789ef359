// The judge of a dispute about one computation (spec/trace.md, trace.6 - trace.9): asks both
// parties until they differ in one element, and computes that alone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "dispute/exchange.h"
#include "dispute/trace.h"

namespace invar::dispute {

// The work of a judge and that of the whole run, in the same units (trace.9).
struct Cost {
  uint64_t multiply_adds = 0, run_multiply_adds = 0;
  uint64_t bytes_hashed = 0;  // of the parties' answers
};

struct Verdict {
  enum Winner { a, b, nobody } winner = nobody;
  std::string reason;
  // The things compared: "operation", "position", "element", ... with the words for a person.
  std::vector<std::pair<std::string, std::string>> details;
  Cost cost;
};

// A party's answer to a question: a text, or why its file cannot be read, which is its fault.
struct Answer {
  std::string name;  // for messages
  std::string text, fault;
};
// Reads the answer to a question, at most `most` bytes of it. Null: there is none yet.
using Party = std::function<std::optional<Answer>(const Question&, uint64_t most)>;

// A party whose files are in memory, round by round: names for messages, and contents.
struct Answers {
  std::vector<std::string> names, texts;
  std::optional<Answer> operator()(const Question&, uint64_t most) const;
};

// The bytes that the file of an answer may have (trace.10). The question is about the subject.
uint64_t most_bytes(const Subject&, const Question&);

// The next question, or the verdict. Stateless: everything follows from the answers. `asked` is the
// question of the last call, or null: an answer that was changed since loses. A party that has not
// answered the last question yet: that question again, or with `close` it loses. Errors are the
// judge's own: its weights are not those of the plan.
using Ruling = std::variant<Question, Verdict>;
Result<Ruling> judge(const Subject&, const Party& a, const Party& b, const Question* asked = nullptr,
                     bool close = false);

std::string report(const Verdict&);

}  // namespace invar::dispute
