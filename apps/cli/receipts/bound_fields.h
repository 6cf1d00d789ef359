// A receipt's fields as JSON, under its own names.
#pragma once

#include "base/text/json.h"
#include "receipt/receipt.h"

namespace invar::cli {

// The sections model and program as the receipt has them, with the number of tensors in the place
// of their list.
json::Value bound_fields(const receipt::Receipt&);

}  // namespace invar::cli
