// CPU reshape and bitcast: a view of the operand, or a copy.
#include <cstring>

#include "kernels/call.h"

namespace invar::ops {
namespace {

void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  int64_t width = static_cast<int64_t>(size_of(call.out[0].dtype)), n = call.out[0].elements();
  if (end * kChunk < n) n = end * kChunk;
  const auto* from = call.in[0].as<const char>() + begin * kChunk * width;
  auto* to = call.out[0].as<char>() + begin * kChunk * width;
  if (from != to && n > begin * kChunk)
    std::memcpy(to, from, static_cast<size_t>((n - begin * kChunk) * width));
}

}  // namespace

#define INVAR_ROW_FOR(name)                  \
  extern const CpuKernel INVAR_ROW_OF(name); \
  const CpuKernel INVAR_ROW_OF(name) = {.op = #name, .isa = INVAR_ISA, .units = chunk_units, .run = run};
INVAR_ROW_FOR(reshape)
INVAR_ROW_FOR(bitcast)

}  // namespace invar::ops
