#!/usr/bin/env bash
# The figures of the main job on this machine, medians of several runs. Speed is never a test here:
# machines differ.
#   bench/programs/demo.sh [RUNS]      after ./setup.sh build
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
runs=${1:-7}
invar=build/bin/invar
model=models/shakespeare-4m
[[ -x $invar ]] || { echo 'demo.sh: no build/bin/invar: ./setup.sh build' >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

seconds() { # COMMAND...: wall seconds of one run
  local start=$EPOCHREALTIME
  "$@" >"$work/out" 2>"$work/err" || { cat "$work/err" >&2; exit 1; }
  local us=$((${EPOCHREALTIME//[^0-9]/} - ${start//[^0-9]/}))
  printf '%d.%06d\n' $((us / 1000000)) $((us % 1000000))
}
median() {
  sort -n |
    awk '{v[NR] = $1} END {x = v[int((NR + 1) / 2)]; printf x < 100 ? "%.3f\n" : "%.0f\n", x}'
}
field() { sed -n "s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" "$work/out"; }
repeat() { for ((i = 0; i < runs; ++i)); do "$@"; done | median; }

job=(run --model-name "$model" --prompt-text 'ROMEO:' --receipt-path "$work/r.json" --json)
cold() { rm -rf "$work/task"; seconds "$invar" "${job[@]}" --max-new-tokens 64 --task-dir "$work/task"; }
warm() { seconds "$invar" "${job[@]}" --max-new-tokens 64 --task-dir "$work/task"; }
check() { seconds "$invar" verify "$work/r.json"; }
rate() {
  local how=(--max-new-tokens 400 --no-do-sample --task-dir "$work/task")
  seconds "$invar" "${job[@]}" "${how[@]}" "$@" >/dev/null
  field decode_tokens_per_second
}

printf '%s, %s cores, median of %s runs\n\n' \
  "$(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" "$runs"
row() { printf '%-58s %10s  %s\n' "$1" "$2" "$3"; }
row 'start-up (invar --version)' "$(repeat seconds "$invar" --version)" s
row 'invar run, 64 tokens, nothing exported or compiled before' "$(repeat cold)" s
row 'invar run, 64 tokens, plan ready' "$(repeat warm)" s
row 'invar verify' "$(repeat check)" s
row 'decoding, every core' "$(repeat rate)" tokens/s
row 'decoding, one thread' "$(repeat rate --threads 1)" tokens/s
row 'decoding, scalar instructions' "$(repeat rate --isa scalar)" tokens/s
