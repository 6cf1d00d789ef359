#!/usr/bin/env bash
# Formatting: C++ and CUDA by clang-format, Python by ruff, comments by tools/reflow_comments.py; and
# clang-tidy's findings.
#   tools/format.sh [FILE...]   formats in place: these files, or all
#   tools/format.sh --check     changes nothing; names what differs, exit 1
#   tools/format.sh --tidy      runs clang-tidy (.clang-tidy) over a configured build/
# The versions that decide: clang-format 14 and clang-tidy 14, Debian 12's, and ruff 0.17.
# `pip install clang-format==14.0.6 ruff==0.17.6` has both where apt has not. CLANG_FORMAT,
# CLANG_TIDY and RUFF choose another program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
roots=(src apps bench tests tools examples)

tool() { # NAME INSTALL: the program, of version 14 where there are several, or how to install it
  local found
  found=$(command -v "$1-14" || command -v "$1") || { echo "format.sh: $1 is missing: $2" >&2; exit 2; }
  printf '%s' "$found"
}
choose_tools() {
  clang_format=${CLANG_FORMAT:-$(tool clang-format 'apt-get install clang-format-14')}
  ruff=${RUFF:-$(tool ruff 'pip install ruff==0.17.6')}
}
run_clang_format() {
  find "${roots[@]}" \( -name '*.cc' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
    sort -z | xargs -0 "$clang_format" "$@"
}
format_all() {
  python3 -B tools/reflow_comments.py
  run_clang_format -i
  "$ruff" check --quiet --fix --exit-zero "${roots[@]}"
  "$ruff" format --quiet "${roots[@]}"
  python3 -B tools/reflow_comments.py # once more: what was moved may be too long, or fit
}
format_files() {
  local file
  for file in "$@"; do
    case $file in
      *.cc | *.h | *.cu | *.cuh)
        python3 -B tools/reflow_comments.py "$file"
        "$clang_format" -i "$file" ;;
      *.py)
        "$ruff" check --quiet --fix --exit-zero "$file"
        "$ruff" format --quiet "$file" ;;
    esac
    case $file in *.cc | *.h | *.cu | *.cuh | *.py | *.td | *.cmake | *CMakeLists.txt)
      python3 -B tools/reflow_comments.py "$file" ;;
    esac
  done
}
check() {
  local failed=0
  python3 -B tools/reflow_comments.py --check || failed=1
  run_clang_format --dry-run -Werror || failed=1
  "$ruff" check --quiet "${roots[@]}" || failed=1
  "$ruff" format --quiet --check "${roots[@]}" || failed=1
  return "$failed"
}

case ${1:-} in
  '') choose_tools; format_all ;;
  --check) choose_tools; check ;;
  --tidy)
    [[ -f build/compile_commands.json ]] || { echo 'format.sh: no build/: ./setup.sh build' >&2; exit 2; }
    if grep -qs 'INVAR_UNITY:BOOL=ON' build/CMakeCache.txt; then
      echo 'format.sh: build/ compiles files in batches: cmake --preset release -DINVAR_UNITY=OFF' >&2
      exit 2
    fi
    program=${CLANG_TIDY:-$(tool clang-tidy 'apt-get install clang-tidy-14')}
    find src apps bench -name '*.cc' ! -name '*_test.cc' -print0 | sort -z |
      xargs -0 -n 1 -P "$(nproc)" "$program" -p build --quiet ;;
  -*) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
  *) choose_tools; format_files "$@" ;;
esac
