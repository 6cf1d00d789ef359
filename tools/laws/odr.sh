#!/usr/bin/env bash
# Kernels are compiled once per instruction set, and the linker keeps one copy of every weak symbol:
# a copy made for one instruction set could then run where it must not. So no kernel object may
# define one (src/num/inline.h), and the objects of an instruction set must use it.
#   [NM=... OBJDUMP=...] tools/laws/odr.sh BUILD_FOLDER | --self-test
set -euo pipefail

weak() {  # the weak and unique definitions of an object
  local symbols
  symbols=$("${NM:-nm}" -C --defined-only "$1") || exit 1
  grep -E '^[0-9a-f]* [VWu] ' <<<"$symbols" || true
}

if [[ "${1:-}" == --self-test ]]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  printf 'inline int f(int x) { return x + 1; }\nint (*g)(int) = f;\n' >"$folder/bad.cc"
  printf 'static inline int f(int x) { return x + 1; }\nint (*g)(int) = f;\n' >"$folder/good.cc"
  for name in bad good; do "${CXX:-c++}" -c "$folder/$name.cc" -o "$folder/$name.o"; done
  if [[ -z $(weak "$folder/bad.o") || -n $(weak "$folder/good.o") ]]; then
    echo "odr: the self-test failed"
    exit 1
  fi
  echo "odr: a weak definition is found, an internal one is not"
  exit 0
fi

build=${1:?usage: tools/laws/odr.sh BUILD_FOLDER}
declare -A register=([avx512]='%zmm' [avx2]='%ymm' [neon]='\.4s')
count=0 bad=0
while IFS= read -r -d '' object; do
  count=$((count + 1))
  found=$(weak "$object")
  if [[ -n $found ]]; then
    echo "${object#"$build"/}: weak definitions; make them static or always inlined:"
    echo "$found" | head -5
    bad=1
  fi
done < <(find "$build/CMakeFiles" -path '*/CMakeFiles/invar_*.dir/src/ops/*/cpu*.o' -print0)
if ((count == 0)); then
  echo "odr: no kernel objects below $build"
  exit 1
fi
# The flags of an instruction set arrive: its registers are somewhere among its objects.
for isa in "${!register[@]}"; do
  objects=("$build"/CMakeFiles/invar_*_"$isa".dir/src/ops/*/cpu*.o)
  [[ -e ${objects[0]} ]] || continue
  code=$("${OBJDUMP:-objdump}" -d --no-show-raw-insn "${objects[@]}")
  if ! grep -q "${register[$isa]}" <<<"$code"; then
    echo "no kernel object of $isa uses ${register[$isa]}"
    bad=1
  fi
done
((bad == 0)) && echo "odr: no weak definition in $count kernel objects"
exit $bad
