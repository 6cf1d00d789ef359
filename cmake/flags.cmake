# Law 6: compiler flags that touch floating point stand here and nowhere else.
# -ffp-contract=off: GCC and clang otherwise fuse a*b+c where the target has FMA, so bits would
# depend on the target
#   (measured: x86-64 baseline and x86-64-v3 differ). Kernels fuse explicitly.
# -fno-math-errno: sqrt is the instruction alone, without a call for negative arguments; no bits
# depend on it. -fno-fast-math et al. are the defaults; tools/laws checks that nothing switches
# them.
set(flags -ffp-contract=off -fno-math-errno -Wall -Wextra -Werror=return-type -fno-strict-aliasing)
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${flags}>")

# Under a sanitizer with -O1: the instrumentation of what -O2 inlines takes half as long again to
# compile.
set(INVAR_SANITIZE "" CACHE STRING
    "address,undefined; thread; or address,undefined,fuzzer-no-link (tools/fuzz.sh)")
if(INVAR_SANITIZE)
  add_compile_options(-fsanitize=${INVAR_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O1)
  add_link_options(-fsanitize=${INVAR_SANITIZE})
endif()
