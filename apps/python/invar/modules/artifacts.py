"""The folder of a compilation."""

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from invar import _native, arrays

if TYPE_CHECKING:
    import onnx
    import torch

Model: TypeAlias = "str | os.PathLike[str] | bytes | onnx.ModelProto | torch.onnx.ONNXProgram"
Named: TypeAlias = Mapping[str, Any]  # arrays of NumPy, tensors of torch, or others with DLPack
Choices: TypeAlias = str | list[str] | tuple[str, ...]


class Artifacts:
    """The folder of a compilation: plan, constants, and links to the model's weight files, or
    copies of them. One that nobody named goes with this object. With `debug`, or INVAR_DEBUG set,
    it stays, its place is named on standard error, and the text of every stage of the compiler lies
    in it."""

    hashed: Any  # what compile() has read of the weights; None where a copy serves

    def __init__(self, folder: str | os.PathLike[str] | None = None, debug: bool = False) -> None:
        self.path = Path(folder or tempfile.mkdtemp(prefix="invar-")).absolute()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise _native.BadInput(
                f"artifacts folder {self.path}: {e.strerror}: choose another"
            ) from None
        self.debug = debug or bool(os.environ.get("INVAR_DEBUG"))
        self.temporary = folder is None and not self.debug
        self.process = os.getpid()  # a forked child has this object, too
        if self.debug:
            print(f"artifacts in {self.path}", file=sys.stderr)

    def __del__(self) -> None:
        if getattr(self, "temporary", False) and self.process == os.getpid():
            shutil.rmtree(self.path, ignore_errors=True)

    def compile(
        self,
        model: Model,
        bind: Named | None,
        colocate_tensors: bool,
        choices: Choices = "all",
        operation_set: str = "reproducible",
        opt: int | None = None,
        dims: Mapping[str, int] | None = None,
        torch_module: str = "",
        numerics: str = "fp32",
        call: Named | None = None,
        call_values: bool = False,
    ) -> dict[str, Any]:
        """Compiles a model; returns the plan's description. torch_module:
        "reproducible" or "plain" also writes the source of a module of torch, module.py. call,
        call_values: the inputs for whose shapes, and few integers, alone the plan is."""
        source = self.source_of(model)
        plan = self.path / "plan.invar"
        bound = [
            (name, arrays.on_host(value, f"bind['{name}']")) for name, value in (bind or {}).items()
        ]
        if not isinstance(operation_set, str):
            raise _native.BadInput(f"operation_set: {type(operation_set).__name__} is no name")
        if not isinstance(numerics, str):
            raise _native.BadInput(f"numerics: {type(numerics).__name__} is no name")
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
            numerics=numerics,
            choices=choices_text(choices),
            opt=_native.most_opt if opt is None else opt,
            stages=str(self.path) if self.debug else "",
            torch_module=torch_module,
            call=list((call or {}).items()),
            call_values=call_values,
        )
        self.hashed = None if colocate_tensors else hashed  # a copy is another file
        described = _native.describe(str(plan))
        for file in set(described["files"]) - {"plan.invar.constants"}:
            self.place(source.parent / file, self.path / file, colocate_tensors)
        return described

    def source_of(self, model: Model) -> Path:
        """The file of a model; one in memory is written to this folder."""
        if isinstance(model, str | os.PathLike):
            source = Path(model).absolute()
            if source.is_dir():
                raise _native.BadInput(
                    f"model {source}: a folder: give its .onnx file; `invar export` makes one of a "
                    f"checkpoint"
                )
            return source
        content = getattr(model, "model_proto", model)  # of what torch.onnx.export() returns
        if hasattr(content, "SerializeToString"):
            content = content.SerializeToString()
        if not isinstance(content, bytes):
            module = "torch" in sys.modules and isinstance(content, sys.modules["torch"].nn.Module)
            raise _native.BadInput(
                f"model: {type(model).__name__} is neither a path nor a ModelProto"
                + (": torch.onnx.export(module, inputs, dynamo=True) makes one" if module else "")
            )
        source = self.path / "model.onnx"
        source.write_bytes(content)
        return source

    @staticmethod
    def place(source: Path, target: Path, copy: bool) -> None:
        if target.exists() and target.samefile(source) and not (copy and target.is_symlink()):
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        if copy:
            shutil.copyfile(source, target)
        else:
            target.symlink_to(source.resolve())


def choices_text(choices: Choices) -> str:
    if not isinstance(choices, str) and not (
        isinstance(choices, list | tuple) and all(isinstance(name, str) for name in choices)
    ):
        raise _native.BadInput(f"choices: {choices!r} is neither a string nor a list of names")
    return choices if isinstance(choices, str) else ",".join(choices) or "none"


def sizes_of(dims: Mapping[str, int] | None) -> list[tuple[str, int]]:
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
