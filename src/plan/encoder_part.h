// The two parts of a program with an encoder (plan.22): the encoder, which runs once for a source
// text, and the decoder, for which the encoder's results are inputs.
#pragma once

#include "plan/plan.h"

namespace invar::plan {

inline constexpr char kSourceIds[] = "source_ids", kSourceLengths[] = "source_lengths",
                      kSourceFeatures[] = "source_features";
// Whether the encoder reads the input: tokens, or features of fixed sizes.
bool is_source(const Port&);
// Names of the decoder's inputs that are results of the encoder begin so.
inline constexpr char kFromEncoder[] = "encoder.";

struct EncoderSplit {
  // Inputs and outputs that are the program's have its names. The outputs of `encoder` are, in
  // this order, inputs of `decoder` of the same names.
  Segment encoder, decoder;
};
bool has_encoder(const Plan&);
// not_covered: control flow or sizes that values decide; bad_input: nothing of the encoder's is
// read.
Result<EncoderSplit> split_encoder(const Plan&);

}  // namespace invar::plan
