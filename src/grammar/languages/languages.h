// What an answer may be asked to fit -> its automaton (spec/grammar.md).
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "base/text/json.h"
#include "grammar/automaton/nfa.h"

namespace invar::grammar {

// The texts that a regular expression matches as a whole (grammar.12). `searched`: those in which
// it matches somewhere, as JSON Schema has it. The result is the state behind them.
Status add_pattern(NfaBuilder&, uint32_t from, std::string_view pattern, Spelling, bool searched,
                   uint32_t to);

// The values of JSON that a schema accepts (grammar.3 to grammar.11). `name` is what errors call
// it. The schema outlives the builder.
Status add_schema(NfaBuilder&, uint32_t from, const json::Value& schema, const std::string& name,
                  uint32_t to);

// A whole number between the two, each in decimal digits, of at most 20 (grammar.10). An empty one
// is no bound.
struct WholeRange {
  std::string least, most;
};
Status add_whole_number(NfaBuilder&, uint32_t from, const WholeRange&, uint32_t to);
void add_number(NfaBuilder&, uint32_t from, uint32_t to);

}  // namespace invar::grammar
