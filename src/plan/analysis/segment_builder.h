// Builds a part of a plan as a plan of its own: a segment of a block, or a stage of a decoder.
#pragma once

#include <map>
#include <set>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace invar::plan {

// The symbols that values and other symbols refer to.
class SymbolUses {
 public:
  explicit SymbolUses(const Plan&);
  // The named symbols that a symbol is computed from; of a name, itself.
  const std::vector<int>& names_of(int symbol) const { return names_[static_cast<size_t>(symbol)]; }
  std::vector<int> symbols_of(int v) const;

  const std::vector<double> typical;  // sizes of all symbols

 private:
  const Plan& whole_;
  std::vector<std::vector<int>> names_;
};

// Gives the part numbers of its own for values, weights, symbols and states.
class SegmentBuilder {
 public:
  // made_at: per value of the whole plan the part whose nodes compute it.
  SegmentBuilder(const Plan& whole, const SymbolUses& uses, std::span<const int> made_at, int part);
  void add(const Node& n, int number);
  // Makes a value an output: a later part, control flow or the caller reads it.
  void keep(int v);
  Segment finish() &&;

 private:
  int value(int v);
  int input(int v);
  int weight(int w);
  int state(int s);
  void renumber_symbols();

  const Plan& p_;
  const SymbolUses& uses_;
  std::span<const int> made_at_;
  int part_;
  Segment segment_;
  std::set<int> kept_;
  // Numbers of the whole plan -> numbers of the segment.
  std::map<int, int> values_, weights_, states_;
};

}  // namespace invar::plan
