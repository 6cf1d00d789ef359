"""ONNX model -> a program that runs natively."""

import contextlib
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from invar import _native, arrays


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output of a program: element type as in plans ("f32", "i64", ...), dimensions as
    numbers or, where the inputs of a call decide, names."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]


class Artifacts:
    """The folder of a compilation: plan, constants, and links to the model's weight files, or
    copies of them. One that nobody named goes with this object. With `debug`, or INVAR_DEBUG set, it
    stays, its place is named on standard error, and the text of every stage of the compiler lies in
    it."""

    def __init__(self, folder=None, debug=False):
        self.path = Path(folder or tempfile.mkdtemp(prefix="invar-")).absolute()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise _native.BadInput(
                f"artifacts folder {self.path}: {e.strerror}: choose another"
            ) from None
        self.debug = debug or bool(os.environ.get("INVAR_DEBUG"))
        self.temporary = folder is None and not self.debug
        if self.debug:
            print(f"artifacts in {self.path}", file=sys.stderr)

    def __del__(self):
        if getattr(self, "temporary", False):
            shutil.rmtree(self.path, ignore_errors=True)

    def compile(
        self,
        model,
        bind,
        colocate_tensors,
        choices="all",
        operation_set="reproducible",
        opt=None,
        dims=None,
    ):
        """Compiles a path or a ModelProto; returns the plan's description."""
        if isinstance(model, str | os.PathLike):
            source = Path(model).absolute()
        elif hasattr(model, "SerializeToString"):
            source = self.path / "model.onnx"
            source.write_bytes(model.SerializeToString())
        else:
            raise _native.BadInput(
                f"model: {type(model).__name__} is neither a path nor a ModelProto"
            )
        plan = self.path / "plan.invar"
        bound = [
            (name, arrays.on_host(value, f"bind['{name}']")) for name, value in (bind or {}).items()
        ]
        if not isinstance(operation_set, str):
            raise _native.BadInput(f"operation_set: {type(operation_set).__name__} is no name")
        if opt is not None and (
            isinstance(opt, bool) or not isinstance(opt, int) or not 0 <= opt <= _native.most_opt
        ):
            raise _native.BadInput(f"opt: {opt!r} is no level: 0 to {_native.most_opt}")
        hashed = _native.compile(
            str(source),
            str(source.parent),
            str(plan),
            bound,
            sizes_of(dims),
            operation_set=operation_set,
            choices=choices_text(choices),
            opt=_native.most_opt if opt is None else opt,
            stages=str(self.path) if self.debug else "",
        )
        self.hashed = None if colocate_tensors else hashed  # a copy is another file
        described = _native.describe(str(plan))
        for file in {w["file"] for w in described["weights"]} - {"plan.invar.constants"}:
            self.place(source.parent / file, self.path / file, colocate_tensors)
        return described

    @staticmethod
    def place(source, target, copy):
        if target.exists() and target.samefile(source) and not (copy and target.is_symlink()):
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        if copy:
            shutil.copyfile(source, target)
        else:
            target.symlink_to(source.resolve())


def choices_text(choices):
    if not isinstance(choices, str) and not (
        isinstance(choices, list | tuple) and all(isinstance(name, str) for name in choices)
    ):
        raise _native.BadInput(f"choices: {choices!r} is neither a string nor a list of names")
    return choices if isinstance(choices, str) else ",".join(choices) or "none"


def sizes_of(dims):
    if not isinstance(dims, Mapping | None):
        raise _native.BadInput(f"dims: {type(dims).__name__} is no dictionary of names and sizes")
    for name, size in (dims or {}).items():
        if (
            not isinstance(name, str)
            or isinstance(size, bool)
            or not isinstance(size, int | np.integer)
            or not 0 <= size <= 1 << 31
        ):
            raise _native.BadInput(
                f"dims: {name!r}: {size!r} is no name of a dimension and its size, a whole number "
                f"from 0 to 2147483648"
            )
    return [(name, int(size)) for name, size in (dims or {}).items()]


