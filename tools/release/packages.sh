#!/usr/bin/env bash
# Unpacks packages of Debian in a folder: apt fetches and checks them, from where this machine has
# Debian, and nothing is installed here.
#   tools/release/packages.sh FOLDER SUITE ARCHITECTURE PACKAGE...
# `dpkg --admindir=FOLDER/var/lib/dpkg -S FILE` says which package a file is of.
set -euo pipefail
fail() { printf 'packages.sh: %s\n' "$*" >&2; exit 2; }
(($# > 3)) && [[ $1 != -* ]] || { sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 2; }
suite=$2 architecture=$3
mkdir -p "$1"
folder=$(realpath -- "$1")
shift 3
asked="$suite $architecture $*"
if [[ $(cat "$folder/unpacked" 2>/dev/null) == "$asked" ]]; then exit; fi
find "$folder" -mindepth 1 -delete

apt="$folder/apt"
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$folder/var/lib/dpkg/"{info,updates}
targets=(indextargets --format '$(SITE) $(LABEL)' 'Created-By: Packages' 'Origin: Debian')
signed='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'
apt-get "${targets[@]}" | sort -u | while read -r site label; do
  case $label in
    Debian) printf 'deb %s %s %s main\n' "$signed" "$site" "$suite" ;;
    Debian-Security) printf 'deb %s %s %s-security main\n' "$signed" "$site" "$suite" ;;
  esac
done >"$apt/sources.list"
[[ -s $apt/sources.list ]] || fail 'apt on this machine has no source of Debian; run apt-get update'
options=(-q -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
  -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root
  -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture")
wrong() { # MESSAGE: after what the last command printed
  tail -n 5 "$apt/log" >&2
  fail "$*"
}
(cd "$apt" && apt-get "${options[@]}" update && apt-get "${options[@]}" download "$@") >"$apt/log" 2>&1 ||
  wrong "apt did not fetch $* of $suite"
touch "$folder/var/lib/dpkg/status"
dpkg --root="$folder" --force-architecture --force-depends --unpack "$apt"/*.deb >"$apt/log" 2>&1 ||
  wrong 'dpkg did not unpack them'
rm -r "$apt"
echo "$asked" >"$folder/unpacked"
