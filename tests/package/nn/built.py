"""The Python package of the build that is tested; skips where the build has none."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import BUILD, ROOT

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)

import invar  # noqa: E402, F401  the tests import it from here
import torch  # noqa: E402


def digest(tensors):
    """SHA-256 of the bytes of tensors, one after the other."""
    found = hashlib.sha256()
    for x in tensors:
        found.update(np.ascontiguousarray(x.detach().cpu().numpy()).tobytes())
    return found.hexdigest()


def whole(shape, seed, scale=2**-10):
    """Values that are the same everywhere: whole numbers from -1000 to 1000 times a power of
    two."""
    numbers = np.random.default_rng(seed).integers(-1000, 1000, shape)
    return torch.from_numpy(numbers.astype(np.float32)) * scale


def script(text, **environment):
    """What a Python program prints in a process of its own."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.pathsep.join(map(str, (BUILD / "python", ROOT / "tests", here)))
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
