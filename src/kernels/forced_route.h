// Test hook that forces one of several code paths (routes) of a row.
#pragma once

namespace invar::ops {

// A row that chooses among routes by shape takes route `variant` modulo their number; 0 means its
// own choice. Bits never depend on it.
void force_variant(int variant);
int variant();

}  // namespace invar::ops
