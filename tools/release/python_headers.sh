#!/usr/bin/env bash
# Fetches the headers of Debian 13's Python, for the module of the stable ABI (build.sh --abi3 auto).
#   tools/release/python_headers.sh FOLDER   unpacks them there and prints the two folders
# apt fetches and checks the package, from where this machine has Debian; nothing is installed.
set -euo pipefail
fail() { printf 'python_headers.sh: %s\n' "$*" >&2; exit 2; }
(($# == 1)) && [[ $1 != -* ]] || { sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 2; }
package=libpython3.13-dev suite=trixie
mkdir -p "$1"
folder=$(realpath -- "$1")
headers="$folder/usr/include/python3.13;$folder/usr/include"
if [[ ! -f ${headers%%;*}/Python.h ]]; then
  site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)
  [[ -n $site ]] || fail 'apt on this machine has no source'
  apt="$folder/apt"
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' "$site" "$suite" \
    >"$apt/sources.list"
  options=(-q -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
  cd "$folder"
  { apt-get "${options[@]}" update && apt-get "${options[@]}" download "$package"; } >"$apt/log" 2>&1 ||
    { tail -n 5 "$apt/log" >&2; fail "apt did not fetch $package of $suite"; }
  dpkg-deb --extract "$folder/$package"_*.deb "$folder"
fi
printf '%s\n' "$headers"
