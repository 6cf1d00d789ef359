// A nondeterministic automaton over bytes with calls: a rule is the part that begins at one state
// and ends at states that are marked, and a call runs it before it goes on.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace invar::grammar {

// grammar.20
inline constexpr size_t kMostStates = 1 << 17;
inline constexpr int kMostJsonLevels = 64;
inline constexpr uint8_t kNeverEnds = 255;
inline constexpr int32_t kAnyRoom = INT32_MAX;

struct ByteEdge {
  uint8_t first, last;
  uint32_t to;
};
struct CallEdge {
  uint32_t rule, to;  // the first state of the rule, and where it goes on
  bool level;         // the rule is an object or a list
};
struct NfaState {
  std::vector<ByteEdge> bytes;
  std::vector<uint32_t> skips;  // states that are reached without a byte
  std::vector<CallEdge> calls;
  bool end = false;  // of its rule
  // Here so many plain characters may follow, whatever they are: those that JSON writes as
  // themselves.
  int32_t room = 0;
  uint8_t need = kNeverEnds;  // levels that the shortest way to the rule's end needs, see finish()
};
struct Nfa {
  std::vector<NfaState> states;
  uint32_t start = 0;
};

// Code points from first to last.
struct CodePoints {
  uint32_t first, last;
};
inline constexpr uint32_t kLastCodePoint = 0x10ffff;
// Ascending, disjoint, without surrogates.
std::vector<CodePoints> normal(std::vector<CodePoints>);
std::vector<CodePoints> complement(std::vector<CodePoints>);

// How a text spells a code point: as its UTF-8, or as within a string of JSON, with the fewest
// escapes.
enum class Spelling { raw, json };

class NfaBuilder {
 public:
  uint32_t add();  // a state; state 0 where there are too many
  bool full() const { return full_; }
  NfaState& at(uint32_t state) { return nfa_.states[state]; }

  void bytes(uint32_t from, uint8_t first, uint8_t last, uint32_t to) {
    at(from).bytes.push_back({first, last, to});
  }
  void skip(uint32_t from, uint32_t to) { at(from).skips.push_back(to); }
  void call(uint32_t from, uint32_t rule, uint32_t to, bool level = false) {
    at(from).calls.push_back({rule, to, level});
  }
  // The state after the text.
  uint32_t literal(uint32_t from, std::string_view text);
  void literal(uint32_t from, std::string_view text, uint32_t to) { skip(literal(from, text), to); }
  // One of the texts.
  void texts(uint32_t from, const std::vector<std::string>& texts, uint32_t to);
  // One code point of a list in normal form.
  void code_point(uint32_t from, const std::vector<CodePoints>&, Spelling, uint32_t to);
  // One character within a string of JSON, with every escape that RFC 8259 has (grammar.9).
  void json_character(uint32_t from, uint32_t to);

  // The automaton of the rule that begins at `start`. bad_input: nothing fits, a rule begins with
  // itself, or there are too many states.
  Result<Nfa> finish(uint32_t start);

 private:
  void utf8(uint32_t from, uint32_t first, uint32_t last, uint32_t to);
  void sequences(uint32_t from, const uint8_t* low, const uint8_t* high, int count, uint32_t to);
  uint32_t continuation(uint32_t to, int count);  // a state before so many bytes 80 to BF
  void hex_digits(uint32_t from, int count, uint32_t to);
  void find_needs();
  bool begins_with_itself() const;

  Nfa nfa_;
  std::map<std::pair<uint32_t, int>, uint32_t> continuations_;
  bool full_ = false;
};

}  // namespace invar::grammar
