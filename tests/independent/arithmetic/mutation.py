"""Which clause is broken at the moment: none, unless a test of mutations.py says so.

The arithmetic (law.h) has its own list; both share one name space.
"""

import contextlib

from arithmetic.library import LIBRARY

name = ""


def active(which):
    """Whether the mutation `which` is active."""
    return name == which


@contextlib.contextmanager
def mutated(which):
    """Activates one mutation, in C or here."""
    global name
    name = which
    LIBRARY.law_mutate(which.encode())
    try:
        yield
    finally:
        name = ""
        LIBRARY.law_mutate(b"")
