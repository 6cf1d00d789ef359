"""How torch spells the operations of each room: the files src/ops/ROOM/torch.py, here under the
names of their rooms. SPELLED maps an operation to a format string (operands {0}, {1}, ...,
attributes by name, {shape}, {dtype}) or to a function of modules.source.Call."""

import importlib
import pkgutil

NAMES = sorted(m.name for m in pkgutil.iter_modules(__path__))


def __getattr__(name):
    if name in NAMES:
        return importlib.import_module(f"invar.rooms.{name}")
    raise AttributeError(name)
