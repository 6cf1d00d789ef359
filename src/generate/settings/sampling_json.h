// The settings of an answer as `invar run --json` and the server have them.
#pragma once

#include "base/text/json.h"
#include "receipt/receipt.h"

namespace invar::generate {

// How the receipt's tokens were chosen: the most common settings, and the others that change
// something.
json::Value sampling_json(const receipt::Receipt&);

}  // namespace invar::generate
