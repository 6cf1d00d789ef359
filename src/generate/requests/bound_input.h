// What a receipt binds of a request: one list for the receipt of an answer and for the key of a
// question.
#pragma once

#include "generate/requests/request.h"
#include "receipt/seal.h"

namespace invar::generate {

// `max_new_tokens`: the limit that the receipt names (receipt.20).
receipt::Input bound_input(const Request&, int64_t max_new_tokens);

}  // namespace invar::generate
