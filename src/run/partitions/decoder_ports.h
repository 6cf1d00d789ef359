// The inputs and outputs of a decoder that a session feeds and takes (plan.9).
#pragma once

#include <vector>

#include "run/partitions/stage.h"
#include "run/segments/decoder_inputs.h"

namespace invar::run {

DecoderPorts find_ports(const plan::Plan&, const std::vector<DecoderInput>&);
// The size of the vocabulary. bad_input: there are no logits, or a port has another shape or type.
// whole: the program takes the whole sequence at once, which fixes no shape of a step.
Result<int64_t> check_ports(const plan::Plan&, const DecoderPorts&, bool whole);

}  // namespace invar::run
