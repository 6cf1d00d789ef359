// Weights in MXFP4 (OCP Microscaling Formats 1.0), and ternary ones, widened to bf16, which holds
// each of them exactly (spec/decoder.md decoder.18, decoder.69).
#pragma once

#include <string>
#include <vector>

#include "checkpoint/folder.h"

namespace invar::checkpoint {

// The file with the widened tensors, beside the model.
inline constexpr const char* kWidenedFile = "mxfp4-as-bf16.bin";

struct Mxfp4Tensor {
  CheckpointTensor blocks, scales;  // U8 [E, out, groups, 16], U8 [E, out, groups]
  uint64_t offset = 0;              // of its widened elements [E, in, out] in kWidenedFile
};

// Replaces each pair of tensors NAME_blocks and NAME_scales by NAME, bf16, in kWidenedFile.
Result<std::vector<Mxfp4Tensor>> replace_mxfp4(Checkpoint&);
// The same for ternary matrices (decoder.69): each tensor U8 [rows, in] becomes bf16 [4 * rows, in]
// in kTernaryFile.
inline constexpr const char* kTernaryFile = "ternary-as-bf16.bin";
struct TernaryTensor {
  CheckpointTensor packed;
  uint64_t offset = 0;
};
std::vector<TernaryTensor> replace_ternary(Checkpoint&);
// Writes kTernaryFile to `path`, if there are tensors. Two bits that are no element are bad input.
Status write_ternary_as_bf16(const std::string& folder, const std::vector<TernaryTensor>&,
                             const std::string& path);

// Writes kWidenedFile to `path`, if there are tensors. An element that bf16 does not hold is
// not_covered.
Status write_mxfp4_as_bf16(const std::string& folder, const std::vector<Mxfp4Tensor>&,
                           const std::string& path);

}  // namespace invar::checkpoint
