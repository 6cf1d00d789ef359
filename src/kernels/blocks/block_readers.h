// Operations whose kernels of an instruction set read a constant operand in blocks of a format, as
// a file holds it (weights/packed_rows.h). pack_bytes() and pack() of such a kernel then get a View
// with `packed`, whose data is a weights::PackedRows; so does the kernel itself, if it packs
// nothing. The numbers are those of the blocks, and so are the bits of results. Rows of a matrix in
// parts, and rows that are the columns of a matrix, are such, too.
//
// A kernel of a GPU that reads them gets them in tiles of codes: pack_bytes() has the same View,
// the loader makes the tiles, and the kernel gets a View with `packed` and the type u8, whose data
// is a weights::CodeTiles in the memory of the host.
#pragma once

#include "kernels/registry.h"

namespace invar::ops {

using ReadsBlocks = bool (*)(const View& constant, int i, const Attributes&);
// Whether the kernel reads constant operand `i`, a view as above or one of numbers, so. Never the
// reference and kernels of libraries.
bool reads_blocks(const CpuKernel&, const View& constant, int i, const Attributes&);
bool reads_blocks(const GpuKernel&, const View& constant, int i, const Attributes&);

// Makes it known of an operation: a static beside what its kernels share.
class RegisteredBlockReader {
 public:
  enum class On : uint8_t { cpu, gpu };
  RegisteredBlockReader(std::string_view op, ReadsBlocks reads, On on = On::cpu);
  const std::string_view op;
  const ReadsBlocks reads;
  const On on;
  const RegisteredBlockReader* const next;
};

}  // namespace invar::ops
