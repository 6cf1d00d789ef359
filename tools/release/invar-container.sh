#!/usr/bin/env bash
# Runs Invar in its container with the arguments of `invar`, or of REE's script, as if it were
# installed here:
#   invar-container.sh run --model-name org/name --prompt-text "Hello" --max-new-tokens 64
# As with REE's script, options without a command before them are those of run-all:
#   invar-container.sh --model-name org/name --prompt-text "Hello" --max-new-tokens 64
# The system in the container is read-only, and the user is not root. It sees the folder from which
# it is called, every file or folder that an argument names, and the cache (INVAR_CACHE, default
# ~/.cache/invar-container), each under its own path. It writes to that folder, to the cache and to
# the folders of output files alone.
#   INVAR_IMAGE    the image (default: invar, of tools/release/container.sh)
#   INVAR_ENGINE   podman, docker or chroot (buildah's image without an engine; needs root);
#                  default: the first that works here
set -euo pipefail
fail() { printf 'invar-container: %s\n' "$*" >&2; exit 2; }
[[ $# -gt 0 && $1 != --container-help ]] || { sed -n '2,15s/^# \{0,1\}//p' "$0"; exit $(($# == 0 ? 2 : 0)); }

# Options of every command may come first; then comes the command, or an option of run-all.
with_command() { # ARGUMENT...
  local -i i=1
  while ((i <= $#)); do
    case ${!i} in
      -q | --quiet | -v | --verbose | --progress=* | --color=*) i+=1 ;;
      --progress | --color) i+=2 ;;
      -h | --help | -V | --version) return 0 ;;
      -*) break ;;
      *) return 0 ;;
    esac
  done
  arguments=("${@:1:i-1}" run-all "${@:i}")
}
arguments=("$@")
with_command "$@"
set -- "${arguments[@]}"

image=${INVAR_IMAGE:-invar} engine=${INVAR_ENGINE:-} here=$PWD
cache=${INVAR_CACHE:-${HOME:-/tmp}/.cache/invar-container}
if [[ -z $engine ]]; then
  for candidate in podman docker; do
    if "$candidate" info >/dev/null 2>&1; then engine=$candidate; break; fi
  done
fi
if [[ -z $engine ]] && ((EUID == 0)) && command -v buildah >/dev/null; then engine=chroot; fi
[[ -n $engine ]] || fail 'no podman and no docker works here, and chroot needs root and buildah'

