// A file that says which kernels and models have the known bits on a machine
// (docs/evidence/README.md). tools/evidence/reports.py reads it.
#pragma once

#include <string>
#include <vector>

#include "conformance/machine.h"
#include "receipt/receipt.h"
#include "signature/signature.h"

namespace invar::cli {

// JSON with the hash of all but itself and the signatures. The bytes that are hashed are those of
// the object without them, as JSON without spaces, members ascending; those that are signed, the
// text "invar-evidence-signature 1\n" and the hash in hexadecimal. It names no user and no folder.
// Error: a key cannot sign.
Result<std::string> evidence_text(const conformance::MachineReport&, const std::vector<receipt::Receipt>&,
                                  const std::vector<signature::PrivateKey>&);

}  // namespace invar::cli
