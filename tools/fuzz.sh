#!/usr/bin/env bash
# Hostile files: builds with clang's sanitizers and coverage (build/fuzz) and lets libFuzzer change
# files for MINUTES on every core. Inputs that show a defect are kept as
# build/fuzz/found/TARGET-{crash,timeout,oom}-*; then the exit code is 1. A later run tries them
# first, and removes those that show nothing any longer.
#   tools/fuzz.sh --list                                 the targets, and what each of them reads
#   tools/fuzz.sh TARGET MINUTES [libFuzzer's options]
#   tools/fuzz.sh TARGET --try FILE...                   these inputs alone
# Needs what ./setup.sh test installed, and the packages clang-19 and libclang-rt-19-dev.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ ${1:-} == --list || ${2:-} =~ ^([1-9][0-9]*|--try)$ ]] || { sed -n '2,9s/^# \?//p' "$0" >&2; exit 2; }
command -v clang++-19 >/dev/null || {
  echo "tools/fuzz.sh: clang++-19 is missing: apt-get install clang-19 libclang-rt-19-dev" >&2
  exit 2
}
cmake --preset fuzz >/dev/null
list=build/fuzz/fuzz_targets.txt
if [[ $1 == --list ]]; then expand -t 12 "$list"; exit; fi
target=$1 what=$2
shift 2
cut -f 1 "$list" | grep -qx -e "$target" || {
  echo "tools/fuzz.sh: no target is called $target; tools/fuzz.sh --list names them" >&2
  exit 2
}
cmake --build build/fuzz --target "invar_fuzz_$target" --parallel "$(nproc)"
export TMPDIR=${TMPDIR:-/dev/shm}  # models and prompt files are read from files
fuzz=(build/fuzz/bin/"invar_fuzz_$target" -timeout=20 -rss_limit_mb=3000)
if [[ $what == --try ]]; then exec "${fuzz[@]}" "$@"; fi
begin=build/fuzz/begin-$target corpus=build/fuzz/corpus-$target found=build/fuzz/found
mkdir -p "$found" "$begin" "$corpus"
for file in "$found/$target"-*; do
  if [[ -f $file ]] && "${fuzz[@]}" "$file" >/dev/null 2>&1; then rm "$file"; fi
done
python=build/venv/bin/python
[[ -x $python ]] || python=python3
"$python" -B tests/fuzz/seeds.py "$target" "$begin"
"${fuzz[@]}" -fork="$(nproc)" -max_total_time=$((what * 60)) -max_len=20000 \
  -artifact_prefix="$found/$target-" -ignore_crashes=1 -ignore_timeouts=1 -ignore_ooms=1 "$@" \
  "$corpus" "$begin"
defects=$(find "$found" -name "$target-*" | head -n 5)
[[ -z $defects ]] || { printf 'tools/fuzz.sh: these inputs show a defect:\n%s\n' "$defects" >&2; exit 1; }
