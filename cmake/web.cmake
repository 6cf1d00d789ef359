# Toolchain of the verifier for browsers: LLVM's own C++ library and clang for WebAssembly, with
# WASI as the system. There are no threads and no exceptions, and no fused multiply-add either:
# src/num/soft_fma.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(INVAR_WEB ON)
find_program(INVAR_CLANG clang++-19 PATHS /usr/lib/llvm-19/bin REQUIRED)
set(CMAKE_CXX_COMPILER ${INVAR_CLANG})
set(CMAKE_CXX_COMPILER_TARGET wasm32-wasi)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_AR /usr/lib/llvm-19/bin/llvm-ar)
set(CMAKE_RANLIB /usr/lib/llvm-19/bin/llvm-ranlib)
set(CMAKE_EXECUTABLE_SUFFIX .wasm)
set(CMAKE_CXX_FLAGS_INIT "-msimd128 -fno-exceptions -D_WASI_EMULATED_MMAN -D_WASI_EMULATED_SIGNAL")
# -O0 at the end: where Binaryen is installed, too, clang would run its optimizer for a minute, and
# the page would depend on what else is installed. (clang 19 with --no-wasm-opt does not link at
# all.)
set(CMAKE_EXE_LINKER_FLAGS_INIT
    "-lwasi-emulated-mman -lwasi-emulated-signal -Wl,--stack-first -Wl,-z,stack-size=4194304 -O0")
# What needs threads, signals, or files to write: apps/web/system has the few functions of these
# that are called.
set(INVAR_NOT_IN_WEB
    base/thread_pool.cc base/confinement/confinement.cc base/file/disk_reservation.cc
    base/file/map_registry.cc base/file/temporary_file.cc base/file/write_files.cc
    device/machine.cc run/weights/upload.cc
    run/weights/weights.cc run/npy.cc
    run/partitions/workers/relay.cc run/partitions/workers/relayed_transport.cc
    run/partitions/workers/remote_stage.cc run/partitions/workers/transport.cc
    run/partitions/workers/worker.cc
    signature/key_file.cc)
# Rooms that no language model needs for speed: the reference computes them, to the same bits.
set(INVAR_REFERENCE_ROOMS batchnorm conv fixed groupnorm nms optim pool quantize random resize)
