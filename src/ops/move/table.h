// The strided-copy operations of this room, as X(name). Each is a case of move_loops (room.cc), a
// line in spec/opset.toml, ops.toml and import.cc, and its clause, vectors and golden digests.
#pragma once

#define INVAR_MOVES(X) \
  X(transpose)         \
  X(slice)             \
  X(expand)            \
  X(depth_to_space)    \
  X(space_to_depth)    \
  X(pad)               \
  X(pad_edge)          \
  X(pad_reflect)       \
  X(pad_wrap)
