// Several versions of the residual stream, of which a layer computes one and corrects the others
// (spec/decoder.md decoder.66, decoder.67). Part of Decoder.
#pragma once

#include <cstdint>

namespace invar::checkpoint {

struct AltUp {
  int64_t inputs = 0;       // versions; 0: the usual one alone
  int64_t active = 0;       // the one that layers compute
  bool scaled = true;       // what an input of a layer is made from has a factor for each element
  int64_t laurel_rank = 0;  // of the linear branch beside attention
};

}  // namespace invar::checkpoint
