#!/usr/bin/env bash
# Sets up, builds, shows and tests Invar. `./setup.sh --help` says how. Needs bash, apt and Python 3;
# installs the rest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
root=$PWD

usage() {
  cat <<'TEXT'
Usage: ./setup.sh COMMAND [--jobs N] [--cuda auto|all|off] [--quick|--all]

  demo    install what is missing, build, run the shipped model and verify its receipt
  test    the same set-up with the test tools, then the tests; both say beforehand how long they take.
          --quick: one build, its unit tests and twenty journeys; --all: every test whole, on every
          instruction set and with fuzzers, as before a release; otherwise a sample by the commit of
          the longest (docs/design/tests.md)
  build   install what is missing and build build/bin/invar
  wheel   the Python package: install what is missing and build build/dist/invar-*.whl for this
          machine's python3
  deps    only install what is missing; `deps --list` prints the names and installs nothing
  web     the page that verifies receipts in a browser: build/web/invar-verify.html
  cross   what tools/evidence.sh needs: the packages of every instruction set and compiler, and the builds
  clean   remove build/, build-wheel/ and build-release/ (tools/release)

CUDA kernels need NVIDIA's compiler nvcc 13, which no command here installs. auto: they are built
for the GPUs of this machine, if both are here; all: for every GPU from Turing on, whatever is here
(many minutes). `test --cuda all` compiles them where no GPU can run them.

Works on Debian 12 and Ubuntu 24.04. Packages are installed with apt-get as root or through sudo,
and only those that are missing; where neither is possible the one line to run is printed and
nothing else happens. Everything built lies in build/ (the package also in build-wheel/). Every
command can be repeated: what is done is not done again.
TEXT
}

# --- what is needed -------------------------------------------------------------------------------
# compiler and build · MLIR 19 with its tools · static zlib and zstd for it ·
# ONNX's protobuf · the terminal interface · lines of `invar chat`, opened at run time · the headers
# of the server's HTTP
packages=(g++ cmake ninja-build ccache
  libmlir-19-dev mlir-19-tools llvm-19-dev llvm-19-tools libzstd-dev zlib1g-dev
  libonnx-dev protobuf-compiler libprotobuf-dev libssl-dev libncurses-dev libedit2 libboost-dev)
# workers in processes and on hosts
mpi_packages=(libopenmpi-dev openmpi-bin)
# the Python package
package_packages=(python3-dev python3-venv)
# unit tests · the oracle of the exp proof · Python tests · the same kernels on other architectures,
# one of them big-endian · libcurl, by the name that every release has for what needs it ·
# certificates to test with · a terminal to drive · the container image · groff reads the pages for man
# · where a server keeps receipts · what stands before it
test_packages=(libgtest-dev libgmock-dev libmpfr-dev curl openssl tmux buildah debootstrap groff-base
  libsqlite3-0 libpq5 postgresql nginx-light
  "${package_packages[@]}")
cross_packages=(qemu-user-static g++-aarch64-linux-gnu g++-s390x-linux-gnu)
# WebAssembly: compiler, linker, C and C++ libraries · what runs a module while the page is made
web_packages=(clang-19 lld-19 wasi-libc libc++-19-dev-wasm32 libclang-rt-19-dev-wasm32 nodejs)
# the browser that the page is tested in
browser_packages=(chromium)
# the instruction sets that only tools/evidence.sh goes through, and the second compiler
evidence_packages=(g++-riscv64-linux-gnu g++-powerpc64le-linux-gnu clang)
# clang's sanitizers and libFuzzer, for tools/fuzz.sh
fuzz_packages=(clang-19 libclang-rt-19-dev)

# --- saying what happens --------------------------------------------------------------------------
if [[ -t 1 ]]; then bold=$'\e[1m' dim=$'\e[2m' off=$'\e[0m'; else bold='' dim='' off=''; fi
say() { printf '%s\n' "$bold==>$off $*"; }
note() { printf '    %s\n' "$*"; }
die() { # CODE MESSAGE...
  local code=$1
  shift
  printf 'setup.sh: %s\n' "$*" >&2
  exit "$code"
}

