#!/usr/bin/env bash
# build-release/dist/invar-VERSION-linux-aarch64.tar.xz: the program without the compiler for AArch64,
# static, so that it runs on any Linux. It runs and verifies with a plan that another machine
# compiled. The options are those of build.sh, and it needs the packages of ./setup.sh cross.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/build.sh"
other=aarch64

build_other() {
  command -v "$other-linux-gnu-g++" >/dev/null || fail "$other-linux-gnu-g++ is missing; ./setup.sh cross"
  cmake --preset "$other" -S "$root" -B "$build/$other" -DINVAR_UNITY=ON -DINVAR_TESTS=OFF \
    -DINVAR_ISA=all >"$build/configure.log" 2>&1 ||
    { tail -n 20 "$build/configure.log" >&2; fail 'cmake failed'; }
  cmake --build "$build/$other" --target invar --parallel "$jobs" >"$build/build.log" 2>&1 ||
    { tail -n 40 "$build/build.log" >&2; fail "the build failed; see $build/build.log"; }
}

release "$@"
build_other
here="$stage/$other" doc="$stage/$other/share/doc/invar"
cp -r "$stage/program" "$here"
rm -r "$here/bin" "$doc/licenses" "$doc/sbom.cdx.json"
cmake --install "$build/$other" --component program --prefix "$here" --strip >"$build/install.log"
python3 -B "$root/tools/release/components.py" "$build/$other" "$doc" invar
architecture=$other provenance >"$doc/provenance.txt"
check_names "$here"
python3 -B "$root/tools/release/archive.py" tar "$here" "$dist/invar-$version-linux-$other.tar.xz"
