# shellcheck shell=bash disable=SC2154
# `./setup.sh test`, which reads this file: builds and runs the tests of a tier
# (docs/design/tests.md).

# python_environment FOLDER LIST...: what these lists name, installed once.
python_environment() {
  local folder=$1 wanted=$1.requirements ready=$1/requirements.txt name=${1##*/}
  shift
  cat "$@" >"$wanted"
  if [[ -x $folder/bin/python ]] && cmp -s "$wanted" "$ready" &&
    "$folder/bin/python" -c 'import pip' 2>/dev/null; then
    say "Python: $folder is ready"
    return
  fi
  say "Python: $(grep -v '^#' "$wanted" | tr '\n' ' ')into $folder"
  phase "$name" python3 -m venv --clear "$folder"
  phase "pip-$name" "$folder/bin/python" -m pip install --disable-pip-version-check -q -r "$wanted"
  cp "$wanted" "$ready"
}
python_environments() {
  if ((tier < 3)); then
    python_environment build/venv tests/requirements.txt
    return
  fi
  python_environment build/venv tests/{requirements,requirements-all,tables/requirements}.txt
  # Clients of a server, which ask for other versions of what these tests use.
  python_environment build/clients tests/serve/clients/requirements.txt
  export INVAR_CLIENT_PYTHON=$root/build/clients/bin/python
}

run_tests() {
  local wanted=() builds=(release=build asan=build/asan tsan=build/tsan)
  # Tier 2 builds what its tests run: of instrumented kernels one instruction set. It optimizes
  # kernels alone where only tests run the rest.
  local instrumented=native emulated=neon optimized=-DINVAR_OPTIMIZE=kernels
  local programs=invar_tests_of_tier2 for_aarch64="invar_tests_of_tier2 invar"
  if ((tier == 3)); then
    instrumented=all emulated=all optimized=-DINVAR_OPTIMIZE=all
    programs=invar_tests for_aarch64=all
  fi
  mapfile -t wanted < <(test_list)
  count_jobs
  case $tier in
    1) announce build/bin/invar "${quick_seconds[@]}" ;;
    2) announce build/everything/CTestTestfile.cmake "${test_seconds[@]}" ;;
    3) say "Time: longer than without --all; no run was measured ($jobs at a time)" ;;
  esac
  install_packages "${wanted[@]}"
  prepare_build_folder
  python_environments
  local beside=sample_speed costs_too_much=''
  rm -rf build/log/speed
  mkdir -p build/log/speed
  touch build/log/speed/begin
  local python=(-DINVAR_TESTS=ON -DINVAR_ISA=all "-DINVAR_PYTHON=$root/build/venv/bin/python")
  say "Build: everything, $jobs at a time (minutes the first time)"
  options_of_cuda
  if [[ -n $(gpus) && ${with_cuda[0]} == *=ON ]]; then with_cuda+=(-DINVAR_GPU=ON); fi
  configure_and_build release build all "${python[@]}" "${with_cuda[@]}" -DINVAR_PACKAGE=ON \
    "-DPython_EXECUTABLE=$root/build/venv/bin/python"
  if ((tier == 1)); then
    run_ctest build
    return
  fi
  say "Build: the runtime under the address, undefined-behaviour and thread sanitizers"
  configure_and_build asan build/asan "$programs" "${python[@]}" -DINVAR_COMPILER=OFF \
    -DINVAR_ISA=$instrumented "$optimized"
  configure_and_build tsan build/tsan "$programs" "${python[@]}" -DINVAR_COMPILER=OFF \
    -DINVAR_ISA=$instrumented "$optimized"
  if can_cross; then
    say "Build: the runtime for AArch64, to run under QEMU"
    configure_and_build aarch64 build/aarch64 "$for_aarch64" "${python[@]}" -DINVAR_ISA=$emulated \
      "$optimized"
    builds+=(aarch64=build/aarch64)
    say "Build: the program alone for s390x, which is big-endian; tests/checkpoint/test_cross.py runs it"
    configure_and_build s390x build/s390x invar -DINVAR_TESTS=OFF "$optimized"
  fi
  build_web
  configure_and_build web build/web invar_conformance
  if ((tier == 3)); then
    build_rest
  else
    local timed=("${builds[@]}")
    if can_cross; then timed+=(s390x=build/s390x); fi
    say "What the builds cost, by folder"
    python3 -B tools/test/build_time.py "${timed[@]}" --since build/log/speed/begin --speed build/log/speed ||
      { (($? != 3)) || costs_too_much=1; }  # any other code is a defect of the script, no cost
  fi
  python3 tools/test/merge_ctest.py build/everything "$tier" "${builds[@]}"
  run_ctest build/everything "${builds[@]#*=}"
  if ((tier == 3)); then run_rest; fi
  [[ -z $costs_too_much ]] || die 1 "the tests pass; the builds cost more than their budget (see above)"
}
# The speed of this machine while it builds: a line of `times` for one small file, compiled beside.
sample_speed() { # NAME of the phase
  [[ $1 == build-* ]] || return 0
  (c++ -std=c++20 -O2 -c tools/test/calibration.cc -o build/log/speed/calibration.o && times) 2>/dev/null |
    tail -n 1 >>"build/log/speed/$1" || true
}
# What tier 3 alone builds and runs: other instruction sets, the second compiler, hostile files.
build_rest() {
  if can_cross; then build_program_for riscv64 ppc64le clang; fi
  say "Build: the fuzzers of what reads files of strangers"
  configure_and_build fuzz build/fuzz invar_fuzzers
}
run_rest() {
  local reader fuzzed
  if can_cross; then
    say "Test: kernels and receipts on every instruction set and by the second compiler"
    phase evidence tools/evidence.sh --no-build --to build/evidence/kernels.md
  fi
  mapfile -t fuzzed < <(cut -f 1 build/fuzz/fuzz_targets.txt)
  say "Test: five minutes of damaged receipts, and of hostile files for each of ${fuzzed[*]}"
  phase fuzz-trust build/venv/bin/python -B tools/fuzz_trust.py 300
  for reader in "${fuzzed[@]}"; do phase "fuzz-$reader" tools/fuzz.sh "$reader" 5 "-fork=$jobs"; done
}
run_ctest() { # FOLDER [BUILD...]: the tests of the tier
  local folder=$1
  shift
  say "Test: tier $tier of ${*:-$folder}"
  # One more than there are cores: tests of lost workers and slow servers wait most of their time.
  INVAR_TIER=$tier ctest --test-dir "$folder" -L "tier$tier" --output-on-failure \
    --parallel $((jobs + 1))
}
