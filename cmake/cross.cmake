# Toolchain for cross builds: -DINVAR_CROSS=aarch64|riscv64|powerpc64le|s390x. The runtime is static
# and runs with qemu-ARCH-static (binfmt is not needed). -DINVAR_SYSROOT=FOLDER has libraries of that
# architecture as Debian packages them (tools/release/packages.sh), and tools of this machine in its
# /usr/lib/llvm-19/bin: then programs have the compiler, too, and open libraries when they run.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES INVAR_CROSS INVAR_SYSROOT)
set(CMAKE_SYSTEM_PROCESSOR ${INVAR_CROSS})
set(triplet ${INVAR_CROSS}-linux-gnu)
set(CMAKE_CXX_COMPILER ${triplet}-g++)
string(REPLACE powerpc64le ppc64le qemu "qemu-${INVAR_CROSS}-static")
if(INVAR_SYSROOT)
  set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})
  set(CMAKE_FIND_ROOT_PATH ${INVAR_SYSROOT})
  foreach(kind LIBRARY INCLUDE PACKAGE)
    set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
  endforeach()
  set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
  # OpenSSL's headers include some of this folder.
  set(CMAKE_CXX_FLAGS_INIT "-idirafter ${INVAR_SYSROOT}/usr/include/${triplet}")
  set(qemu ${qemu} -L /usr/${triplet})
else()
  set(CMAKE_EXE_LINKER_FLAGS_INIT "-static")
endif()
set(CMAKE_CROSSCOMPILING_EMULATOR ${qemu})
# Before GCC 14 atomics of one byte are calls there.
if(INVAR_CROSS STREQUAL riscv64)
  set(CMAKE_CXX_STANDARD_LIBRARIES_INIT "-latomic")
endif()
