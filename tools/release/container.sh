#!/usr/bin/env bash
# Builds the container image of Invar with buildah: no Docker, no daemon.
#   tools/release/container.sh [--base IMAGE] [--binary FILE] [--tag NAME] [--output FILE]
#   --base ubuntu:24.04   the image to start from (default), pulled by buildah
#   --base bootstrap[:SUITE]  a system that debootstrap makes from this machine's apt sources;
#                         SUITE is this machine's release unless given. Needs root, no registry
#   --binary FILE         the program (default: build/bin/invar of ./setup.sh build)
#   --tag NAME            name of the image (default: invar)
#   --output FILE         also write the image as an OCI archive, for `podman load` or `skopeo`
# The image: the program as entry point, user invar (not root), the shipped models in
# /usr/share/invar/models, /cache as the volume of exports, plans and downloads. Equal base and
# program give an equal image: its times are those of the commit.
set -euo pipefail
usage() { sed -n '2,13s/^# \{0,1\}//p' "$0"; }
fail() { printf 'container.sh: %s\n' "$*" >&2; exit 2; }

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
base=ubuntu:24.04 binary="$root/build/bin/invar" tag=invar output=''
given=("$@")
while (($#)); do
  case $1 in
    --base | --binary | --tag | --output)
      (($# > 1)) || fail "$1 needs a value"
      printf -v "${1#--}" '%s' "$2"
      shift ;;
    -h | --help) usage; exit 0 ;;
    *) fail "unknown: $1; see --help" ;;
  esac
  shift
done
command -v buildah >/dev/null || fail 'buildah is missing; apt-get install buildah'
[[ -x $binary ]] || fail "$binary is missing; ./setup.sh build makes it"
if ((EUID != 0)); then
  [[ $base != bootstrap* ]] || fail '--base bootstrap needs root; debootstrap makes devices'
  exec buildah unshare "$0" "${given[@]}"
fi

folder="$root/build/container"
mkdir -p "$folder"
epoch=$(git -c safe.directory="$root" -C "$root" log -1 --format=%ct 2>/dev/null || echo 0)
# What every base gets: certificates, libcurl (by the package that brings it on every release), and
# what a server keeps receipts with.
added=(ca-certificates curl libsqlite3-0 libpq5)

# --- the base -------------------------------------------------------------------------------------
# Files that only say when and how the system was made.
clean_system() { # FOLDER
  rm -rf "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/* "$1"/var/log/* "$1"/var/cache/ldconfig \
    "$1"/var/cache/debconf/* "$1"/etc/machine-id "$1"/tmp/* "$1"/debootstrap
}
bootstrapped() { # SUITE: the archive of a small system, made once
  local suite=$1 made="$folder/$1.tar" from
  if [[ ! -f $made ]]; then
    command -v debootstrap >/dev/null || fail 'debootstrap is missing; apt-get install debootstrap'
    from=$(apt-get indextargets --format '$(RELEASE) $(SITE)' 'Created-By: Packages' |
      awk -v s="$suite" '$1 == s {print $2; exit}')
    [[ -n $from ]] || fail "apt on this machine has no source for $suite"
    rm -rf "$folder/$suite"
    debootstrap --variant=minbase --include="$(IFS=,; echo "${added[*]}")" "$suite" \
      "$folder/$suite" "$from" >"$folder/debootstrap.log" 2>&1 ||
      fail "debootstrap failed; see $folder/debootstrap.log"
    rm -f "$folder/$suite/etc/apt/sources.list"  # this machine's mirror is nobody else's
    clean_system "$folder/$suite"
    tar -C "$folder/$suite" --sort=name --exclude='./dev/*' -cf "$made.part" . && mv "$made.part" "$made"
    rm -rf "$folder/$suite"
  fi >&2
  printf '%s' "$made"
}
isolation=(--isolation chroot)
case $base in
  bootstrap | bootstrap:*)
    suite=${base#bootstrap} suite=${suite#:}
    [[ -n $suite ]] || suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    archive=$(bootstrapped "$suite")
    container=$(buildah from scratch) ;;
  *)
    container=$(buildah from "$base" 2>"$folder/pull.log") ||
      fail "cannot pull $base: $(tail -n 1 "$folder/pull.log"); --base bootstrap needs no registry" ;;
esac
trap 'buildah rm "$container" >/dev/null' EXIT
tree=$(buildah mount "$container")
if [[ -n ${archive:-} ]]; then
  tar -C "$tree" -xf "$archive"
else
  printf 'container.sh: packages of %s: %s\n' "$base" "${added[*]}" >&2
  buildah run --user root "${isolation[@]}" "$container" -- sh -c "apt-get -q update && \
    DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends ${added[*]}" \
    >"$folder/packages.log" 2>&1 || fail "apt-get failed; see $folder/packages.log"
  clean_system "$tree"
fi

# --- what Invar adds ------------------------------------------------------------------------------
user=1000
if ! grep -q "^invar:" "$tree/etc/passwd"; then
  sed -i "/:x:$user:/d" "$tree/etc/passwd" "$tree/etc/group"  # Ubuntu's own first user
  echo "invar:x:$user:$user:Invar:/srv/invar:/bin/bash" >>"$tree/etc/passwd"
  echo "invar:x:$user:" >>"$tree/etc/group"
fi
install -D -m 755 "$binary" "$tree/usr/bin/invar"
strip "$tree/usr/bin/invar"
if [[ -x ${binary%/*}/invar-tui ]]; then
  install -D -m 755 -s "${binary%/*}/invar-tui" "$tree/usr/bin/invar-tui"
fi
install -d -m 755 "$tree/usr/share/invar/models" "$tree/usr/share/doc/invar"
for model in "$root"/models/*/; do  # those that are trained
  compgen -G "$model*.safetensors" >/dev/null || continue
  cp -r --no-preserve=ownership "$model" "$tree/usr/share/invar/models/"
done
install -m 644 "$root/LICENSE" "$root/README.md" "$tree/usr/share/doc/invar/"
# What of others is in the program; the dpkg of the image has the rest.
if [[ -f ${binary%/bin/*}/build.ninja ]] && command -v ninja >/dev/null; then
  SOURCE_DATE_EPOCH=$epoch python3 -B "$root/tools/release/components.py" "${binary%/bin/*}" \
    "$tree/usr/share/doc/invar" invar
fi
install -d -o "$user" -g "$user" "$tree/srv/invar" "$tree/cache"
version=$("$binary" --version | head -n 1)
buildah config --user invar --workingdir /srv/invar --entrypoint '["/usr/bin/invar"]' \
  --env HOME=/srv/invar --env LANG=C.UTF-8 --env XDG_CACHE_HOME=/cache --volume /cache \
  --label org.opencontainers.image.title=Invar \
  --label "org.opencontainers.image.version=${version##* }" \
  --label org.opencontainers.image.licenses=Apache-2.0 "$container"
# Times of files are those of the commit; the rest of the image is equal when its parts are.
find "$tree" -xdev -newermt "@$epoch" -exec touch -h -d "@$epoch" {} +
buildah umount "$container" >/dev/null
# invar-container.sh keeps one container of an image where there is no engine.
buildah containers --format '{{.ContainerName}}' | { grep '^invar-chroot-' || true; } |
  xargs -r buildah rm >/dev/null
image=$(buildah commit -q --timestamp "$epoch" "$container" "$tag")
printf 'image %s %s\n' "$tag" "$image"
if [[ -n $output ]]; then
  rm -f "$output"
  buildah push -q "$image" "oci-archive:$output:$tag"
  printf 'archive %s\n' "$output"
fi
