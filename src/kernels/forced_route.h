// For tests: which of its routes a row takes that has several.
#pragma once

namespace invar::ops {

// Rows that choose among routes by shape take number `variant` modulo how many they have; 0: their own choice. Bits never
// depend on it.
void force_variant(int variant);
int variant();

}  // namespace invar::ops
