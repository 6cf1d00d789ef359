// Concatenation of parts that ranks on several GPUs make (kernels/fusion/join_kernels.h).
#pragma once

#include "kernels/fusion/join_kernels.h"

namespace invar::ops::INVAR_ISA_NS {

size_t join_mailbox_bytes(int ranks, int64_t part_bytes);
void enqueue_join(const Call& call, const GpuJoin& join, Stream stream);

}  // namespace invar::ops::INVAR_ISA_NS
