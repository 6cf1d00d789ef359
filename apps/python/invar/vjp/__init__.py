"""The gradients of each room: the files src/ops/ROOM/vjp.py, here under the names of their
rooms."""

import pkgutil

NAMES = sorted(m.name for m in pkgutil.iter_modules(__path__))
