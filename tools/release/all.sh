#!/usr/bin/env bash
# Every artefact of a release, in build-release/dist: the wheels, the Debian package, the archives
# (that of AArch64 where its compiler is), the page for browsers (where its compiler and Node are),
# the bill of materials, the provenance and SHA256SUMS. The options are those of build.sh.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/build.sh"
here="$root/tools/release"

page() {
  cmake --preset web -S "$root" -B "$build/web" -DINVAR_UNITY=ON -DINVAR_TESTS=OFF \
    -DINVAR_KNOWN_PLANS="$build/web/known_plans.txt" >"$build/configure.log" 2>&1 ||
    { tail -n 20 "$build/configure.log" >&2; fail 'cmake failed'; }
  { cmake --build "$build/web" --target invar_verifier --parallel "$jobs" &&
    "$root/apps/web/known_plans.sh" "$stage/program/bin/invar" "$build/web/bin/invar_verifier.wasm" \
      "$build/web/known_plans.txt" &&
    cmake --build "$build/web" --target invar_page; } >"$build/build.log" 2>&1 ||
    { tail -n 40 "$build/build.log" >&2; fail "the build failed; see $build/build.log"; }
  cp "$build/web/invar-verify.html" "$dist/invar-verify-$version.html"
  check_names "$dist/invar-verify-$version.html"
}

release "$@"
rm -rf "$dist"
export RELEASE_IS_STAGED=1
parts=(wheel deb tarball)
if command -v aarch64-linux-gnu-g++ >/dev/null; then parts+=(cross); fi
for part in "${parts[@]}"; do "$here/$part.sh" "$@"; done
if command -v clang++-19 >/dev/null && command -v node >/dev/null; then page; fi
cp "$stage/program/share/doc/invar/sbom.cdx.json" "$dist/invar-$version.cdx.json"
cp "$stage/program/share/doc/invar/provenance.txt" "$dist/invar-$version-provenance.txt"
"$here/sums.sh"
