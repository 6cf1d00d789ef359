#!/usr/bin/env bash
# Every artefact of a release, in build-release/dist: the wheels, the Debian package, the archives,
# the bill of materials, the provenance and SHA256SUMS. The options are those of build.sh.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/build.sh"
here="$root/tools/release"
[[ " $* " != *' --help '* && " $* " != *' -h '* ]] || { sed -n '2,3s/^# //p' "$0"; usage; exit 0; }
rm -rf "$dist"
for part in wheel deb tarball; do "$here/$part.sh" "$@"; done
cp "$stage/program/share/doc/invar/sbom.cdx.json" "$dist/invar-$version.cdx.json"
cp "$stage/program/share/doc/invar/provenance.txt" "$dist/invar-$version-provenance.txt"
"$here/sums.sh"
