#!/usr/bin/env bash
# Every artefact of a release, in build-release/dist: the wheels, the Debian package, the archives
# (that of AArch64 where its compiler is), the bill of materials, the provenance and SHA256SUMS. The
# options are those of build.sh.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/build.sh"
here="$root/tools/release"
release "$@"
rm -rf "$dist"
export RELEASE_IS_STAGED=1
parts=(wheel deb tarball)
if command -v aarch64-linux-gnu-g++ >/dev/null; then parts+=(cross); fi
for part in "${parts[@]}"; do "$here/$part.sh" "$@"; done
cp "$stage/program/share/doc/invar/sbom.cdx.json" "$dist/invar-$version.cdx.json"
cp "$stage/program/share/doc/invar/provenance.txt" "$dist/invar-$version-provenance.txt"
"$here/sums.sh"
