// Weights in MXFP4 (OCP Microscaling Formats 1.0), and ternary ones. bf16 holds each of them
// exactly (spec/decoder.md decoder.18, decoder.69).
#pragma once

#include <string>
#include <vector>

#include "checkpoint/folder.h"

namespace invar::checkpoint {

// Replaces each pair of tensors NAME_blocks U8 [E, out, groups, 16] and NAME_scales U8 [E, out,
// groups] by NAME, bf16 [E, in, out], of Checkpoint::made. An element that bf16 does not hold is
// not_covered.
Status replace_mxfp4(Checkpoint&);
// Of ternary matrices (decoder.69): each tensor U8 [rows, in] becomes bf16 [4 * rows, in]
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

}  // namespace invar::checkpoint