# phase NAME COMMAND...: output into build/log/NAME.log, a sign of life every minute, the end of the
# log on failure. Where `beside` names a function, it is called as often, with NAME.
phase() {
  local name=$1 log="$root/build/log/$1.log" start=$SECONDS beat rc=0
  shift
  mkdir -p "$root/build/log"
  (while "${beside:-true}" "$name" && sleep 60 </dev/null >/dev/null 2>&1; do
    note "$dim$name, $((SECONDS - start)) s: $(tail -n 1 "$log" 2>/dev/null | cut -c 1-90)$off"
  done) &
  beat=$!
  # shellcheck disable=SC2064
  trap "kill $beat 2>/dev/null" EXIT
  "$@" >"$log" 2>&1 || rc=$?
  kill "$beat" 2>/dev/null || true
  trap - EXIT
  wait "$beat" 2>/dev/null || true
  if ((rc)); then
    tail -n 40 "$log" >&2
    die 1 "$name failed (exit $rc); the whole log: build/log/$name.log"
  fi
  note "$name: done in $((SECONDS - start)) s"
}

# --- packages -------------------------------------------------------------------------------------
missing_of() { # PACKAGE...: those that are not installed
  local p
  for p in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null) == installed ]] || printf '%s\n' "$p"
  done
}

system() {
  local id='' version=''
  # shellcheck disable=SC1091
  [[ -r /etc/os-release ]] && {
    id=$(. /etc/os-release && echo "${ID:-}")
    version=$(. /etc/os-release && echo "${VERSION_ID:-}")
  }
  printf '%s %s' "$id" "$version"
}

as_root() { if ((EUID == 0)); then "$@"; else sudo "$@"; fi; }
apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@"
}
apt_install() { # refreshes the lists only where they do not know a package or are too old to serve it
  local p
  for p in "$@"; do
    apt-cache show "$p" >/dev/null 2>&1 || { apt_get update; break; }
  done
  apt_get install --no-install-recommends "$@" ||
    { apt_get update && apt_get install --no-install-recommends "$@"; }
}

may_install() {
  ((EUID == 0)) && return 0
  command -v sudo >/dev/null || return 1
  sudo -n true 2>/dev/null && return 0
  [[ -t 0 ]] && sudo -v
}

