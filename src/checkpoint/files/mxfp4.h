// Weights in MXFP4 (OCP Microscaling Formats 1.0), widened to bf16, which holds each of them
// exactly (spec/decoder.md decoder.18).
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
// Writes kWidenedFile to `path`, if there are tensors. An element that bf16 does not hold is
// not_covered.
Status write_mxfp4_as_bf16(const std::string& folder, const std::vector<Mxfp4Tensor>&,
                           const std::string& path);

}  // namespace invar::checkpoint
