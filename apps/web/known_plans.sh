#!/usr/bin/env bash
# The plans that the page knows: of the models that ship, by both profiles of numerics.
#   apps/web/known_plans.sh INVAR VERIFIER.wasm FILE   writes a line of each into FILE, if it changes
set -euo pipefail
(($# == 3)) || { sed -n '2,3s/^# \{0,1\}//p' "$0"; exit 2; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
plans=$(mktemp -d)
trap 'rm -rf "$plans"' EXIT
for model in "$root"/models/*/; do
  for numerics in fp32 exact16; do
    "$1" run --model-name "$model" --prompt-text x --max-new-tokens 1 --numerics "$numerics" \
      --task-dir "$plans/task" --receipt-path "$plans/receipt.json"
    node "$root/apps/web/run.mjs" "$2" outline "$plans/task/plan.invar" >>"$plans/known"
    rm -r "$plans/task"
  done
done
cmp -s "$plans/known" "$3" || cp "$plans/known" "$3"
