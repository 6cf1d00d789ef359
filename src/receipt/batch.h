// Batches: one hash, and so one signature, for many receipts (spec/receipt.md receipt.28).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "receipt/receipt.h"

namespace invar::receipt {

struct Batch {
  struct Entry {
    std::string name;  // of the receipt's file, from the batch's folder on; a label outside the hash
    Digest receipt_hash;
  };
  std::vector<Entry> receipts;  // in the order of the leaves; at least one
  std::vector<KeySignature> signatures;
};

// Whether the text says that it is a batch rather than a receipt.
bool is_batch(std::string_view json);
// The root over the schema and the receipts' hashes.
Digest batch_hash(const Batch&);
std::string print(const Batch&);
Status sign(Batch&, const signature::PrivateKey&);
// Structure, hash and signatures, without the receipts. Error: not JSON at all.
Result<std::vector<Finding>> validate_batch(std::string_view json, std::string_view file_name_for_errors,
                                            Batch* out = nullptr);
// Whether a batch may call a receipt so: a path within the batch's folder.
bool is_name_in_batch(std::string_view name);

}  // namespace invar::receipt