# --- what the container sees ----------------------------------------------------------------------
declare -A seen=()
mounts=()  # PATH or PATH:ro
[[ $here != / ]] || fail 'call it from a folder other than /'
case $here/ in
  /usr/* | /etc/* | /bin/* | /lib* | /proc/* | /sys/* | /dev/*)
    fail "$here belongs to the system of the container; call it from a folder of yours" ;;
esac
mounts+=("$here") seen[$here]=1
within_here() { [[ $1/ == "$here"/* ]]; }
show_path() { # PATH MODE: once, unless it lies in the folder that is visible anyway
  local path=$1
  within_here "$path" || [[ -n ${seen[$path]:-} ]] && return 0
  seen[$path]=1
  mounts+=("$path$2")
}
option=''
for argument in "$@"; do
  value=$argument
  if [[ $argument == --*=* ]]; then option=${argument%%=*} value=${argument#*=}; fi
  case $option in
    --receipt-path | --output | -o | --logits-output | --tensors-output | --receipts | --report)
      parent=$(realpath -m -- "$value")
      [[ -d $parent ]] || parent=$(dirname "$parent")
      [[ -d $parent ]] && show_path "$parent" '' ;;
    --tasks-root | --task-dir)
      mkdir -p -- "$value"
      show_path "$(realpath -- "$value")" '' ;;
    *)
      if [[ $value == */* && -e $value ]]; then
        path=$(realpath -s -- "$value") target=$(realpath -- "$value")
        show_path "$path" :ro
        # A model in the hub's cache is a folder of links to files elsewhere in it.
        if [[ $path == */snapshots/* ]]; then show_path "${path%%/snapshots/*}" :ro; fi
        if [[ $path != "$target" ]]; then show_path "$target" :ro; fi
      fi ;;
  esac
  option=''
  if [[ $argument == -* && $argument != *=* ]]; then option=$argument; fi
done
mkdir -p "$cache"

# Files that it makes belong to whoever calls; who is root gives away to the owner of this folder.
user=$EUID group=$(id -g)
if ((EUID == 0)); then read -r user group < <(stat -c '%u %g' "$here"); fi
if ((user == 0)); then user=1000 group=1000; fi
if ((EUID == 0)); then chown "$user:$group" "$cache"; fi
settings=(HOME=/srv/invar XDG_CACHE_HOME=/cache XDG_STATE_HOME=/cache/state LANG=C.UTF-8)
for name in HF_TOKEN HF_ENDPOINT HF_HUB_OFFLINE HF_HUB_DOWNLOAD_TIMEOUT INVAR_DEBUG NO_COLOR TERM \
  https_proxy http_proxy no_proxy; do
  if [[ -n ${!name:-} ]]; then settings+=("$name=${!name}"); fi
done

# --- engines --------------------------------------------------------------------------------------
with_engine() { # ARGUMENT...
  local options=(run --rm --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges
    --workdir "$here" --volume "$cache:/cache") mount setting
  for mount in "${mounts[@]}"; do
    case $mount in
      *:ro) options+=(--volume "${mount%:ro}:$mount") ;;
      *) options+=(--volume "$mount:$mount") ;;
    esac
  done
  for setting in "${settings[@]}"; do options+=(--env "$setting"); done
  if [[ $engine == podman ]] && ((EUID != 0)); then
    options+=(--userns keep-id)
  else
    options+=(--user "$user:$group")
  fi
  if [[ -t 0 && -t 1 ]]; then options+=(--interactive --tty); else options+=(--interactive); fi
  if command -v nvidia-smi >/dev/null; then
    if [[ $engine == podman ]]; then options+=(--device nvidia.com/gpu=all); else options+=(--gpus all); fi
  fi
  exec "$engine" "${options[@]}" "$image" "$@"
}

# The image's file system, read-only, in a mount name space of its own.
inside_chroot() { # TREE ARGUMENT...
  local tree=$1 mount path
  shift
  mount --make-rprivate /
  # Mount points are made on a writable layer, which goes with the name space.
  local layer=/tmp/invar-container-layer
  mkdir -p "$layer" && mount -t tmpfs tmpfs "$layer" && mkdir "$layer/upper" "$layer/work" "$layer/root"
  mount -t overlay overlay -o "lowerdir=$tree,upperdir=$layer/upper,workdir=$layer/work" "$layer/root"
  tree=$layer/root
  mkdir -p "$tree/proc" "$tree/dev" "$tree/tmp"
  mount -t tmpfs -o mode=1777 tmpfs "$tree/tmp"
  for path in /etc/resolv.conf /etc/hosts; do
    if [[ -f $path ]]; then cp -L "$path" "$tree$path"; fi
  done
  for mount in "$cache:/cache" "${mounts[@]}"; do
    path=${mount%:ro}
    local from=$path to=$path
    if [[ $mount == *:/cache ]]; then from=$cache to=/cache; fi
    if [[ -d $from ]]; then mkdir -p "$tree$to"; else mkdir -p "$(dirname "$tree$to")" && touch "$tree$to"; fi
  done
  for mount in "$cache:/cache" "${mounts[@]}"; do
    path=${mount%:ro}
    local from=$path to=$path
    if [[ $mount == *:/cache ]]; then from=$cache to=/cache; fi
    mount --bind "$from" "$tree$to"
    if [[ $mount == *:ro ]]; then mount -o remount,bind,ro "$tree$to"; fi
  done
  mount --rbind /dev "$tree/dev"
  mount -t proc proc "$tree/proc"
  mount -o remount,ro "$tree"
  exec env -i "${settings[@]}" PATH=/usr/bin:/bin /usr/sbin/chroot "$tree" /usr/bin/setpriv \
    --reuid "$user" --regid "$group" --clear-groups --no-new-privs --inh-caps=-all \
    /usr/bin/env --chdir="$here" /usr/bin/invar "$@"
}
with_chroot() { # ARGUMENT...
  ((EUID == 0)) || fail 'INVAR_ENGINE=chroot needs root'
  local id name tree
  id=$(buildah images -q --no-trunc "$image" 2>/dev/null | head -n 1) || true
  [[ -n $id ]] || fail "there is no image $image; tools/release/container.sh builds it"
  name=invar-chroot-${id#sha256:}  # made once for an image; nothing is ever written to it
  buildah containers --format '{{.ContainerName}}' | grep -qx "$name" ||
    buildah from -q --pull-never --name "$name" "$id" >/dev/null
  tree=$(buildah mount "$name")
  export -f inside_chroot
  exec unshare --mount --pid --fork --kill-child bash -c "
    $(declare -p mounts settings cache here user group); set -eu; inside_chroot \"\$@\"" \
    invar-container "$tree" "$@"
}
case $engine in
  podman | docker) with_engine "$@" ;;
  chroot) with_chroot "$@" ;;
  *) fail "INVAR_ENGINE is $engine; podman, docker or chroot" ;;
esac
