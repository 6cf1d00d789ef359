// New cases from those a room has: a line of cases.txt is taken apart into its numbers, dtypes,
// fills and settings, some of them are replaced, and what the room's check refuses is undone. No
// operation is known here.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/case.h"
#include "kernels/registry.h"

namespace invar::conformance {

// splitmix64: a stream of its own for every seed.
class Random {
 public:
  // The seed is mixed first: else the stream of seed + 1 would be that of seed, one number later.
  explicit Random(uint64_t seed) : state_(mix(seed ^ 0x6a09e667f3bcc908u)) {}
  uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15u); }
  uint64_t below(uint64_t n) { return next() % n; }  // n >= 1
  bool one_in(uint64_t n) { return below(n) == 0; }
  template <class T>
  const T& of(const std::vector<T>& from) {
    return from[below(from.size())];
  }

 private:
  static uint64_t mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  uint64_t state_;
};

// One piece of a case's text; the pieces joined are the text.
struct Piece {
  enum Kind {
    other,
    constant,
    dtype,
    open,
    close,
    size,
    fill,
    fill_number,
    setting_number,
    setting_f32,
    step,
    seed
  };
  Kind kind;
  std::string text;
};
std::vector<Piece> pieces_of(const std::string& text);
std::string join(const std::vector<Piece>&);

// The case, where it is one that the operation takes and that has at most `limit` elements; else
// nothing.
std::optional<Case> accepted(std::string_view op, const std::string& text, int64_t limit);

// `from`, changed in up to `changes` ways; itself where nothing was accepted.
Case mutated(std::string_view op, const Case& from, Random&, int changes, int64_t limit);

// The same with shapes and settings that no memory holds, as a plan may ask for (spec/plan.md):
// below 2^60 bytes per tensor where dimensions of 0 count as 1, any setting. What the room says to
// it, "" where it takes it; then the sizes that a runtime asks for have been computed, too. Data is
// not touched.
std::string check_huge_shapes(std::string_view op, const std::vector<ops::KernelRef>& rows, const Case& from,
                              Random&);

// Simpler texts than this one, the simplest first.
std::vector<std::string> simpler(const std::string& text);

}  // namespace invar::conformance