class Program:
    """A compiled model. The bytes that it computes depend on the model and the inputs alone, unless
    it was compiled for another operation set than "reproducible"."""

    def __init__(self, artifacts, described, device, isa, threads):
        self._artifacts = artifacts
        self._native = _native.Program(
            str(artifacts.path / "plan.invar"),
            str(artifacts.path),
            device,
            isa,
            threads,
            artifacts.hashed,
        )
        tensors = lambda ports: tuple(
            Tensor(n, described["values"][v][0], tuple(described["values"][v][1])) for n, v in ports
        )
        self._one = (
            threading.Lock()
        )  # call at a time: no other makes the GPU's queue wait while it records
        self.inputs = tensors(described["inputs"])
        self.outputs = tensors(described["outputs"])
        self.digest = described["digest"]
        self.operation_set = described["operation_set"]
        self.choices = tuple(described["choices"])

    def run(self, inputs=None, /, **named):
        """Inputs by name, in a dict or as keywords -> outputs by name. Arrays of NumPy give arrays
        of NumPy, torch tensors give torch tensors: on the program's GPU if one of the inputs lies
        there, otherwise on the host. Other arrays with DLPack are read."""
        if not isinstance(inputs, Mapping | None):
            raise _native.BadInput(
                f"inputs: {type(inputs).__name__} is no dict from names to arrays"
            )
        given = {**(inputs or {}), **named}
        there = [
            x
            for x in given.values()
            if arrays.gpu_of(x) is not None
            and (self._native.device >= 0 or not arrays.is_tensor(x))
        ]
        if there:
            return self._run_there(given, any(map(arrays.is_tensor, there)))
        fed = {name: arrays.on_host(value, f"input '{name}'") for name, value in given.items()}
        wrap = arrays.like(given.values(), self._types())
        with self._one:
            return wrap(self._native.run(fed))

    def _types(self):
        return [(t.name, t.dtype) for t in self.outputs]

    def _run_there(self, given, stay):
        """With inputs on a GPU: read there, and where they are torch's, results are new tensors of
        torch there. The program's queue waits for what torch's current stream has to do; when this
        returns, it has done its own."""
        number, stream, torch = self._native.device, self._native.stream, arrays.torch()
        results = {}

        def place(name, dtype, shape):
            results[name] = torch.empty(shape, dtype=types[dtype], device=f"cuda:{number}")
            return results[name].__dlpack__(stream=stream)

        def read(name, value):
            where = f"input '{name}'"
            return (
                arrays.on_host(value, where)
                if arrays.gpu_of(value) is None
                else arrays.on_gpu(value, where, number, stream)
            )

        if stay:
            from invar.modules.emitted import TYPES as types
        wrap = None if stay else arrays.like(given.values(), self._types())
        with self._one, torch.cuda.device(number) if stay else contextlib.nullcontext():
            found = self._native.run(
                {name: read(name, value) for name, value in given.items()}, place if stay else None
            )
        return results if stay else wrap(found)

    @property
    def plan(self):
        """The program's text (spec/plan.md); `digest` is its SHA-256 up to the line `places`."""
        return (self._artifacts.path / "plan.invar").read_text(
            encoding="utf-8", errors="surrogateescape"
        )  # a name may be any bytes

    isa = property(
        lambda self: self._native.isa, doc='The instruction set that runs it; "cuda" on a GPU.'
    )
    kernels = property(
        lambda self: self._native.kernels,
        doc="Operation and instruction set of every kernel in it.",
    )
    libraries = property(
        lambda self: self._native.libraries,
        doc="Vendors' libraries that some kernel is of, with versions.",
    )
    peak_bytes = property(
        lambda self: self._native.peak_bytes,
        doc="Memory of weights and activations at the sizes of the last run.",
    )

    def __repr__(self):
        text = lambda all: ", ".join(
            f"{t.name}: {t.dtype}[{', '.join(map(str, t.shape))}]" for t in all
        )
        return f"invar.Program({text(self.inputs)} -> {text(self.outputs)}; {self.digest[:16]})"


def compile(
    model,
    *,
    bind=None,
    dims=None,
    choices="all",
    operation_set="reproducible",
    opt=None,
    device="cpu",
    isa="",
    threads=0,
    artifacts_dir=None,
    colocate_tensors=False,
):
    """Compiles an ONNX model for the native runtime.

    model: path of a .onnx file, or an onnx.ModelProto. bind: inputs whose values decide shapes
    (axes, sizes), by name, known from now on. dims: sizes of dimensions, {"NAME": N}, for which
    alone the program is: NAME as the model says it, or "INPUT.AXIS" where it has no name. opt: 0 to
    3, how much the compiler rewrites (None: 3); device: "cpu", "cuda" or "cuda:N"; isa: an
    instruction set to force; threads: 0 = one per core; none of these four ever changes a bit of a
    reproducible program. artifacts_dir, colocate_tensors, choices: as in CompileOptions; `choices`
    of the program says which were applied.

    operation_set: what is promised of the bits. "reproducible": the same on any machine;
    "deterministic": the same in every run on the same hardware with the same software; "default":
    nothing. The weaker two may run kernels of vendors' libraries.

    Raises NotCovered with all nodes that have no reproducible kernel, and BadInput for a model that
    is not what it should be."""
    artifacts = Artifacts(artifacts_dir)
    described = artifacts.compile(model, bind, colocate_tensors, choices, operation_set, opt, dims)
    return Program(artifacts, described, device, isa, threads)
