"""The gradients of each room: the files src/ops/ROOM/vjp.py, here under the names of their
rooms."""

import pkgutil

from invar import _native

NAMES = sorted(m.name for m in pkgutil.iter_modules(__path__))

if _missing := sorted(set(_native.rooms()) - set(NAMES)):
    raise ImportError(
        f"invar: this package lacks invar/vjp/{_missing[0]}.py"
        + (f" and {len(_missing) - 1} more" if len(_missing) > 1 else "")
        + ", the gradients of its operations: it was not built or installed whole; install it again"
    )
