# Toolchain for cross builds of the runtime: -DINVAR_CROSS=aarch64|riscv64|powerpc64le|s390x. Static
# binaries, run with qemu-ARCH-static (binfmt is not needed).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES INVAR_CROSS)
set(CMAKE_SYSTEM_PROCESSOR ${INVAR_CROSS})
set(CMAKE_CXX_COMPILER ${INVAR_CROSS}-linux-gnu-g++)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static")
string(REPLACE powerpc64le ppc64le qemu "qemu-${INVAR_CROSS}-static")
set(CMAKE_CROSSCOMPILING_EMULATOR ${qemu})
