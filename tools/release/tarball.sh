#!/usr/bin/env bash
# build-release/dist/invar-VERSION-linux-ARCH.tar.xz: the program with the shipped model, pages for
# man and completion, which runs from any folder. The options are those of build.sh.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/build.sh"
release "$@"
python3 -B "$root/tools/release/archive.py" tar "$stage/program" \
  "$dist/invar-$version-linux-$architecture.tar.xz"
