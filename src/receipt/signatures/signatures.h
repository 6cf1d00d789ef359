// The member `signatures` of receipts and batches (spec/receipt.md receipt.26).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/text/json.h"
#include "receipt/receipt.h"

namespace invar::receipt {

// The text before the hash in the bytes that are signed, so that a signature of one kind is none of
// the other.
inline constexpr std::string_view kSignedReceipt = "invar-receipt-signature 1\n",
                                  kSignedBatch = "invar-batch-signature 1\n";

// Pretty-printed JSON, as a member of the whole.
std::string print(const std::vector<KeySignature>&);
// Adds a finding for each deviation of form. There need not be any signatures.
void read_signatures(const json::Value& top, std::vector<KeySignature>&, std::vector<Finding>&);
// Adds a finding for each that is not of this hash by its key; none in a build that cannot check.
void check_signatures(const std::vector<KeySignature>&, std::string_view kind, const Digest& hash,
                      std::vector<Finding>&);
// Adds that of a key, unless the key has signed before.
Status add(std::vector<KeySignature>&, std::string_view kind, const Digest& hash,
           const signature::PrivateKey&);

}  // namespace invar::receipt
