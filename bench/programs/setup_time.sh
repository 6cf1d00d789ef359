#!/usr/bin/env bash
# How long a newcomer waits: wall and processor time of a cold `./setup.sh demo`, in a copy of this
# checkout without build/ and with an empty compiler cache. What apt and pip have installed or
# downloaded before stays.
#   bench/programs/setup_time.sh [ARGUMENT...]      another verb or its options instead of `demo`
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if (($# == 0)); then set -- demo; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/checkout" "$work/ccache"
# Tracked and new files; those that were removed are not there to copy.
git ls-files -coz --exclude-standard |
  while IFS= read -r -d '' file; do if [[ -e $file ]]; then printf '%s\0' "$file"; fi; done |
  tar -c --null -T - | tar -x -C "$work/checkout"

start=$EPOCHREALTIME status=0
CCACHE_DIR=$work/ccache "$work/checkout/setup.sh" "$@" >"$work/log" 2>&1 || status=$?
wall=$((${EPOCHREALTIME//[^0-9]/} - ${start//[^0-9]/}))
if ((status != 0)); then
  tail -n 20 "$work/log" >&2
  echo "setup_time.sh: ./setup.sh $* ended with $status" >&2
  exit 1
fi
# Two lines of "0m1.234s 0m0.567s": of this shell and of its children. In a pipe: a subshell's.
times >"$work/times"
sum='{ for (i = 1; i <= 2; ++i) { split($i, t, "[ms]"); s += 60 * t[1] + t[2] } printf "%.0f", s }'
processor=$(tail -n 1 "$work/times" | awk "$sum")
printf '%s, %s cores, ./setup.sh %s, cold\n' \
  "$(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" "$*"
printf '%-20s %8.0f s\n' wall "$((wall / 1000000))" processor "$processor"
