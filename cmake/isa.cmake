# Instruction sets of the target processor, best first. One line here and one file in src/num/lane/
# per new one.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(INVAR_ISAS avx512 avx2 scalar)
  set(INVAR_ISA_FLAGS_avx512 -O3 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c)
  set(INVAR_ISA_FLAGS_avx2 -O3 -mavx2 -mfma -mf16c)
  # scalar FMA instructions only: a second, independent instruction path to the same bits
  set(INVAR_ISA_FLAGS_scalar -O2 -mfma -fno-tree-vectorize -fno-tree-slp-vectorize)
  # Extensions, best first: instructions that some processors have beyond a set. They have rows of
  # the operations that gain (src/ops/ROOM/cpu/extension.cc); the set's rows do the others.
  set(INVAR_ISA_EXTENSIONS_avx512 avx512_amx avx512_vnni)
  set(INVAR_ISA_EXTENSION_FLAGS_avx512_amx -mavx512vnni -mamx-tile -mamx-int8)
  set(INVAR_ISA_EXTENSION_FLAGS_avx512_vnni -mavx512vnni)
  set(INVAR_ISA_EXTENSIONS_avx2 avx2_vnni)
  set(INVAR_ISA_EXTENSION_FLAGS_avx2_vnni -mavxvnni)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(INVAR_ISAS neon scalar)
  set(INVAR_ISA_FLAGS_neon -O3)
  set(INVAR_ISA_EXTENSIONS_neon neon_i8mm neon_dot)
  set(INVAR_ISA_EXTENSION_FLAGS_neon_i8mm -march=armv8.2-a+dotprod+i8mm)
  set(INVAR_ISA_EXTENSION_FLAGS_neon_dot -march=armv8.2-a+dotprod)
  set(INVAR_ISA_FLAGS_scalar -O2 -fno-tree-vectorize -fno-tree-slp-vectorize)
elseif(INVAR_WEB)
  set(INVAR_ISAS wasm)
  set(INVAR_ISA_FLAGS_wasm -O2)
else()
  # riscv64, ppc64le, s390x and others: fused multiply-add is part of their base (lane_scalar.h).
  set(INVAR_ISAS scalar)
  set(INVAR_ISA_FLAGS_scalar -O2)
endif()
# Under a sanitizer AVX2 shows the defects of the one loop: with -O3 and AVX-512 a kernel takes
# minutes.
if(INVAR_SANITIZE)
  list(REMOVE_ITEM INVAR_ISAS avx512)
endif()
# The best of them that this machine runs, alone, with the extensions that it runs: half the time to
# build. Programs for other machines take all.
set(INVAR_ISA all CACHE STRING "Instruction sets of the kernels: all, native, the best of this machine, or \
the name of one")
if(INVAR_ISA STREQUAL native AND NOT CMAKE_CROSSCOMPILING)
  set(known ${INVAR_ISAS})
  foreach(isa ${INVAR_ISAS})
    list(APPEND known ${INVAR_ISA_EXTENSIONS_${isa}})
  endforeach()
  if(NOT DEFINED INVAR_NATIVE_SETS_RUN)
    try_run(INVAR_NATIVE_SETS_RUN INVAR_NATIVE_SETS_BUILT ${CMAKE_BINARY_DIR}/native_isa
            ${CMAKE_SOURCE_DIR}/cmake/native_isa.cc
            CMAKE_FLAGS -DINCLUDE_DIRECTORIES=${CMAKE_SOURCE_DIR}/src CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON
            RUN_OUTPUT_VARIABLE printed ARGS ${known})
    string(REPLACE "\n" ";" printed "${printed}")
    set(INVAR_NATIVE_SETS ${printed} CACHE INTERNAL "sets and extensions that this processor runs")
  endif()
  set(found "")
  foreach(isa ${INVAR_ISAS})
    if(isa IN_LIST INVAR_NATIVE_SETS)
      set(found ${isa})
      break()
    endif()
  endforeach()
  if(NOT found)
    message(FATAL_ERROR
            "-DINVAR_ISA=native: this processor runs none of ${INVAR_ISAS}; leave the option out")
  endif()
  set(INVAR_ISAS ${found})
  foreach(extension ${INVAR_ISA_EXTENSIONS_${found}})
    if(NOT extension IN_LIST INVAR_NATIVE_SETS)
      list(REMOVE_ITEM INVAR_ISA_EXTENSIONS_${found} ${extension})
    endif()
  endforeach()
elseif(INVAR_ISA IN_LIST INVAR_ISAS)
  set(INVAR_ISAS ${INVAR_ISA})
elseif(NOT INVAR_ISA MATCHES "^(all|native)$")
  list(JOIN INVAR_ISAS ", " isas)
  message(FATAL_ERROR "-DINVAR_ISA=${INVAR_ISA}: all, native or one of ${isas}")
endif()
# The GPU. Without these nvcc fuses a*b+c, as GCC does (cmake/flags.cmake); the others are its
# defaults, written down. Headers of num/ and ops/ are written for both sides: kernels may call
# their constexpr functions. The host's side of a file is compiled as all others are.
set(INVAR_ISA_FLAGS_cuda -Xcompiler=-ffp-contract=off -fmad=false -ftz=false -prec-div=true
                         -prec-sqrt=true --expt-relaxed-constexpr --extended-lambda)

# Use after scope is not watched in kernels, whose locals are registers: it doubles the time to
# compile them (reduce: 61 s, 33 s without). The thread sanitizer looks for two workers at one byte:
# what a vector's tail could do and a scalar loop cannot. The fuzzer of model files looks at the
# compiler.
if(INVAR_SANITIZE)
  if(INVAR_SANITIZE STREQUAL "thread")
    list(GET INVAR_ISAS 0 INVAR_ISAS)
  elseif(INVAR_SANITIZE MATCHES "fuzzer")
    set(INVAR_ISAS scalar)
  endif()
  # Kernels find the size of their scratch memory by laying it out from a null pointer, which
  # clang's check names.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    list(APPEND INVAR_ISA_FLAGS_scalar -fno-sanitize=pointer-overflow)
  endif()
  foreach(isa ${INVAR_ISAS})
    list(TRANSFORM INVAR_ISA_FLAGS_${isa} REPLACE "^-O[23]$" "-O1")
    list(APPEND INVAR_ISA_FLAGS_${isa} -fno-sanitize-address-use-after-scope)
  endforeach()
endif()
# Instrumented extensions are built with all sets alone: few processors run them.
set(INVAR_ISA_EXTENSIONS "")
if(INVAR_SANITIZE AND NOT INVAR_ISA STREQUAL all)
  foreach(isa ${INVAR_ISAS})
    set(INVAR_ISA_EXTENSIONS_${isa} "")
  endforeach()
endif()
foreach(isa ${INVAR_ISAS})
  list(APPEND INVAR_ISA_EXTENSIONS ${INVAR_ISA_EXTENSIONS_${isa}})
endforeach()
