#!/usr/bin/env bash
# Builds what the release artefacts of this machine's architecture hold, for every Linux with glibc
# 2.34 or newer, and lays it out in build-release/stage. wheel.sh, deb.sh and tarball.sh call it.
#   tools/release/build.sh [--jobs N] [--python EXE] [--abi3 FOLDERS] [--cuda NVCC [--gpus LIST]]
#   --jobs N      compile N files at once (default: the number of processors)
#   --python EXE  a Python of the wheel's version that has nanobind; by default an environment in
#                 build-release/venv, which pip installs nanobind into
#   --abi3 A;B    folders with Python.h and pyconfig.h of Python 3.12 or later: also a module for
#                 every Python from 3.12 on; auto: headers of Debian 13's, which packages.sh unpacks
#   --cuda NVCC   also kernels for every GPU from Turing on, by this compiler of CUDA 13: into
#                 build-release-cuda, as version X.Y.Z+cu13 of the wheels
#   --gpus A;B    kernels for these compute capabilities alone, as CMake writes them: 90 is also PTX
#                 for later ones, 90-real is not; version X.Y.Z+cu13.sm90
# Needs the packages of ./setup.sh deps. Build on Debian 12, the oldest system that has MLIR 19: a
# newer one asks for a newer glibc, and symbols.py says so.
set -euo pipefail
usage() { sed -n '2,15s/^# \{0,1\}//p' "$0"; }
fail() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 2; }

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# The time of every file in an artefact is that of the commit.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -c safe.directory="$root" -C "$root" log -1 --format=%ct)} ||
  fail 'this checkout has no commit: clone the repository'
