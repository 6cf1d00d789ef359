"""The C half of the independent implementation: compiled on first use, called by ctypes."""

import ctypes
import hashlib
import os
import subprocess
import tempfile
from ctypes import POINTER, c_char_p, c_double, c_float, c_int, c_size_t
from pathlib import Path

HERE = Path(__file__).resolve().parent
FLAGS = ["-std=c11", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
FLOATS = POINTER(c_float)


def build():
    """The shared library of the sources as they are, in a folder for temporary files."""
    sources = sorted(HERE.glob("*.c"))
    state = hashlib.sha256()
    for path in [*sources, HERE / "law.h"]:
        state.update(path.read_bytes())
    folder = Path(os.environ.get("INVAR_BUILD", tempfile.gettempdir())) / "independent"
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"law-{state.hexdigest()[:16]}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=folder) as made:
            compiler = os.environ.get("CC", "gcc")
            new = Path(made) / "law.so"
            subprocess.run([compiler, *FLAGS, "-o", new, *sources, "-lmpfr", "-lm"], check=True)
            new.replace(library)
    return library


LIBRARY = ctypes.CDLL(str(build()))
for name, arguments in {
    "law_widen_bf16": [c_char_p, c_size_t, FLOATS],
    "law_widen_f16": [c_char_p, c_size_t, FLOATS],
    "law_linear": [FLOATS, FLOATS, c_size_t, c_size_t, FLOATS],
    "law_linear_exact16": [FLOATS, FLOATS, c_size_t, c_size_t, FLOATS],
    "law_add": [FLOATS, FLOATS, c_size_t, FLOATS],
    "law_mul": [FLOATS, FLOATS, c_size_t, FLOATS],
    "law_silu": [FLOATS, c_size_t, FLOATS],
    "law_rms_norm": [FLOATS, FLOATS, c_size_t, c_float, FLOATS],
    "law_layer_norm": [FLOATS, FLOATS, FLOATS, c_size_t, c_float, FLOATS],
    "law_gelu": [FLOATS, c_size_t, FLOATS],
    "law_features": [FLOATS, c_size_t, c_size_t, FLOATS],
    "law_cosines": [FLOATS, c_size_t, FLOATS],
    "law_sines": [FLOATS, c_size_t, FLOATS],
    "law_sigmoid": [FLOATS, c_size_t, FLOATS],
    "law_softplus": [FLOATS, c_size_t, FLOATS],
    "law_exps": [FLOATS, c_size_t, FLOATS],
    "law_softmax": [FLOATS, c_size_t, FLOATS],
    "law_rope": [FLOATS, FLOATS, FLOATS, c_size_t, c_size_t, c_size_t, FLOATS],
    "law_causal_conv": [FLOATS, c_size_t, FLOATS, c_size_t, c_size_t, FLOATS],
    "law_linear_attention": [FLOATS] * 5
    + [c_size_t] * 6
    + [c_float]
    + [FLOATS] * 3
    + [POINTER(c_double), FLOATS],
    "law_attention": [FLOATS] * 3 + [c_size_t] * 5 + [c_float, FLOATS],
    "law_attention_exact16": [FLOATS] * 3 + [c_size_t] * 5 + [c_float, FLOATS],
}.items():
    getattr(LIBRARY, name).argtypes = arguments
    getattr(LIBRARY, name).restype = None
for name, arguments, result in [
    ("law_exp", [c_float], c_float),
    ("law_pow", [c_float, c_float], c_float),
    ("law_function", [c_char_p, c_float, FLOATS], c_int),
    ("law_mutate", [c_char_p], c_int),
    ("law_mutation_name", [c_int], c_char_p),
    ("contract", [FLOATS, FLOATS, c_size_t], c_float),
    ("sum_of_row", [FLOATS, c_size_t], c_float),
    ("sum_of_squares", [FLOATS, c_size_t], c_float),
    ("store", [c_float], c_float),
    ("maximum", [c_float, c_float], c_float),
]:
    getattr(LIBRARY, name).argtypes = arguments
    getattr(LIBRARY, name).restype = result


def floats(n):
    """Room for n binary32 numbers."""
    return (c_float * n)()


def row(*values):
    return (c_float * len(values))(*values)


def linear_memory(heads, d, d_v, decays):
    """linear_attention.2: the state of each head, and its chunk's keys, updates and decays."""
    rows = 64 * heads
    return [
        floats(heads * d * d_v), floats(rows * d), floats(rows * d_v), (c_double * (rows * decays))()
    ]  # fmt: skip


def operation(name, *operands, n):
    """A row of n numbers that the operation of this name makes of its operands."""
    result = floats(n)
    getattr(LIBRARY, f"law_{name}")(*operands, result)
    return result


def f32(x):
    """The binary32 next to x, ties to even."""
    return c_float(x).value
