"""ONNX model -> torch.nn.Module, by the source that the compiler writes."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from invar import _native
from invar.modules.artifacts import Artifacts, Choices, Model
from invar.modules.loading import build

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileOptions:
    """artifacts_dir: where plan, source and constants go; None: a temporary folder, kept where
    INVAR_DEBUG is set. colocate_tensors: copy the model's external tensor files into the artifacts
    instead of linking them. requires_reproducibility: operations are Invar's (same bits
    everywhere); False: plain operations of torch. choices: numerics choices that may be applied
    (spec/choices.md): "all", "none", or their names."""

    artifacts_dir: str | os.PathLike[str] | None = None
    colocate_tensors: bool = False
    requires_reproducibility: bool = True
    choices: Choices = "all"

    def __post_init__(self) -> None:
        if self.artifacts_dir is not None and not isinstance(self.artifacts_dir, str | os.PathLike):
            raise _native.BadInput(f"artifacts_dir: {type(self.artifacts_dir).__name__} is no path")
        for name in ("colocate_tensors", "requires_reproducibility"):
            if not isinstance(getattr(self, name), bool):
                raise _native.BadInput(f"{name}: {getattr(self, name)!r} is neither True nor False")


def convert(
    onnx_model_or_path: Model,
    options: CompileOptions = CompileOptions(),
    *,
    dims: Mapping[str, int] | None = None,
    numerics: str = "fp32",
) -> "torch.nn.Module":
    """A torch.nn.Module that computes what the ONNX model (a path or an onnx.ModelProto) says.
    dims, numerics: as in invar.compile().

    Its source is module.py in the artifacts. forward() takes the model's inputs in order, or by
    name, and returns its output, or a tuple of them. With requires_reproducibility its bytes are
    those of invar.compile() on the same model."""
    return converted(onnx_model_or_path, options, dims, False, numerics)


def converted(
    onnx_model_or_path: Model,
    options: CompileOptions,
    dims: Mapping[str, int] | None,
    debug: bool,
    numerics: str = "fp32",
) -> "torch.nn.Module":
    """convert(); debug: as if INVAR_DEBUG were set."""
    try:
        import torch  # noqa: F401  the module is one of torch's
    except ImportError:
        raise _native.BadInput(
            "convert() makes a torch.nn.Module: install torch; invar.compile() needs none"
        ) from None
    if not isinstance(options, CompileOptions):
        raise _native.BadInput(f"options: {type(options).__name__} is no CompileOptions")
    artifacts = Artifacts(options.artifacts_dir, debug)
    described = artifacts.compile(
        onnx_model_or_path,
        None,
        options.colocate_tensors,
        options.choices,
        dims=dims,
        torch_module="reproducible" if options.requires_reproducibility else "plain",
        numerics=numerics,
    )
    source = (artifacts.path / "module.py").read_text(encoding="utf-8")
    module = build(source, described["digest"])
    module.load(artifacts.path)
    return module
