# Law 6: compiler flags that touch floating point stand here and nowhere else.
# -ffp-contract=off: GCC and clang otherwise fuse a*b+c where the target has FMA, so bits would
# depend on the target
#   (measured: x86-64 baseline and x86-64-v3 differ). Kernels fuse explicitly.
# -fno-math-errno: sqrt is the instruction alone, without a call for negative arguments; no bits
# depend on it. -fno-fast-math et al. are the defaults; tools/laws checks that nothing switches
# them.
set(flags -ffp-contract=off -fno-math-errno -Wall -Wextra -Werror=return-type -fno-strict-aliasing)
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${flags}>")

# What a build that only tests run need not optimize. -Og takes two thirds of the time of -O1 to
# compile instrumented code, and three quarters of that of -O2 elsewhere.
set(INVAR_OPTIMIZE all CACHE STRING "all; or kernels: they and what they compute with, for tests")
set_property(CACHE INVAR_OPTIMIZE PROPERTY STRINGS all kernels)
if(NOT INVAR_OPTIMIZE MATCHES "^(all|kernels)$")
  message(FATAL_ERROR "-DINVAR_OPTIMIZE=${INVAR_OPTIMIZE}: all or kernels")
endif()
# Of code that runs once per file or command, and no kernel waits for: -O1 takes three quarters of
# the time of -O2.
set(INVAR_COLD -O1)
if(INVAR_OPTIMIZE STREQUAL kernels)
  set(INVAR_COLD -Og)
endif()

# Under a sanitizer with -O1: the instrumentation of what -O2 inlines takes half as long again to
# compile.
set(INVAR_SANITIZE "" CACHE STRING
    "address,undefined; thread; or address,undefined,fuzzer-no-link (tools/fuzz.sh)")
if(INVAR_SANITIZE)
  add_compile_options(-fsanitize=${INVAR_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O1)
  add_link_options(-fsanitize=${INVAR_SANITIZE})
  # These checks find what the address sanitizer finds, too. Without them code takes three quarters of
  # the time to compile.
  if(INVAR_SANITIZE MATCHES "address,undefined" AND INVAR_OPTIMIZE STREQUAL kernels)
    add_compile_options(-fno-sanitize=null,object-size,vptr,nonnull-attribute,returns-nonnull-attribute)
  endif()
endif()

# What hardens the program against a defect that a file from a stranger reaches
# (docs/design/threat-model.md): tables that are read-only after the start, and checks of stacks and
# buffers in what reads such files. Kernels read none. Builds for tests alone leave it out; a
# sanitizer checks more.
set(INVAR_HARDENED "")
if(NOT INVAR_SANITIZE AND NOT INVAR_WEB AND INVAR_OPTIMIZE STREQUAL all)
  set(INVAR_HARDENED -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
  add_link_options(LINKER:-z,relro,-z,now,-z,noexecstack)
endif()
