#!/bin/sh
# ccache.sh CCACHE COMPILER ARGUMENT...: compiles with ccache. An old precompiled header is removed
# before its source is compiled: GCC would read the old one there, and ccache would hash it instead
# of the headers that have changed. Comments count in one: GCC knows a header with `#pragma once` by
# the digest of its bytes, and would read it again. OBJECT.time tells tools/test/build_time.py what
# the object took: whether the cache had it, and the processor seconds of this shell and of what it
# ran (`times`).
before=''
object=''
for argument in "$@"; do
  case $argument in
    *.gch)
      rm -f "$argument"
      export CCACHE_COMMENTS=1 CCACHE_NODIRECT=1
      ;;
  esac
  if [ "$before" = -o ]; then object=$argument; fi
  before=$argument
done
if [ -z "$object" ]; then exec "$@"; fi
if [ -e "$object.time" ]; then rm -f "$object.time"; fi
CCACHE_STATSLOG=$object.time "$@"
status=$?
{ times; } 2>/dev/null >>"$object.time"
exit $status
