// Parts that a step need not compute, since indices that it made before choose others: the experts
// that no token has.
#pragma once

#include "run/prepare/executable.h"

namespace invar::run {

// What a node makes is read only as part `part` of `parts`, where an element of the value `by` is
// that number, which may count from the end. -1: it is read in any case.
struct ChosenPart {
  int by = -1;
  int64_t part = 0, parts = 0;
  size_t behind = 0;  // nodes before this one make `by`
  bool operator==(const ChosenPart&) const = default;
};

// Per node. All nodes of a fused group have the same one.
std::vector<ChosenPart> chosen_parts(const Executable&);
bool is_read(const ChosenPart&, const ops::View& by);
// The elements of the leading axis of `by` that have an index of the part, ascending.
void find_rows(const ChosenPart&, const ops::View& by, std::vector<int64_t>& rows);

}  // namespace invar::run
