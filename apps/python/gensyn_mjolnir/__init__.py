"""The Python interface of REE's compiler, for code that imports it: convert() and CompileOptions
with the same signatures, defaults and meanings, computed by Invar.

The environment variable MJOLNIR_DEBUG keeps a temporary folder of artifacts, names it on standard
error, and adds the text of each stage of the compiler. The bits are those of Invar's specification,
not those of REE."""

import os
from dataclasses import dataclass
from pathlib import Path

import invar
from invar.modules import convert as _module

__all__ = ["CompileOptions", "convert"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileOptions:
    """artifacts_dir: a folder for intermediate artifacts; None: a temporary one, kept where
    MJOLNIR_DEBUG is set. colocate_tensors: copy the model's external tensor files there instead of
    linking them. requires_reproducibility: operations are reproducible; False: torch's."""

    artifacts_dir: str | None = None
    colocate_tensors: bool = False
    requires_reproducibility: bool = True


def convert(onnx_model_or_path: "str | Path | onnx.ModelProto",  # noqa: F821  onnx is not imported
            options: CompileOptions = CompileOptions()) -> "torch.nn.Module":  # noqa: F821  # fmt: skip
    """The ONNX model (a path or a ModelProto) as a torch.nn.Module: invar.convert()."""
    if not isinstance(options, CompileOptions):
        raise invar.BadInput(
            f"options: {type(options).__name__} is no gensyn_mjolnir.CompileOptions"
        )
    wanted = invar.CompileOptions(
        artifacts_dir=options.artifacts_dir,
        colocate_tensors=options.colocate_tensors,
        requires_reproducibility=options.requires_reproducibility,
    )
    debug = bool(os.environ.get("MJOLNIR_DEBUG"))
    return _module.converted(onnx_model_or_path, wanted, None, debug)
