#!/usr/bin/env bash
# build-release/dist/invar-VERSION-linux-aarch64.tar.xz: what tarball.sh packs, for AArch64, compiled
# here. Debian's libraries of AArch64 are unpacked beside the build and not installed. The options
# are those of build.sh, and it needs the packages of ./setup.sh cross.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/build.sh"
other=aarch64
# MLIR and what the lists of its targets and of LLVM's name, protobuf, OpenSSL, compression, curses,
# and Boost's headers; of two the licence is in another package.
packages=(libmlir-19-dev libmlir-19 llvm-19-dev libllvm19 llvm-19-linker-tools
  libonnx-dev libprotobuf-dev libprotobuf32 libssl-dev zlib1g-dev libzstd-dev
  libncurses-dev libtinfo6 libboost1.74-dev)

build_other() {
  command -v "$other-linux-gnu-g++" >/dev/null || fail "$other-linux-gnu-g++ is missing; ./setup.sh cross"
  local libraries="$build/$other-packages"
  "$root/tools/release/packages.sh" "$libraries" bookworm arm64 "${packages[@]}"
  ln -sfnT /usr/lib/llvm-19/bin "$libraries/usr/lib/llvm-19/bin"  # tools that run here
  cmake --preset "$other" -S "$root" -B "$build/$other" -DINVAR_UNITY=ON -DINVAR_TESTS=OFF \
    -DINVAR_ISA=all -DINVAR_COMPILER=ON -DINVAR_TUI=ON -DINVAR_PORTABLE=ON -DINVAR_SYSROOT="$libraries" \
    >"$build/configure.log" 2>&1 || { tail -n 20 "$build/configure.log" >&2; fail 'cmake failed'; }
  cmake --build "$build/$other" --target invar --parallel "$jobs" >"$build/build.log" 2>&1 ||
    { tail -n 40 "$build/build.log" >&2; fail "the build failed; see $build/build.log"; }
}

# The pages and the model are those of this machine's program.
release "$@"
build_other
here="$stage/$other" doc="$stage/$other/share/doc/invar"
rm -rf "$here"
cp -r "$stage/program" "$here"
rm -r "$here/bin" "$doc/licenses" "$doc/sbom.cdx.json"
cmake --install "$build/$other" --component program --prefix "$here" --strip >"$build/install.log"
python3 -B "$root/tools/release/symbols.py" "$here"/bin/*
python3 -B "$root/tools/release/components.py" "$build/$other" "$doc" invar invar-tui
architecture=$other provenance "$other-linux-gnu-" >"$doc/provenance.txt"
check_names "$here"
python3 -B "$root/tools/release/archive.py" tar "$here" "$dist/invar-$version-linux-$other.tar.xz"