install_packages() { # PACKAGE...
  local wanted=("$@") missing=()
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
    die 2 "this system has no apt; install what these Debian packages contain, then use \
cmake --preset release: ${wanted[*]}"
  mapfile -t missing < <(missing_of "${wanted[@]}")
  if ((${#missing[@]} == 0)); then
    say "Packages: all ${#wanted[@]} are here"
  else
    case $(system) in
      'debian 12' | 'debian 13' | 'ubuntu 24.04') ;;
      *) note "this is $(system); the package names are those of Debian 12" ;;
    esac
    say "Packages: installing ${#missing[@]} of ${#wanted[@]}: ${missing[*]}"
    if ! may_install; then
      printf 'setup.sh: not root, and sudo is not possible here; run this, then repeat:\n' >&2
      printf 'apt-get update && apt-get install -y --no-install-recommends %s\n' "${missing[*]}" >&2
      exit 2
    fi
    phase packages apt_install "${missing[@]}"
    mapfile -t missing < <(missing_of "${wanted[@]}")
    ((${#missing[@]} == 0)) || die 2 "apt-get ended well, yet these are not installed: ${missing[*]}"
  fi
  # Another LLVM's development files displace these without failing, so look at what is really there.
  local tblgen="/usr/lib/llvm-19/bin/mlir-tblgen"
  [[ -x $tblgen ]] || die 2 "$tblgen is missing although mlir-19-tools is installed; reinstall mlir-19-tools"
  "$tblgen" --version | grep -q 'version 19\.' || die 2 "$tblgen is not version 19; reinstall mlir-19-tools"
}

test_list() {
  printf '%s\n' "${packages[@]}" "${mpi_packages[@]}" "${test_packages[@]}" "${web_packages[@]}"
  # Ubuntu's package chromium is a snap, which opens no files of a test.
  [[ $(system) == ubuntu* ]] || printf '%s\n' "${browser_packages[@]}"
  if can_cross; then printf '%s\n' "${cross_packages[@]}"; fi
  if ((tier == 3)); then
    printf '%s\n' "${fuzz_packages[@]}"
    if can_cross; then printf '%s\n' "${evidence_packages[@]}"; fi
  fi
}
can_cross() { [[ $(dpkg --print-architecture 2>/dev/null) == amd64 ]]; }

# --- building -------------------------------------------------------------------------------------
jobs=''
count_jobs() { # one per core, and about 1.2 GB of memory for each
  [[ -n $jobs ]] && return
  local cores kb limit
  cores=$(nproc)
  kb=$(awk '/^MemAvailable/ {print $2}' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
  if [[ $limit =~ ^[0-9]+$ ]] && ((limit / 1024 < kb)); then kb=$((limit / 1024)); fi
  jobs=$((kb / 1200000))
  if ((jobs > cores)); then jobs=$cores; fi
  if ((jobs < 1)); then jobs=1; fi
}

prepare_build_folder() {
  mkdir -p build 2>/dev/null && [[ -w build ]] || die 2 "cannot write to build/ in $root"
  # A cache made under another name of this folder is refused by CMake; it holds nothing worth keeping.
  local cache was
  for cache in build/CMakeCache.txt build/*/CMakeCache.txt; do
    [[ -f $cache ]] || continue
    was=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$cache")
    if [[ $was != "$root" ]]; then
      note "this folder was moved: starting ${cache%/*} anew"
      rm -rf "$cache" "${cache%/*}/CMakeFiles"
    fi
  done
  # Compiler output is reused between folders and checkouts; where the home folder cannot hold it,
  # build/ does.
  export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
  cache=${HOME:+$HOME/.cache/ccache}
  if [[ -z ${CCACHE_DIR:-} ]] &&
    ! { [[ -n $cache ]] && mkdir -p "$cache" 2>/dev/null && [[ -w $cache ]]; }; then
    export CCACHE_DIR="$root/build/ccache"
  fi
}

configure_and_build() { # PRESET FOLDER "TARGET..." [-DOPTION...]; in batches: see CONTRIBUTING.md
  local preset=$1 folder=$2 targets
  read -ra targets <<<"$3"
  shift 3
  phase "configure-$preset" cmake --preset "$preset" -DINVAR_UNITY=ON "$@"
  phase "build-$preset" cmake --build "$folder" --target "${targets[@]}" --parallel "$jobs"
}

# Where nvcc 13 is: on the PATH or where its packages put it. Nothing: it is not here.
find_nvcc() {
  local nvcc version
  nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) || return 0
  version=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
  if ((${version:-0} >= 13)); then
    printf '%s' "$nvcc"
  else
    note "$nvcc is too old: CUDA kernels need version 13" >&2
  fi
}
gpus() { # compute capabilities of the GPUs here, as CMake writes them
  { nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null || true; } |
    tr -d . | sed -n '/^[0-9][0-9]*$/p' | sort -u | paste -sd ';' -
}
# options_of_cuda: sets `with_cuda`, options for CMake.
options_of_cuda() {
  local nvcc here
  nvcc=$(find_nvcc)
  here=$(gpus)
  with_cuda=(-DINVAR_CUDA=OFF)
  [[ $cuda == off ]] && return
  if [[ -z $nvcc ]]; then
    [[ $cuda == all ]] &&
      die 2 "--cuda all needs NVIDIA's compiler nvcc 13; install its toolkit, or leave --cuda out"
    if [[ -n $here ]]; then note "there is a GPU, but no nvcc 13: built for the CPU alone"; fi
    return
  fi
  local target=$here
  if [[ $cuda == all ]]; then
    target=''
  elif [[ -z $here ]]; then
    note "nvcc is here, but no GPU: built for the CPU alone (--cuda all builds for every GPU)"
    return
  fi
  with_cuda=(-DINVAR_CUDA=ON "-DCMAKE_CUDA_COMPILER=$nvcc")
  if [[ -n $target ]]; then
    with_cuda+=("-DCMAKE_CUDA_ARCHITECTURES=$target")
  else
    with_cuda+=(-UCMAKE_CUDA_ARCHITECTURES)
  fi
}

# build_program [native]: native: kernels for this processor alone, unless the build folder has all of them.
build_program() {
  local options=(-DINVAR_ISA=all)
  if [[ ${1:-} == native ]] &&
    { [[ ! -f build/CMakeCache.txt ]] || grep -qs '^INVAR_ISA:STRING=native' build/CMakeCache.txt; }; then
    options=(-DINVAR_ISA=native)
    note "kernels for this processor alone; ./setup.sh build adds those for others"
  fi
  # The demo needs no test tools; a build folder that has them keeps them.
  grep -qs '^INVAR_TESTS:BOOL=ON' build/CMakeCache.txt || options+=(-DINVAR_TESTS=OFF)
  say "Build: build/bin/invar, $jobs at a time (minutes the first time)"
  options_of_cuda
  configure_and_build release build invar "${options[@]}" "${with_cuda[@]}"
}

build_program_for() { # PRESET...
  local preset
  say "Build: the program for $*"
  for preset in "$@"; do
    configure_and_build "$preset" "build/$preset" invar -DINVAR_TESTS=OFF -DINVAR_ISA=all \
      -DINVAR_OPTIMIZE=all
  done
}

# The page that verifies receipts in a browser. It knows the plans of the models that ship, which
# build/bin/invar compiles.
build_web() {
  local verifier=build/web/bin/invar_verifier.wasm known=build/web/known_plans.txt
  say "Build: the verifier for browsers, $jobs at a time"
  configure_and_build web build/web invar_verifier -DINVAR_TESTS=OFF
  phase plans apps/web/known_plans.sh build/bin/invar "$verifier" "$known"
  configure_and_build web build/web invar_page "-DINVAR_KNOWN_PLANS=$root/$known"
  say "build/web/invar-verify.html: open it in a browser, or put it on any server"
}

# What compiles the package is installed by pip into an environment of its own; the compiler's cache,
# which goes by its name, knows most of it already.
build_wheel() {
  install_packages "${packages[@]}" "${package_packages[@]}"
  count_jobs
  prepare_build_folder
  [[ -x build/wheel-venv/bin/python ]] || phase wheel-venv python3 -m venv build/wheel-venv
  say "Build: the Python package, $jobs at a time (minutes the first time)"
  options_of_cuda
  local option settings=()
  for option in "${with_cuda[@]}"; do
    case $option in
      -D*) settings+=("--config-settings=cmake.define.${option#-D}") ;;
      -U*) sed -i "/^${option#-U}:/d" build-wheel/CMakeCache.txt 2>/dev/null || true ;;
    esac
  done
  CXX=c++ CMAKE_BUILD_PARALLEL_LEVEL=$jobs phase wheel build/wheel-venv/bin/python -m pip wheel \
    --disable-pip-version-check --no-deps "${settings[@]}" -w build/dist .
  say "$(ls -t build/dist/invar-*.whl | head -n 1): install it with python3 -m pip install"
}

# --- commands -------------------------------------------------------------------------------------
# Processor seconds of the builds with an empty compiler cache, and of what follows them, on an EPYC
# core: a cold demo took 549 and 290 s of wall time, a cold test 2,500 and 1,200 of these.
demo_seconds=(560 1)
quick_seconds=(950 200)
test_seconds=(2400 1200)
# announce MADE BUILD REST: how long the command takes. MADE: a file that the last build step makes.
announce() {
  local minutes=$((($2 + $3) / jobs / 60 + 1)) rest=$(($3 / jobs / 60 + 1))
  if [[ -e $1 ]]; then
    say "Time: about $rest min, and up to $minutes min if much has changed ($jobs at a time)"
  else
    say "Time: about $minutes min with an empty compiler cache ($jobs at a time); $rest min with a full one"
  fi
}

show() { printf '%s\n' "$dim\$ $*$off"; "$@"; }

demo() {
  count_jobs
  announce build/bin/invar "${demo_seconds[@]}"
  install_packages "${packages[@]}"
  prepare_build_folder
  build_program native
  mkdir -p build/demo
  say "Run: the shipped model, a 4.2 M parameter Llama trained on Shakespeare"
  local start=$EPOCHREALTIME
  show build/bin/invar run --model-name models/shakespeare-4m --prompt-text "ROMEO:" --max-new-tokens 64 \
    --receipt-path build/demo/receipt.json
  note "$(elapsed "$start") s"
  say "Verify: the same computation again, every step compared with the receipt"
  start=$EPOCHREALTIME
  show build/bin/invar verify build/demo/receipt.json
  note "$(elapsed "$start") s"
  say "Take build/demo/receipt.json to any other machine with this model: it verifies there too," \
    "or says where it parts."
}
elapsed() { # START: seconds since then, in milliseconds
  local us=$((${EPOCHREALTIME//[^0-9]/} - ${1//[^0-9]/}))
  printf '%d.%03d' $((us / 1000000)) $((us / 1000 % 1000))
}

# shellcheck source=tools/test/run.sh
. tools/test/run.sh

command=''
list=''
cuda=auto
tier=2
while (($#)); do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --jobs) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die 2 "--jobs needs a number"; jobs=$2; shift ;;
    --cuda) [[ ${2:-} =~ ^(auto|all|off)$ ]] || die 2 "--cuda needs auto, all or off"; cuda=$2; shift ;;
    --list) list=1 ;;
    --quick) tier=1 ;;
    --all) tier=3 ;;
    demo | test | build | wheel | web | deps | cross | clean)
      [[ -z $command ]] || die 2 "one command at a time; see --help"
      command=$1 ;;
    *) die 2 "unknown: $1; see ./setup.sh --help" ;;
  esac
  shift
done
((tier == 2)) || [[ $command == test ]] || die 2 "--quick and --all are options of test"
case $command in
  demo) demo ;;
  test) run_tests ;;
  build)
    install_packages "${packages[@]}" "${mpi_packages[@]}"
    count_jobs
    prepare_build_folder
    build_program ;;
  wheel) build_wheel ;;
  web)
    install_packages "${packages[@]}" "${web_packages[@]}"
    count_jobs
    prepare_build_folder
    build_program native
    build_web ;;
  deps)
    if [[ -n $list ]]; then
      mapfile -t all < <(test_list)
      printf '%s\n' "${all[*]}"
    else
      mapfile -t all < <(test_list)
      install_packages "${all[@]}"
    fi ;;
  cross)
    can_cross || die 2 "cross builds are made on x86-64 only"
    mapfile -t all < <(test_list)
    install_packages "${all[@]}" "${evidence_packages[@]}"
    count_jobs
    prepare_build_folder
    build_program
    build_program_for aarch64 s390x riscv64 ppc64le clang ;;
  clean)
    rm -rf build build-wheel build-release build-release-cuda
    say "build/, build-wheel/ and build-release/ are gone" ;;
  '') usage; exit 2 ;;
esac
