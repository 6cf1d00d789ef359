"""corpus.py FOLDER: writes the models of ONNX's node tests as the initial corpus."""

import sys
import warnings
from pathlib import Path

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
with warnings.catch_warnings():  # some cases divide by zero deliberately
    warnings.simplefilter("ignore")
    from onnx.backend.test.loader import load_model_tests

    for case in load_model_tests(kind="node"):
        (folder / f"{case.name}.onnx").write_bytes(case.model.SerializeToString())