export SOURCE_DATE_EPOCH
# One cache serves builds in every folder.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
version=$(sed -n 's/^project(invar VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
architecture=$(uname -m)

jobs=$(nproc) python='' abi3='' cuda='' gpus='' label=''
read_options() {
  while (($#)); do
    case $1 in
      --jobs | --python | --abi3 | --cuda | --gpus)
        (($# > 1)) || fail "$1 needs a value"
        printf -v "${1#--}" '%s' "$2"
        shift ;;
      -h | --help) usage; exit 0 ;;
      *) fail "unknown: $1; see --help" ;;
    esac
    shift
  done
}

choose_folders() {
  if [[ -n $gpus ]]; then
    [[ -n $cuda ]] || fail '--gpus needs --cuda'
    local one='[0-9]+(-real|-virtual)?'
    [[ $gpus =~ ^$one(\;$one)*$ ]] || fail "--gpus: $gpus is no list such as 80-real;90"
    label=.sm$(tr ';' '\n' <<<"$gpus" | sed 's/-.*//' | sort -nu | paste -sd . - | sed 's/\./.sm/g')
  fi
  if [[ -n $cuda ]]; then label=cu13$label; fi
  build="$root/build-release${cuda:+-cuda}"
  stage="$build/stage" dist="$build/dist"
  mkdir -p "$dist"
  if [[ $abi3 == auto ]]; then
    local headers="$build/headers"
    "$root/tools/release/packages.sh" "$headers" trixie "$(dpkg --print-architecture)" libpython3.13-dev
    abi3="$headers/usr/include/python3.13;$headers/usr/include"
  fi
  if [[ -n $python ]]; then return; fi
  python="$build/venv/bin/python"
  if [[ ! -x $python ]]; then
    python3 -m venv "$build/venv"
    "$python" -m pip -q install --disable-pip-version-check 'nanobind>=3.1,<4'
  fi
}

build_all() {
  local with_cuda=(-DINVAR_CUDA=OFF)
  if [[ -n $cuda ]]; then
    with_cuda=(-DINVAR_CUDA=ON "-DCMAKE_CUDA_COMPILER=$cuda" -DCMAKE_CUDA_FLAGS=--compress-mode=size)
  fi
  with_cuda+=(-UCMAKE_CUDA_ARCHITECTURES ${gpus:+"-DCMAKE_CUDA_ARCHITECTURES=$gpus"})
  cmake --preset release -S "$root" -B "$build" -DINVAR_UNITY=ON -DINVAR_TESTS=OFF -DINVAR_ISA=all \
    "${with_cuda[@]}" -DINVAR_PACKAGE=ON -DINVAR_PORTABLE=ON -DPython_EXECUTABLE="$python" \
    -DINVAR_ABI3_INCLUDE="$abi3" >"$build/configure.log" 2>&1 ||
    { tail -n 20 "$build/configure.log" >&2; fail 'cmake failed'; }
  local targets=(invar invar_python)
  if [[ -n $abi3 ]]; then targets+=(invar_python_abi3); fi
  cmake --build "$build" --target "${targets[@]}" --parallel "$jobs" >"$build/build.log" 2>&1 ||
    { tail -n 40 "$build/build.log" >&2; fail "the build failed; see $build/build.log"; }
}

# stage/program: PREFIX of an installation. stage/package: the Python package.
lay_out() {
  rm -rf "$stage"
  cmake --install "$build" --component program --prefix "$stage/program" --strip >"$build/install.log"
  cmake --install "$build" --component package --prefix "$stage/package" --strip >>"$build/install.log"
  if [[ -n $abi3 ]]; then
    cmake --install "$build" --component abi3 --prefix "$stage/abi3" --strip >>"$build/install.log"
  fi
  local model doc="$stage/program/share/doc/invar" models="$stage/program/share/invar/models"
  mkdir -p "$doc" "$models"
  for model in "$root"/models/*/; do  # those that are trained
    if compgen -G "$model*.safetensors" >/dev/null; then cp -r "$model" "$models/"; fi
  done
  cp "$root/LICENSE" "$root/README.md" "$root/CHANGELOG.md" "$doc/"
  python3 -B "$root/tools/release/components.py" "$build" "$doc" invar invar-tui invar_python
  provenance >"$doc/provenance.txt"
  find "$stage" -name __pycache__ -prune -exec rm -rf {} +
  python3 -B "$root/tools/release/symbols.py" "$stage"/program/bin/* "$stage"/package/invar/*.so*
  if [[ -n $abi3 ]]; then
    cp "$stage"/package/invar/libprotobuf-lite.so.* "$stage/abi3/invar/"
    python3 -B "$root/tools/release/symbols.py" "$stage"/abi3/invar/*.so*
  fi
  check_names "$stage"
}

# A name of a folder of this machine would be another one on the next.
check_names() { # FOLDER
  local folders=(-e "$root/") file
  if [[ -n ${HOME:-} && $HOME != / ]]; then folders+=(-e "$HOME/"); fi
  file=$(grep -rlaF "${folders[@]}" "$1" | head -n 1) || true
  [[ -z $file ]] || fail "$file has in it the name of a folder of this machine"
}

# What these files are made of and by what, for who builds them again.
provenance() { # [PREFIX of the compiler's and linker's names]
  local folders='in any folder'
  # nvcc names what is local to a file by a digest of the path.
  if [[ -n $cuda ]]; then folders='in a folder of the same path'; fi
  cat <<TEXT
Invar $version for Linux on $architecture, built from source.
commit    $(git -c safe.directory="$root" -C "$root" rev-parse HEAD)
command   tools/release/all.sh
system    $(. /etc/os-release && echo "$PRETTY_NAME")
compiler  $("${1:-}g++" --version | head -n 1)
linker    $("${1:-}ld" --version | head -n 1)
cmake     $(cmake --version | head -n 1)
python    $("$python" -c 'import platform; print(platform.python_version())')
packages  sbom.cdx.json has the versions
The same commit, packages and compiler give the same bytes $folders.
TEXT
}

# What every artefact begins with. all.sh does it once for all of them.
release() { # ARGUMENT...
  read_options "$@"
  choose_folders
  [[ -n ${RELEASE_IS_STAGED:-} ]] && return
  build_all
  lay_out
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then release "$@"; fi
