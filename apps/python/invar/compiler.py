"""ONNX model -> a program that runs natively."""

import contextlib
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from invar import _native, arrays, generation
from invar.modules.artifacts import Artifacts, Choices, Model, Named


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output of a program: element type as in plans ("f32", "i64", ...), dimensions as
    numbers or, where the inputs of a call decide, names."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]


def ports_of(described: dict[str, Any], which: str) -> tuple[Tensor, ...]:
    return tuple(Tensor(*port) for port in described[which])


class Program:
    """A compiled model. The bytes that it computes depend on the model and the inputs alone, unless
    it was compiled for another operation set than "reproducible"."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    digest: str
    operation_set: str
    numerics: str
    choices: tuple[str, ...]

    def __init__(
        self,
        artifacts: Artifacts,
        described: dict[str, Any],
        device: str,
        isa: str,
        threads: int,
    ) -> None:
        self._artifacts, self._made = artifacts, (described, device, isa, threads)
        self._native = _native.Program(
            str(artifacts.path / "plan.invar"),
            str(artifacts.path),
            device,
            isa,
            threads,
            artifacts.hashed,
        )
        self._one = (
            threading.Lock()
        )  # call at a time: no other makes the GPU's queue wait while it records
        self.inputs = ports_of(described, "inputs")
        self.outputs = ports_of(described, "outputs")
        self.digest = described["digest"]
        self.operation_set = described["operation_set"]
        self.numerics = described["numerics"]
        self.choices = tuple(described["choices"])

    def run(self, /, *inputs: Any, **named: Any) -> dict[str, Any]:
        """Inputs -> outputs by name. Inputs are given in the order of `program.inputs`, by name as
        keywords or in one dict, or the first ones in order and others as keywords. Arrays of NumPy
        give arrays of NumPy, torch tensors give torch tensors: on the program's GPU if one of the
        inputs lies there, otherwise on the host. Other arrays with DLPack are read.

        Raises BadInput for an input that is missing, given twice or of another type or shape, and
        where a value of it is outside of what the model can take."""
        given = self._given(inputs, named)
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

    def _given(self, inputs: tuple[Any, ...], named: Named) -> dict[str, Any]:
        """The inputs of a call, by name."""
        if len(inputs) == 1 and isinstance(inputs[0], Mapping | None):
            return {**(inputs[0] or {}), **named}
        if len(inputs) == 2 and isinstance(inputs[1], Mapping) and not hasattr(inputs[0], "shape"):
            raise _native.BadInput(
                "run(names, inputs) is onnxruntime's: give the dict alone; the results are a dict of "
                "all outputs by name"
            )
        if len(inputs) > len(self.inputs):
            raise _native.BadInput(
                f"{len(inputs)} inputs; the model takes {len(self.inputs)}: "
                f"{', '.join(t.name for t in self.inputs)}"
            )
        given = dict(zip((t.name for t in self.inputs), inputs))
        for name in given:
            if name in named:
                raise _native.BadInput(f"input '{name}': given in order and by name")
        for number, x in enumerate(inputs):
            if isinstance(x, Mapping | None):
                raise _native.BadInput(
                    f"input '{self.inputs[number].name}': {type(x).__name__} is no array; a dict "
                    f"of all inputs stands alone"
                )
        return {**given, **named}

    def _types(self) -> list[tuple[str, str]]:
        return [(t.name, t.dtype) for t in self.outputs]

    def _run_there(self, given: dict[str, Any], stay: bool) -> dict[str, Any]:
        """With inputs on a GPU: read there, and where they are torch's, results are new tensors of
        torch there. The program's queue waits for what torch's current stream has to do; when this
        returns, it has done its own."""
        number, stream, torch = self._native.device, self._native.stream, arrays.torch()
        results: dict[str, Any] = {}

        def place(name: str, dtype: str, shape: list[int]) -> Any:
            results[name] = torch.empty(shape, dtype=types[dtype], device=f"cuda:{number}")
            return results[name].__dlpack__(stream=stream)

        def read(name: str, value: Any) -> Any:
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
    def plan(self) -> str:
        """The program's text (spec/plan.md); `digest` is its SHA-256 up to the line `places`."""
        return (self._artifacts.path / "plan.invar").read_text(
            encoding="utf-8", errors="surrogateescape"
        )  # a name may be any bytes

    @property
    def isa(self) -> str:
        """The instruction set that runs it; "cuda" on a GPU."""
        return self._native.isa

    @property
    def kernels(self) -> list[tuple[str, str]]:
        """Operation and instruction set of every kernel in it."""
        return self._native.kernels

    @property
    def libraries(self) -> list[str]:
        """Vendors' libraries that some kernel is of, with versions."""
        return self._native.libraries

    @property
    def peak_bytes(self) -> int:
        """Memory of weights and activations at the sizes of the last run."""
        return self._native.peak_bytes

    def __deepcopy__(self, memo: Any) -> "Program":
        return self  # nothing of it changes

    def __reduce__(self) -> Any:
        """What another process gets: the files of the artifacts, weights included."""
        described, *how = self._made
        names = sorted({"plan.invar", *described["files"]})
        files = {name: (self._artifacts.path / name).read_bytes() for name in names}
        return restored, (described, files, *how)

    def __repr__(self) -> str:
        text = lambda all: ", ".join(
            f"{t.name}: {t.dtype}[{', '.join(map(str, t.shape))}]" for t in all
        )
        return f"invar.Program({text(self.inputs)} -> {text(self.outputs)}; {self.digest[:16]})"


