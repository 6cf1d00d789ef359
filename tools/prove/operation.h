// Operations of one f32 operand and result (src/ops) as functions to be digested: `op:NAME`, with
// attributes `op:NAME,alpha=3f800000,negative=1` (eight hexadecimal digits: f32, else an integer).
#pragma once

#include <optional>
#include <string>

#include "chunks.h"

namespace invar::prove {

// The room's kernel for `isa`; why not in `problem`.
std::optional<Function1> find_operation(const std::string& text, const std::string& isa,
                                        std::string& problem);

// The committed digests of operations (src/ops/*/tests/exhaustive.txt): `sample` recomputes the
// chunks that each line names, `full` all 2^32 inputs, `fill` writes what is not known yet.
int operations(const std::string& path, const std::string& mode, const std::vector<const Probe*>& isas,
               int threads);

}  // namespace invar::prove
