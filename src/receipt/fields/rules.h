// What must hold within a receipt besides its hashes. spec/receipt.md receipt.10, receipt.13.
#pragma once

#include <vector>

#include "receipt/receipt.h"

namespace invar::receipt {

// Token ids outside [0, vocab), each by its index.
void check_tokens(std::string_view path, const std::vector<int32_t>& tokens, int64_t vocab,
                  std::vector<Finding>&);
// Each field by itself.
void check_ranges(const Receipt&, std::vector<Finding>&);
// Fields against each other, for a receipt without other findings.
void check_consistency(const Receipt&, std::vector<Finding>&);
// Why generation ended after these tokens, or "" where it should not have.
std::string finish_reason(const Receipt&);

}  // namespace invar::receipt
