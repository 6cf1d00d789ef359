// Operations that join parts of a tensor, and those that read some parts of one, as indices say.
// An executor need not compute a part that nobody reads.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/attributes.h"

namespace invar::ops {

struct PartRule {
  std::string_view op;
  // The axis of the only result along which the operands follow one another; null: they do not.
  int64_t (*joins_along)(const Attributes&) = nullptr;
  // The axis of in[0] along which the call reads only what has one of the indices: the first
  // elements of the rows of in[1], i64, which may count from the end. Null: there is none.
  int64_t (*reads_along)(const Attributes&) = nullptr;
};

// Null: an operation of neither kind.
const PartRule* find_part_rule(std::string_view op);

// Makes a rule known: a static in a file of the room.
class RegisteredPartRule {
 public:
  explicit RegisteredPartRule(const PartRule& rule);
  const PartRule rule;
  const RegisteredPartRule* const next;
};

}  // namespace invar::ops
