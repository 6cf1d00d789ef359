#!/usr/bin/env bash
# Formatting of C++ by .clang-format, and clang-tidy's findings.
#   tools/format.sh          formats in place
#   tools/format.sh --check  changes nothing; names what differs, exit 1
#   tools/format.sh --tidy   runs clang-tidy (.clang-tidy) over a configured build/
# CLANG_FORMAT and CLANG_TIDY choose another version; version 14, Debian 12's, is the one that decides.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tool() { # NAME: the chosen program, or what to install
  local found
  found=$(command -v "$1-14" || command -v "$1") || { echo "format.sh: $1 is missing: apt-get install $1-14" >&2; exit 2; }
  printf '%s' "$found"
}
sources() { find src apps bench tests tools \( -name '*.cc' -o -name '*.h' \) -print0 | sort -z; }

case ${1:-} in
  '') sources | xargs -0 "${CLANG_FORMAT:-$(tool clang-format)}" -i ;;
  --check) sources | xargs -0 "${CLANG_FORMAT:-$(tool clang-format)}" --dry-run -Werror ;;
  --tidy)
    [[ -f build/compile_commands.json ]] || { echo 'format.sh: no build/: ./setup.sh build' >&2; exit 2; }
    find src apps bench -name '*.cc' ! -name '*_test.cc' -print0 | sort -z |
      xargs -0 -n 1 -P "$(nproc)" "${CLANG_TIDY:-$(tool clang-tidy)}" -p build --quiet ;;
  *) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
