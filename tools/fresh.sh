#!/usr/bin/env bash
# Runs a command of this checkout on a fresh Debian, in a chroot made with debootstrap: what a
# newcomer meets.
#   tools/fresh.sh [OPTION...] -- ./setup.sh demo
#   [--suite bookworm] [--mirror URL] [--as root|sudoer|user] [--dir FOLDER] [--keep]
# --as sudoer: an ordinary user with sudo; --as user: one without. Needs root and debootstrap. The
# mirror (unless given, for another distribution), the certificates and pip's settings are those of
# this machine. The checkout (tracked and new files, not build/) is copied to a folder with a space
# in its name. FOLDER (default: under TMPDIR) keeps the bare system between runs.
set -euo pipefail
suite=bookworm as=root keep='' mirror='' dir="${TMPDIR:-/tmp}/invar-fresh"
while (($#)); do
  case $1 in
    --suite) suite=$2; shift ;;
    --mirror) mirror=$2; shift ;;
    --as) as=$2; shift ;;
    --dir) dir=$2; shift ;;
    --keep) keep=1 ;;
    --) shift; break ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
  shift
done
(($#)) || { echo 'fresh.sh: a command is missing; see its first lines' >&2; exit 2; }
((EUID == 0)) || { echo 'fresh.sh: needs root' >&2; exit 2; }
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
base="$dir/$suite" root="$dir/run"

targets() {
  local columns='$(SITE) $(RELEASE) $(COMPONENT) $(ORIGIN)'
  apt-get indextargets --format "$columns" 'Created-By: Packages' | sort -u
}
if [[ ! -f $base.ready ]]; then
  from=${mirror:-$(targets | awk -v s="$suite" '$2 == s {print $1; exit}')}
  [[ -n $from ]] || {
    echo "fresh.sh: apt on this machine has no source for $suite; pass --mirror" >&2
    exit 2
  }
  rm -rf "$base" && mkdir -p "$base"
  debootstrap --variant=minbase --include=ca-certificates,python3 \
    "$suite" "$base" "$from" >"$dir/debootstrap.log"
  touch "$base.ready"
fi

cleanup() {
  local m
  for m in dev/shm dev proc sys; do umount -l "$root/$m" 2>/dev/null || true; done
  if [[ -z $keep ]]; then rm -rf --one-file-system "$root"; fi
}
[[ -d $root ]] && keep='' cleanup
[[ ${keep:-} ]] || trap cleanup EXIT
mkdir -p "$root" && cp -a --reflink=auto "$base/." "$root/"
mount --bind /dev "$root/dev" && mount -t tmpfs tmpfs "$root/dev/shm" && mount -t proc proc "$root/proc"

# This machine's way to its mirror: sources of the same distribution, settings, names, certificates, pip.
if [[ -z $mirror ]]; then
  targets | awk '$4 == "Debian" || $4 == "Ubuntu" {print "deb", $1, $2, $3}' >"$root/etc/apt/sources.list"
fi
for f in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt /etc/pip.conf; do
  if [[ -f $f ]]; then cp -L "$f" "$root$f"; fi
done
apt-config dump | grep -E '^Acquire::(Check|http|https|ForceIPv)' \
  >"$root/etc/apt/apt.conf.d/99machine" || true
settings=(LANG=C.UTF-8)
while IFS= read -r pair; do
  settings+=("$pair")
done < <(env | grep -E '^(PIP_|https?_proxy|no_proxy)' || true)
for f in $(env | sed -n 's/^PIP_FIND_LINKS=//p'); do
  if [[ -d $f ]]; then mkdir -p "$root$f" && cp -a "$f/." "$root$f/"; fi
done

home=/root
if [[ $as != root ]]; then
  home=/home/visitor
  chroot "$root" useradd -m -s /bin/bash visitor
  if [[ $as == sudoer ]]; then
    chroot "$root" sh -c \
      'apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y install sudo' \
      >"$dir/sudo.log" 2>&1
    echo 'visitor ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/visitor"
  fi
fi
place="$home/a new folder/invar"
mkdir -p "$root$place"
checkout() { # as an archive: tracked and new files
  cd "$source" && git -c safe.directory="$source" ls-files -co --exclude-standard -z |
    tar --null --ignore-failed-read -T - -cf -
}
(checkout) | tar -xf - -C "$root$place"
user=root
if [[ $as != root ]]; then user=visitor; chroot "$root" chown -R visitor: "$home"; fi
printf 'fresh.sh: %s on %s as %s in "%s"\n' "$*" "$suite" "$as" "$place"
start=$SECONDS rc=0
chroot "$root" su -s /bin/bash -c 'cd "$0" && exec env "$@"' -- \
  "$user" "$place" "${settings[@]}" "$@" </dev/null || rc=$?
printf 'fresh.sh: exit %s after %s s\n' "$rc" "$((SECONDS - start))"
exit "$rc"
