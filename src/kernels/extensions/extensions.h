// Extensions of instruction sets (cmake/isa.cmake): "avx512_vnni" of "avx512". They have kernels of
// a few operations; those of the set do the others.
#pragma once
#include <span>
#include <string_view>

namespace invar::ops {

// Extensions of this build that this CPU can run, best first.
std::span<const std::string_view> isa_extensions();
// Whether this build and CPU have an instruction set or an extension.
bool can_run(std::string_view isa);

}  // namespace invar::ops
