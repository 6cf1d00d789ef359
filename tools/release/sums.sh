#!/usr/bin/env bash
# build-release/dist/SHA256SUMS, of every artefact there, and its Ed25519 signature.
#   tools/release/sums.sh [--key FILE] [FOLDER]
#   --key FILE   a private key of `invar keygen`: also writes SHA256SUMS.sig and SHA256SUMS.pub
#   FOLDER       of the artefacts (default: build-release/dist)
# Who downloads them checks with
#   openssl pkeyutl -verify -pubin -inkey SHA256SUMS.pub -rawin -in SHA256SUMS -sigfile SHA256SUMS.sig
#   sha256sum --check SHA256SUMS
# and compares SHA256SUMS.pub with the key that the project publishes.
set -euo pipefail
usage() { sed -n '2,9s/^# \{0,1\}//p' "$0"; }
fail() { printf 'sums.sh: %s\n' "$*" >&2; exit 2; }

folder="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build-release/dist" key=''
while (($#)); do
  case $1 in
    --key) (($# > 1)) || fail '--key needs a file'; key=$(realpath -- "$2"); shift ;;
    -h | --help) usage; exit 0 ;;
    -*) fail "unknown: $1; see --help" ;;
    *) folder=$1 ;;
  esac
  shift
done
cd -- "$folder" 2>/dev/null || fail "$folder: no such folder; tools/release/all.sh makes it"
mapfile -t files < <(find . -maxdepth 1 -type f ! -name 'SHA256SUMS*' -printf '%f\n' | LC_ALL=C sort)
((${#files[@]})) || fail "$folder holds no artefacts; tools/release/all.sh makes them"
sha256sum -- "${files[@]}" >SHA256SUMS
rm -f SHA256SUMS.sig SHA256SUMS.pub  # of other sums
if [[ -n $key ]]; then
  openssl pkey -in "$key" -pubout -out SHA256SUMS.pub || fail "$key: not a private key of invar keygen"
  openssl pkeyutl -sign -rawin -inkey "$key" -in SHA256SUMS -out SHA256SUMS.sig
fi
printf '%s\n' "$PWD/SHA256SUMS"
