// Packed weights of safetensors: what quantization_config says, and the tensors of numbers that
// take the packed ones' places (spec/weights.md weights.16 to weights.22).
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace invar::checkpoint {

class ConfigReader;
struct Checkpoint;

enum class PackedBy { nothing, fp8, compressed_tensors, modelopt, gptq, awq, bitsandbytes };

struct Quantization {
  PackedBy by = PackedBy::nothing;
  int bits = 0;                               // of gptq and awq
  int64_t group = 0;                          // columns with a scale; 0: all of a row
  int64_t block_rows = 0, block_columns = 0;  // of fp8 and compressed-tensors; 0: the scales' shape says it
  bool scales_are_powers = false;             // MXFP4 of compressed-tensors
  bool zeros_are_less = false;                // gptq stores each zero less 1
};

// Reads the key quantization_config, if there is one, and refuses by name what is not read.
Quantization read_quantization(ConfigReader&);

// Replaces the tensors of each packed matrix NAME by NAME.weight, of Checkpoint::made. bad_input: a
// part is missing or of another type or shape.
Status replace_packed(Checkpoint&, const Quantization&);

}  // namespace invar::checkpoint
