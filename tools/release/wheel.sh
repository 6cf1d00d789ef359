#!/usr/bin/env bash
# build-release/dist/invar-VERSION-TAG-manylinux_2_34_ARCH.whl: the Python package, the command
# `invar` and the shipped model, for the CPU unless --cuda. TAG is that of the Python which builds it,
# and with --abi3 a second wheel is of cp312-abi3. The options are those of build.sh.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/build.sh"
release "$@"
one() { # MODULE TAG: stage/MODULE/invar/_native* in a wheel of this tag
  python3 -B "$root/tools/release/wheel.py" "$stage" "$1" "$2-manylinux_2_34_$architecture" ${label:+"$label"}
  python3 -B "$root/tools/release/archive.py" wheel "$stage/wheel" "$dist"
}
tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
one package "$tag-$tag"
if [[ -n $abi3 ]]; then one abi3 cp312-abi3; fi