def restored(described: dict[str, Any], files: dict[str, bytes], *how: Any) -> Program:
    """A program of a pickle."""
    artifacts = Artifacts()
    for name, content in files.items():
        path = artifacts.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    artifacts.hashed = None
    return Program(artifacts, described, *how)


MOST_PROGRAMS = 8  # of one model in memory: those of the last calls' sizes


class ProgramOfCalls(Program):
    """A model of which no plan serves all calls. The first call with shapes that are new, and with
    new values of inputs that are at most 16 integers or booleans where those decide, compiles a
    plan for them (spec/onnx.md onnx.40); later ones find it. What a plan alone knows, such as
    `digest`, is of the last call's."""

    def __init__(self, compile: Any, source: str | os.PathLike[str], kept: Artifacts) -> None:
        self._compile, self._kept = compile, kept
        self._programs: dict[Any, Program] = {}
        self._last: Program | None = None
        inputs, outputs = _native.describe_model(str(source))
        self.inputs = tuple(Tensor(*port) for port in inputs)
        self.outputs = tuple(Tensor(*port) for port in outputs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        last = self.__dict__.get("_last")
        if last is None:
            raise _native.BadInput(f"{name}: no call yet, and each one's sizes have a plan")
        return getattr(last, name)

    def __reduce__(self) -> Any:
        raise TypeError("a program of dims='call' cannot be pickled: compile it in each process")

    @property
    def plan(self) -> str:
        return self.__getattr__("plan")

    @property
    def isa(self) -> str:
        return self.__getattr__("isa")

    @property
    def kernels(self) -> list[tuple[str, str]]:
        return self.__getattr__("kernels")

    @property
    def libraries(self) -> list[str]:
        return self.__getattr__("libraries")

    @property
    def peak_bytes(self) -> int:
        return self.__getattr__("peak_bytes")

    def run(self, /, *inputs: Any, **named: Any) -> dict[str, Any]:
        """As Program.run. Raises NotCovered, too, for sizes of which there is no plan."""
        given = self._given(inputs, named)
        key = key_of_call(given)
        program = self._programs.pop(key, None) or self._compile(
            {name: arrays.on_host(value, f"input '{name}'") for name, value in given.items()}
        )
        self._programs[key] = self._last = program
        while len(self._programs) > MOST_PROGRAMS:  # each has its own weights in memory
            self._programs.pop(next(iter(self._programs)))
        reads = {t.name for t in program.inputs}
        return program.run({name: value for name, value in given.items() if name in reads})

    def __repr__(self) -> str:
        inputs = ", ".join(
            f"{t.name}: {t.dtype}[{', '.join(map(str, t.shape))}]" for t in self.inputs
        )
        return f"invar.Program({inputs}; a plan for each call's sizes)"


def key_of_call(given: Named) -> Any:
    """What a plan for a call depends on: types and shapes of inputs, and values of few integers."""
    key = []
    for name, value in sorted(given.items()):
        if arrays.is_tensor(value):
            few = value.numel() <= 16 and not value.is_floating_point()
            values = value.detach().cpu().numpy().tobytes() if few else None
        else:
            value = arrays.array(value, f"input '{name}'")
            values = value.tobytes() if value.size <= 16 and value.dtype.kind in "iub" else None
        key.append((name, str(value.dtype), tuple(value.shape), values))
    return tuple(key)


def compile(
    model: Model,
    *,
    bind: Named | None = None,
    dims: Mapping[str, int] | Literal["call"] | None = None,
    choices: Choices = "all",
    operation_set: str = "reproducible",
    numerics: str = "fp32",
    opt: int | None = None,
    device: str = "cpu",
    isa: str = "",
    threads: int = 0,
    artifacts_dir: str | os.PathLike[str] | None = None,
    colocate_tensors: bool = False,
) -> Program:
    """Compiles an ONNX model for the native runtime.

    model: path of a .onnx file, its bytes, an onnx.ModelProto, or what torch.onnx.export() returns
    with dynamo=True. bind: inputs whose values decide shapes
    (axes, sizes), by name, known from now on. dims: sizes of dimensions, {"NAME": N}, for which
    alone the program is: NAME as the model says it, or "INPUT.AXIS" where it has no name. "call":
    where no plan serves all sizes, each call's sizes get a plan when it comes. opt: 0 to
    3, how much the compiler rewrites (None: 3); device: "cpu", "cuda" or "cuda:N"; isa: an
    instruction set to force; threads: 0 = one per core; none of these four ever changes a bit of a
    reproducible program. artifacts_dir, colocate_tensors, choices: as in CompileOptions; `choices`
    of the program says which were applied.

    operation_set: what is promised of the bits. "reproducible": the same on any machine;
    "deterministic": the same in every run on the same hardware with the same software; "default":
    nothing. The weaker two may run kernels of vendors' libraries.

    numerics: how matrix products with the model's weights are computed (spec/program.md
    exact16.7). "fp32": in binary32, in a fixed order; "exact16": in rows of 16-bit integers,
    exactly, which no order changes. Other numerics are another program, with other bits.

    Raises NotCovered with all nodes that have no reproducible kernel, and BadInput for a model that
    is not what it should be."""
    device, isa = (
        generation.text_of("device", arrays.device_of(device)),
        generation.text_of("isa", isa),
    )
    threads = generation.whole("threads", threads, 0, 1024)
    artifacts = Artifacts(artifacts_dir)
    for_calls, fixed = dims == "call", None if dims == "call" else dims

    def compiled(to: Artifacts, **call: Any) -> Program:
        described = to.compile(
            model,
            bind,
            colocate_tensors,
            choices,
            operation_set,
            opt,
            fixed,
            numerics=numerics,
            **call,
        )
        return Program(to, described, device, isa, threads)

    def of_call(given: Named) -> Program:
        to = Artifacts(debug=artifacts.debug)
        try:
            return compiled(to, call=given)
        except (_native.NotCovered, _native.BadInput):
            return compiled(to, call=given, call_values=True)

    try:
        return compiled(artifacts)
    except _native.NotCovered:
        if not for_calls:
            raise
        source = model if isinstance(model, str | os.PathLike) else artifacts.path / "model.onnx"
        return ProgramOfCalls(of_call, source, artifacts)
