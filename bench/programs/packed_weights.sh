#!/bin/bash
# Builds packed_weights.cu with nvcc alone and runs it on a GPU of compute capability 9.0: bits, then
# times. GENERATED: the build's folder generated/ops.
set -e
cd "$(dirname "$0")/../.."
generated=${GENERATED:-build/generated/ops} to=${OBJECTS:-/tmp/invar-packed-weights}
mkdir -p "$to"
flags=(-std=c++20 -O3 -fmad=false --expt-relaxed-constexpr --extended-lambda -DINVAR_ISA_NS=cuda
  -DINVAR_ISA='"cuda"' -DINVAR_SM90A -Isrc -I"$(dirname "$generated")" -I"$generated")
compile() { # file, architecture
  local object
  object=$to/$(echo "$1" | tr / _).o
  nvcc "${flags[@]}" -gencode "arch=compute_$2,code=sm_$2" -c "$1" -o "$object" || touch "$to/failed"
}
rm -f "$to"/*.o "$to/failed"
room=src/ops/matmul
for file in $room/cuda/sm90a/exact16.cu $room/cuda/sm90a/exact16/coded_*.cu; do compile "$file" 90a & done
for file in $room/cuda/exact16.cu bench/programs/packed_weights.cu $room/room.cc src/kernels/call.cc \
  src/kernels/{blocks/block_readers,fusion/join_kernels}.cc src/base/attributes.cc \
  "$generated/attributes.cc" src/weights/{blocks,formats,integers,packed_matrix,super_blocks}.cc \
  src/weights/tiles/code_tiles.cc; do compile "$file" 90 & done
wait
[ ! -e "$to/failed" ]
nvcc -arch=sm_90 -o "$to/program" "$to"/*.o
timeout "${LIMIT:-100}" "$to/program" bits
timeout "${LIMIT:-100}" "$to/program" times
