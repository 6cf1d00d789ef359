// Recognizes attention with linear biases (ALiBi, Press et al. 2022) in the mask of an Attention.
#pragma once

#include "compiler/room_api.h"

namespace invar::compiler {

// If `mask` is slopes * (position of the key - position of the query), rounded as attention.19
// does, in causal attention of `heads` heads, with constant finite slopes: these, `heads` numbers
// in the order of the heads; else null. `past` [batch, heads, past, size] comes before the new
// keys; null: there is none. Query i stands at position past + i.
Value match_slopes(Value mask, Value past, int64_t heads, ArrayRef<NamedAttribute> attrs);

}  // namespace invar::compiler
