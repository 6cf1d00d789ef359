#!/usr/bin/env bash
# Hostile model files: builds the compiler with clang's sanitizers and coverage (build/fuzz) and lets
# libFuzzer change the models of ONNX's node tests for MINUTES on every core. Inputs that show a
# defect are kept as build/fuzz/found/{crash,timeout,oom}-*.
#
# tools/fuzz.sh MINUTES [libFuzzer's options]          tools/fuzz.sh --try FILE...: these inputs alone
# Needs what ./setup.sh test installed, and the packages clang-19 and libclang-rt-19-dev.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ ${1:-} =~ ^([1-9][0-9]*|--try)$ ]] || { sed -n '2,8s/^# \?//p' "$0" >&2; exit 2; }
command -v clang++-19 >/dev/null || {
  echo "tools/fuzz.sh: clang++-19 is missing: apt-get install clang-19 libclang-rt-19-dev" >&2
  exit 2
}
what=$1
shift
cmake --preset fuzz >/dev/null
cmake --build build/fuzz --target invar_fuzz_onnx --parallel "$(nproc)"
export TMPDIR=${TMPDIR:-/dev/shm}  # every input passes through a file
if [[ $what == --try ]]; then exec build/fuzz/bin/invar_fuzz_onnx -timeout=20 -rss_limit_mb=3000 "$@"; fi
python=build/venv/bin/python
[[ -x $python ]] || python=python3
mkdir -p build/fuzz/found build/fuzz/corpus
"$python" tests/fuzz/corpus.py build/fuzz/nodes
exec build/fuzz/bin/invar_fuzz_onnx \
  -fork="$(nproc)" -max_total_time=$((what * 60)) -max_len=20000 -timeout=20 -rss_limit_mb=3000 \
  -artifact_prefix=build/fuzz/found/ -ignore_crashes=1 -ignore_timeouts=1 -ignore_ooms=1 "$@" \
  build/fuzz/corpus build/fuzz/nodes
