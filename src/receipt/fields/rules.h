// The rules that a receipt must satisfy besides its hashes (spec/receipt.md receipt.10,
// receipt.13).
#pragma once

#include <vector>

#include "receipt/receipt.h"

namespace invar::receipt {

// Adds a finding for each token id outside [0, vocab).
void check_tokens(std::string_view path, const std::vector<int32_t>& tokens, int64_t vocab,
                  std::vector<Finding>&);
// Checks each field by itself.
void check_ranges(const Receipt&, std::vector<Finding>&);
// Checks fields against each other, for a receipt without other findings.
void check_consistency(const Receipt&, std::vector<Finding>&);
// Why generation ended after these tokens, or "" where it should not have.
std::string finish_reason(const Receipt&);

}  // namespace invar::receipt
