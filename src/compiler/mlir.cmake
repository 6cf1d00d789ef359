# MLIR from the distribution's packages, linked statically. Debian builds LLVM as one shared library
# and every exported MLIR target asks for it; here each asks for the static archives instead, so the
# program needs no LLVM at run time.
find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-19/lib/cmake/mlir)
find_library(INVAR_LIBZ NAMES libz.a REQUIRED)
find_library(INVAR_LIBZSTD NAMES libzstd.a REQUIRED)
foreach(lib ${MLIR_EXPORTED_TARGETS})
  get_target_property(links ${lib} INTERFACE_LINK_LIBRARIES)
  if(links)
    list(TRANSFORM links REPLACE "^LLVM$" LLVMSupport)
    set_target_properties(${lib} PROPERTIES INTERFACE_LINK_LIBRARIES "${links}")
  endif()
endforeach()
# Without libz3, which nothing here refers to.
set_target_properties(LLVMSupport PROPERTIES
                      INTERFACE_LINK_LIBRARIES "rt;dl;m;${INVAR_LIBZ};${INVAR_LIBZSTD};LLVMDemangle")
find_program(INVAR_MLIR_TBLGEN mlir-tblgen HINTS ${LLVM_TOOLS_BINARY_DIR} REQUIRED)
set(INVAR_LLVM_TOOLS ${LLVM_TOOLS_BINARY_DIR} CACHE INTERNAL "FileCheck, not: for tests/compiler/mlir")

# Headers as system headers, sections that the linker can drop.
function(invar_use_mlir target)
  target_include_directories(${target} SYSTEM PRIVATE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR} ${CMAKE_SOURCE_DIR}/src)
  target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections -Wno-unused-parameter)
  if(INVAR_SANITIZE MATCHES address)
    # LLVM's headers poison their arenas where they see the sanitizer; the packaged libraries would
    # not unpoison them.
    target_compile_options(${target} PRIVATE -U__SANITIZE_ADDRESS__)
  endif()
  target_link_libraries(${target} PRIVATE ${ARGN})
  target_link_options(${target} PUBLIC -Wl,--gc-sections)
endfunction()

# invar_tablegen(FILE.td OUT.inc ARGS...): generates OUT.inc and adds it to `tables`.
macro(invar_tablegen td out)
  add_custom_command(
    OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${out}
    COMMAND ${INVAR_MLIR_TBLGEN} ${ARGN} -I ${CMAKE_SOURCE_DIR}/src -I ${CMAKE_BINARY_DIR}/generated
            -I ${MLIR_INCLUDE_DIRS} ${td} -o ${CMAKE_CURRENT_BINARY_DIR}/${out}
            -d ${CMAKE_CURRENT_BINARY_DIR}/${out}.d
    DEPENDS ${td} ${INVAR_MLIR_TBLGEN}
    DEPFILE ${CMAKE_CURRENT_BINARY_DIR}/${out}.d
    VERBATIM)
  list(APPEND tables ${CMAKE_CURRENT_BINARY_DIR}/${out})
endmacro()
