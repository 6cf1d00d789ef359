#!/bin/bash
# Builds joins.cu with nvcc alone and runs it on two GPUs: bits, bounded waits, times against NCCL.
# GENERATED: the build's folder generated/ops. NCCL: libnccl.so.2; by default PyTorch's own.
set -e
cd "$(dirname "$0")/../.."
generated=${GENERATED:-build/generated/ops} program=${PROGRAM:-/tmp/invar-joins}
find_nccl='import nvidia.nccl as n; print(list(n.__path__)[0] + "/lib/libnccl.so.2")'
nccl=${NCCL:-$(python3 -c "$find_nccl" 2> /dev/null || echo libnccl.so.2)}
nvcc -std=c++20 -O3 -g -arch=sm_90 -fmad=false --expt-relaxed-constexpr --extended-lambda \
  -DINVAR_ISA_NS=cuda -DINVAR_ISA='"cuda"' -Isrc -I"$(dirname "$generated")" -I"$generated" \
  -o "$program" bench/programs/joins.cu src/ops/move/{cuda.cu,cuda/join.cu,room.cc} \
  src/kernels/{call.cc,fusion/join_kernels.cc} src/base/attributes.cc "$generated/attributes.cc" \
  -ldl -lpthread
export NCCL_NVLS_ENABLE=0  # no NVLink multicast
timeout "${LIMIT:-60}" "$program" bits
timeout "${LIMIT:-60}" "$program" times
timeout "${LIMIT:-60}" "$program" nccl "$nccl"
