// Tables that a BPE model derives from its vocabulary.
#pragma once

#include <string>
#include <unordered_map>

#include "prompt/models/bpe.h"

namespace invar::prompt {

// Fills byte_id or characters and fallback_id, and word_id, from the tokens' names.
void fill_tables(const std::unordered_map<std::string, int32_t>& ids, Bpe& bpe);

// Whether no token can ever join the character to another one before it. Then a text may be cut
// there into words, which changes no token.
bool never_merges_before(uint32_t character, const std::unordered_map<std::string, int32_t>& ids,
                         const Bpe& bpe);

}  // namespace invar::prompt
