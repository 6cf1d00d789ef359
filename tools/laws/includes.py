"""Law 2: includes point one way; only src/compiler and rooms' import.cc know MLIR; third-party code stays where it is needed."""

import re

from law import CPP, code, finding, lines

MAY = {
    "base": {"base"},
    "num": {"base", "num"},
    "ops": {"base", "num", "ops"},
    "prompt": {"base", "prompt"},
    "plan": {"base", "plan"},
    "onnx": {"base", "num", "onnx"},  # num: inverse frequencies, correctly rounded
    "ir": {"base", "onnx", "ops", "num", "plan", "ir"},
    "run": {"base", "num", "ops", "plan", "run"},
    "sample": {"base", "num", "sample"},
    "receipt": {"base", "plan", "sample", "receipt"},
    # The journey uses every stage, and no stage uses it. num: ArithmeticEnv, since callers of Python bring threads of any environment.
    "generate": {"base", "checkpoint", "compiler", "device", "generate", "num", "onnx", "plan", "prompt", "receipt", "run", "sample"},
}
# Of the parts that cross-compile to anything, none may need a package.
BARE = {"base", "num", "ops", "plan", "run", "sample"}
PACKAGE = re.compile(r"[<\"](nlohmann|CLI|google|onnx/onnx|onnx\.pb|openssl|mpfr|gmp)")
MLIR = re.compile(r"[<\"](mlir|llvm|llvm-c|mlir-c)/")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def check(files):
    found = []
    stages = 0
    for path, text in files.items():
        if text is None or not path.startswith("src/") or not path.endswith(CPP):
            continue
        stage = path.split("/")[1]
        stages += 1
        if stage not in MAY:
            found.append(finding(path, 1, f"src/{stage} is no stage of the river; tools/laws/includes.py lists them"))
            continue
        imports = bool(re.match(r"src/ops/[a-z0-9_]+/import(_[a-z]+)?\.(cc|h)$", path))
        may = MAY["ir"] if imports else MAY[stage]
        test = path.endswith("_test.cc")
        for n, line in lines(code(text)):
            m = INCLUDE.match(line)
            if not m:
                continue
            name = m.group(2)
            if ".." in name.split("/"):
                found.append(finding(path, n, f"includes {name}; write the path from src/"))
            if MLIR.search(m.group(1) + name) and stage != "ir" and not imports:
                found.append(finding(path, n, f"includes {name}; only src/compiler and rooms' import.cc know MLIR"))
            if PACKAGE.match(m.group(1) + name) and stage in BARE and not imports and not test:
                found.append(finding(path, n, f"includes {name}; src/{stage} must build without any package"))
            first = name.split("/")[0]
            if m.group(1) == '"' and "/" in name and first in MAY and first not in may:
                found.append(finding(path, n, f"includes {name}; {stage} may include only {', '.join(sorted(may))}"))
    if not stages:
        found.append(finding("src", 1, "no C++ files found: this law has nothing to hold on to"))
    return found


SELF_TEST = [
    ("against the river", {"src/num/x.cc": '#include "run/session.h"\n'}, 1),
    ("run meets ir", {"src/run/x.h": '#include "compiler/compiler.h"\n'}, 1),
    ("MLIR in the runtime", {"src/run/x.cc": '#include "mlir/IR/Value.h"\n'}, 1),
    ("JSON in a kernel", {"src/ops/add/cpu.cc": "#include <nlohmann/json.hpp>\n"}, 1),
    ("a relative path", {"src/run/x.cc": '#include "../plan/plan.h"\n'}, 1),
    ("a new stage", {"src/misc/x.cc": "\n"}, 1),
    ("a stage uses the journey", {"src/receipt/x.cc": '#include "generate/verify.h"\n'}, 1),
    ("with the river", {"src/run/x.cc": '#include "kernels/kernel.h"\n#include <vector>\n// #include "compiler/compiler.h"\n',
                        "src/ops/add/import.cc": '#include "mlir/IR/Value.h"\n#include "ir/x.h"\n',
                        "src/ops/add/import_more.h": '#include "ir/x.h"\n'}, 0),
]
