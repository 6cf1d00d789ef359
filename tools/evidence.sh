#!/usr/bin/env bash
# Every kernel row against the vectors and golden digests, on every instruction set that can be run
# here: natively, built by g++ and by clang, and under QEMU for the other architectures; the receipt
# of the shipped model on each; random cases. Writes docs/evidence/kernels.md.
#   tools/evidence.sh [--seeds BEGIN:END] [--no-build] [--to FILE]
#   tools/evidence.sh --machine FILE KEY   instead: the signed report of this machine, with receipts
#                                          of the shipped model on each of its instruction sets
#   tools/evidence.sh --add FILE           instead: adds such a report to docs/evidence/reports; exit 1
#                                          and what differs, where it differs from those that are here
# --seeds: the random cases (default 0:1000000, minutes on one core); --no-build: with the builds as
# they are, for which `./setup.sh cross` or `test --all` is responsible; --to: another page. Needs
# x86-64. Exit 1 if anything differs; then nothing is written.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# machine FILE KEY: with the program in INVAR_BIN
machine() {
  local invar=${INVAR_BIN:-build/bin/invar} folder isa profile receipts=()
  folder=$(mktemp -d)
  trap "rm -rf '$folder'" EXIT
  local isas='import json, sys; print(*json.load(sys.stdin)["isas"])'
  for isa in $("$invar" doctor --json 2>/dev/null | python3 -c "$isas"); do
    for profile in fp32 exact16; do
      [[ $isa != reference ]] || continue # what the others are compared with, and slow
      "$invar" run --model-name models/shakespeare-4m --prompt-text "ROMEO:" --max-new-tokens 64 --quiet \
        --numerics "$profile" --isa "$isa" --receipt-path "$folder/$isa.$profile.json" >/dev/null
      receipts+=(--model-receipt "$folder/$isa.$profile.json")
    done
  done
  "$invar" doctor --evidence "$1" --sign "$2" "${receipts[@]}" --quiet | tail -n 1
}
case ${1:-} in
  --add) exec python3 -B tools/evidence/reports.py --add "$(realpath "${2:?a report}")" ;;
  --machine) machine "${2:?a file}" "${3:?a private key}"; exit ;;
esac

seeds=0:1000000 make=1 page=docs/evidence/kernels.md
while (($#)); do
  case $1 in
    --seeds) seeds=$2; shift ;;
    --no-build) make='' ;;
    --to) page=$2; shift ;;
    *) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
  shift
done
if [[ $make ]]; then ./setup.sh cross; fi

out=build/evidence
mkdir -p "$out"
model=models/shakespeare-4m
build/bin/invar run --model-name "$model" --prompt-text "ROMEO:" --max-new-tokens 64 --task-dir "$out/task" \
  --receipt-path "$out/here.json" >/dev/null 2>&1

# try NAME COMMAND...: its kernels and its receipts
try() {
  local name=$1 isa
  shift
  printf '%s: doctor\n' "$name"
  "$@" doctor --json >"$out/$name.json" || {
    printf 'evidence.sh: %s: kernels differ, see %s/%s.json\n' "$name" "$out" "$name" >&2
    exit 1
  }
  : >"$out/$name.receipts"
  local isas='import json, sys; print(*json.load(open(sys.argv[1]))["isas"])'
  local hash='import json, sys; print(*sys.argv[1:], json.load(sys.stdin)["receipt_hash"])'
  for isa in $(python3 -c "$isas" "$out/$name.json"); do
    local tokens=64
    if [[ $isa == reference && $# -gt 1 ]]; then tokens=8; fi # one element at a time, in an emulator
    printf '%s: receipt with %s, %s tokens\n' "$name" "$isa" "$tokens"
    "$@" run --plan "$out/task/plan.invar" --model-name "$model" \
      --prompt-text "ROMEO:" --max-new-tokens "$tokens" --isa "$isa" \
      --receipt-path "$out/$name.$isa.json" --json 2>/dev/null |
      python3 -c "$hash" "$isa" "$tokens" >>"$out/$name.receipts"
  done
  "$@" verify "$out/here.json" --plan "$out/task/plan.invar" --model-name "$model" >/dev/null 2>&1 ||
    { printf 'evidence.sh: %s does not verify the receipt made here\n' "$name" >&2; exit 1; }
}
try x86_64 build/bin/invar
try clang build/clang/bin/invar
for arch in aarch64 riscv64 ppc64le s390x; do try "$arch" "qemu-$arch-static" "build/$arch/bin/invar"; done
random=
if grep -qs '^INVAR_TESTS:BOOL=ON' build/CMakeCache.txt; then
  if [[ $make ]]; then cmake --build build --target invar_fuzz >/dev/null; fi
  printf 'random cases %s\n' "$seeds"
  nice build/bin/invar_fuzz --seeds "$seeds" | tee "$out/fuzz.txt"
  random=$out/fuzz.txt
fi
python3 tools/evidence/table.py "$out" ${random:+"$random"} >"$page"
printf 'wrote %s\n' "$page"
