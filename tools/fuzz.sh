#!/usr/bin/env bash
# Hostile files: builds with clang's sanitizers and coverage (build/fuzz) and lets libFuzzer change
# files for MINUTES on every core. Inputs that show a defect are kept as
# build/fuzz/found/{crash,timeout,oom}-*.
#
# tools/fuzz.sh MINUTES [libFuzzer's options]            models: those of ONNX's node tests
# tools/fuzz.sh receipt MINUTES [libFuzzer's options]    receipts, batches and keys
# tools/fuzz.sh http MINUTES [libFuzzer's options]       what a server is sent, over a socket
# tools/fuzz.sh TARGET MINUTES [libFuzzer's options]     text: tokenizer (their files), pattern (regular
#   expressions), grammar (schemas that answers fit), template (chat templates), prompts (messages,
#   tools, JSON lines), checkpoint (config.json and other files of the folder), exchange (files of
#   disputes, answers of the hub), call (bodies of requests to a server), container (GGUF files,
#   arrays of NumPy, plans, tables as CSV)
# tools/fuzz.sh [TARGET] --try FILE...                   these inputs alone
# Needs what ./setup.sh test installed, and the packages clang-19 and libclang-rt-19-dev.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=onnx
targets="onnx|receipt|http|tokenizer|pattern|grammar|template|prompts|checkpoint|exchange|call|container"
if [[ ${1:-} =~ ^($targets)$ ]]; then
  target=$1 && shift
fi
[[ ${1:-} =~ ^([1-9][0-9]*|--try)$ ]] || { sed -n '2,15s/^# \?//p' "$0" >&2; exit 2; }
command -v clang++-19 >/dev/null || {
  echo "tools/fuzz.sh: clang++-19 is missing: apt-get install clang-19 libclang-rt-19-dev" >&2
  exit 2
}
what=$1
shift
cmake --preset fuzz >/dev/null
cmake --build build/fuzz --target "invar_fuzz_$target" --parallel "$(nproc)"
export TMPDIR=${TMPDIR:-/dev/shm}  # models and prompt files are read from files
fuzz=(build/fuzz/bin/"invar_fuzz_$target" -timeout=20 -rss_limit_mb=3000)
if [[ $what == --try ]]; then exec "${fuzz[@]}" "$@"; fi
begin=build/fuzz/begin-$target corpus=build/fuzz/corpus-$target
mkdir -p build/fuzz/found "$begin" "$corpus"
if [[ $target == onnx ]]; then
  python=build/venv/bin/python
  [[ -x $python ]] || python=python3
  "$python" tests/fuzz/corpus.py "$begin"
elif [[ $target != receipt ]]; then
  python=build/venv/bin/python
  [[ -x $python ]] || python=python3
  "$python" -B tests/fuzz/parsers/seeds.py "$target" "$begin"
else
  cp tests/golden/receipts/*.json src/receipt/example.json tests/fuzz/keys/* "$begin"
fi
exec "${fuzz[@]}" -fork="$(nproc)" -max_total_time=$((what * 60)) -max_len=20000 \
  -artifact_prefix=build/fuzz/found/ -ignore_crashes=1 -ignore_timeouts=1 -ignore_ooms=1 "$@" \
  "$corpus" "$begin"
