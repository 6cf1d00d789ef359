#!/usr/bin/env bash
# Tries the artefacts of a release in a fresh system without a compiler: installs each, runs the
# shipped model, verifies the receipt, asks a server, and removes it again. An archive of another
# processor runs under QEMU, where that is installed.
#   tools/release/smoke_test.sh [--suite NAME] [--mirror URL] [FOLDER]
#   --suite NAME   the release that debootstrap makes (default: this machine's)
#   --mirror URL   where it is (default: the first source of this machine's apt): on Debian that of
#                  Ubuntu for `--suite noble`
#   FOLDER         of the artefacts (default: build-release/dist)
# Needs root and debootstrap. Packages come from where this machine's apt has them, and numpy for
# the wheel from where its pip has it.
set -euo pipefail
usage() { sed -n '2,11s/^# \{0,1\}//p' "$0"; }
fail() { printf 'smoke_test.sh: %s\n' "$*" >&2; exit 2; }

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}") folder="$root/build-release/dist" mirror=''
while (($#)); do
  case $1 in
    --suite | --mirror)
      (($# > 1)) || fail "$1 needs a value"
      printf -v "${1#--}" '%s' "$2"
      shift ;;
    -h | --help) usage; exit 0 ;;
    -*) fail "unknown: $1; see --help" ;;
    *) folder=$1 ;;
  esac
  shift
done
((EUID == 0)) || fail 'debootstrap needs root'
command -v debootstrap >/dev/null || fail 'debootstrap is missing; apt-get install debootstrap'
folder=$(realpath -- "$folder")
wrong() { # MESSAGE: after what the last command printed
  tail -n 20 "$work/log" >&2
  fail "$*"
}
[[ $mirror ]] || mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)
[[ -n $mirror ]] || fail 'apt on this machine has no source'

# --- a system -------------------------------------------------------------------------------------
work=$(mktemp -d)
system="$work/system"
finish() {
  if mountpoint -q "$system/proc"; then umount "$system/proc"; fi
  rm -rf "$work"
}
trap finish EXIT
saved="$root/build-release/$suite.tar"
if [[ ! -f $saved ]]; then
  mkdir -p "${saved%/*}"
  options=(--variant=minbase --include=python3,python3-venv,ca-certificates,curl)
  if [[ $mirror == *ubuntu* ]]; then options+=(--components=main,universe); fi  # python3-venv
  debootstrap "${options[@]}" "$suite" "$system" "$mirror" >"$work/log" 2>&1 || wrong 'debootstrap failed'
  tar -C "$system" --exclude='./dev/*' -cf "$saved.part" . && mv "$saved.part" "$saved"
