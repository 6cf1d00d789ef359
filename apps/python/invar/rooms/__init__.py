"""Functions on tensors of torch that emitted modules call where torch has none: the files
src/ops/ROOM/torch.py, here under the names of their rooms. Which operation calls what is in
src/ops/ROOM/torch.cc."""

import importlib
import pkgutil

NAMES = sorted(m.name for m in pkgutil.iter_modules(__path__))


def __getattr__(name):
    if name in NAMES:
        return importlib.import_module(f"invar.rooms.{name}")
    raise AttributeError(name)
