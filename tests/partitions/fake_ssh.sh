#!/bin/sh
# An ssh for hosts that do not exist: the command runs on this machine, in namespaces where the
# machine has the host's name and where $FAKE_HOSTS/HOST.sh may mount other files.
while [ "${1#-}" != "$1" ]; do shift; done
FAKE_HOST=$1
shift
FAKE_COMMAND=$*
export FAKE_HOST FAKE_COMMAND
exec unshare --uts --mount sh -c '
  hostname "$FAKE_HOST" || exit 1
  [ ! -e "$FAKE_HOSTS/$FAKE_HOST.sh" ] || . "$FAKE_HOSTS/$FAKE_HOST.sh"
  eval "exec $FAKE_COMMAND"'