fi
fresh() {
  finish
  mkdir -p "$system" && tar -C "$system" -xf "$saved"
  mount -t proc proc "$system/proc"
  [[ -e $system/dev/null ]] || mknod -m 666 "$system/dev/null" c 1 3
  [[ -e $system/dev/urandom ]] || mknod -m 666 "$system/dev/urandom" c 1 9
  mkdir "$system/artefacts" && cp "$folder"/* "$system/artefacts/"
}
other=''  # the processor of an archive that QEMU runs, on this machine with that one's C library
inside() { # COMMAND...: as a person who has just logged in
  local person=(env -i LANG=C.UTF-8 PATH="${path:-}/usr/sbin:/usr/bin:/sbin:/bin")
  if [[ $other ]]; then
    "${person[@]}" HOME="$work/home" QEMU_LD_PREFIX="/usr/$other-linux-gnu" "$@"
  else
    "${person[@]}" HOME=/root chroot "$system" "$@"
  fi
}
python_packages() { # numpy as pip has it here; the fresh system has no network of its own
  local python=python3 made
  for made in "$root"/build{-release,}/venv/bin/python; do  # a system's own Python may have no pip
    if [[ -x $made ]]; then python=$made; fi
  done
  mkdir -p "$work/numpy"
  "$python" -m pip -q download --disable-pip-version-check --only-binary=:all: --no-deps -d "$work/numpy" \
    --python-version "$1" --implementation cp 'numpy>=2' 2>/dev/null ||
    fail "pip has no numpy for Python $1"
  cp -r "$work/numpy" "$system/numpy"
}

# --- a newcomer's journey -------------------------------------------------------------------------
journey() { # NAME
  local answer start=$SECONDS
  inside sh -ec 'mkdir -p ~/work && cd ~/work
    invar run --model-name shakespeare-4m --prompt-text "ROMEO:" --max-new-tokens 64 --receipt-path r.json
    rm -rf ~/.cache ~/.local
    invar verify r.json' >"$work/log" 2>&1 || wrong "$1: the journey failed"
  grep -q '^VERIFIED' "$work/log" || wrong "$1: not verified"
  answer=$(sed -n 's/^  hash *//p' "$work/log")
  inside sh -ec 'cd ~/work
    invar serve --model-name shakespeare-4m --port 18765 >serve.log 2>&1 & server=$!
    for i in $(seq 300); do curl -fs http://127.0.0.1:18765/ready && break; sleep 0.1; done
    curl -fsS http://127.0.0.1:18765/v1/completions -H "content-type: application/json" \
      -d "{\"model\": \"shakespeare-4m\", \"prompt\": \"ROMEO:\", \"max_tokens\": 8}"
    kill $server; wait $server' >"$work/log" 2>&1 || wrong "$1: the server failed"
  grep -q '"text_completion"' "$work/log" || wrong "$1: no answer of the server"
  printf '%-10s %-10s %s (%d s)\n' "${other:-$suite}" "$1" "$answer" $((SECONDS - start))
}
gone() { # NAME
  ! inside sh -c 'command -v invar' >/dev/null || fail "$1: invar is still there after it was removed"
}

for deb in "$folder"/*_"$(dpkg --print-architecture)".deb; do
  [[ -e $deb ]] || continue
  fresh
  inside dpkg -i "/artefacts/${deb##*/}" >"$work/log" 2>&1 || wrong 'dpkg -i failed'
  journey deb
  inside dpkg --purge invar >"$work/log" 2>&1 || wrong 'dpkg --purge failed'
  gone deb
done
for archive in "$folder"/invar-*-linux-"$(uname -m)".tar.xz; do
  [[ -e $archive ]] || continue
  fresh
  tar -C "$system/opt" -xf "$archive"
  path=/opt/$(basename "$archive" .tar.xz)/bin: journey archive
done
for archive in "$folder"/invar-*-linux-*.tar.xz; do
  other=${archive##*-linux-} other=${other%.tar.xz}
  [[ $other != "$(uname -m)" ]] && command -v "qemu-$other-static" >/dev/null || continue
  finish
  mkdir -p "$work/home" "$work/bin"
  tar -C "$work" -xf "$archive"
  # QEMU runs the program, and the program is what it calls by its own name.
  printf '#!/bin/sh\nexec qemu-%s-static "%s" "$@"\n' "$other" \
    "$work/$(basename "$archive" .tar.xz)/bin/invar" >"$work/bin/invar"
  chmod +x "$work/bin/invar"
  path="$work/bin:" journey archive
done
other=''
fresh
python=$(inside python3 -c 'import sys; print("%d%d" % sys.version_info[:2])')
for wheel in "$folder"/invar-*-cp"$python"-*.whl "$folder"/invar-*-abi3-*.whl; do
  [[ -e $wheel && ! ( $wheel == *-abi3-* && $python -lt 312 ) ]] || continue
  python_packages "${python:0:1}.${python:1}"
  inside sh -ec 'python3 -m venv /opt/venv
    /opt/venv/bin/pip -q install --no-index --find-links /numpy "$0"' "/artefacts/${wheel##*/}" ||
    fail "${wheel##*/}: pip did not install it"
  path=/opt/venv/bin: journey wheel
  inside /opt/venv/bin/python -c 'import invar, numpy
x = numpy.arange(8, dtype=numpy.float32)
assert invar.ops.softmax(x, dim=-1).shape == (8,)'
  inside /opt/venv/bin/pip -q uninstall -y invar
  path=/opt/venv/bin: gone wheel
  break
done
