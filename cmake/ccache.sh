#!/bin/sh
# ccache.sh CCACHE COMPILER ARGUMENT...: compiles with ccache. An old precompiled header is removed
# before its source is compiled: GCC would read the old one there, and ccache would hash it instead
# of the headers that have changed.
for argument in "$@"; do
  case $argument in
    *.gch) rm -f "$argument" ;;
  esac
done
exec "$@"
