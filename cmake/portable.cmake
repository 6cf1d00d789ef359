# INVAR_PORTABLE: programs for machines other than the one that builds, x86-64 or AArch64 with glibc
# 2.34 or newer (Debian 12, Ubuntu 22.04, RHEL 9). They hold libstdc++. libgcc_s stays shared: GCC
# 12's static unwinder asks for _dl_find_object of glibc 2.35. apps/portable brings what glibc has
# since 2.36. Kernels are compiled as always, so that bits stay and the compiler's cache serves.
# tools/release/symbols.py checks which versions a program asks for.
option(INVAR_PORTABLE "Link the programs for every Linux with glibc 2.34 or newer (tools/release)" OFF)

# invar_portable(TARGET...): links these programs so.
function(invar_portable)
  if(NOT INVAR_PORTABLE)
    return()
  endif()
  if(NOT TARGET invar_arc4random)
    add_library(invar_arc4random OBJECT ${CMAKE_SOURCE_DIR}/apps/portable/arc4random.cc)
  endif()
  foreach(target ${ARGN})
    if(TARGET ${target})
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:invar_arc4random>)
      target_link_options(${target} PRIVATE -static-libstdc++)
    endif()
  endforeach()
  # Assertions in headers, and in what mlir-tblgen writes, name their files: not by folders of this
  # machine.
  if(TARGET invar_compiler)
    target_compile_options(invar_compiler PRIVATE -fmacro-prefix-map=${CMAKE_BINARY_DIR}=build)
  endif()
  foreach(library compiler onnx_proto onnx checkpoint signature http tui)
    if(INVAR_SYSROOT AND TARGET invar_${library})
      target_compile_options(invar_${library} PRIVATE -fmacro-prefix-map=${INVAR_SYSROOT}=)
    endif()
  endforeach()
endfunction()
