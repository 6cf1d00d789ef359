"""Law 2: includes point one way, and a stage is used through its public headers.

A stage is a folder of src. The headers flat in it are public; those in its sub-folders are private
to it, but for base and num, which are libraries of small parts, and generate, which programs alone
include: their sub-folders only group them. OPENED lists what else is open. A room is a folder of
src/ops; all its headers are its own, and its import code sees one header of the compiler. Only
src/compiler includes MLIR; third-party code stays where it is needed. What says uint64_t reaches
<cstdint> through the includes of the project, since each standard library brings another part.
"""

import posixpath
import re

from law import CPP, code, finding, lines

# What the program text of a stage may include beside its own headers.
MAY = {
    "base": set(),
    "device": {"base"},
    "shape": set(),
    "num": set(),
    "weights": {"base", "num"},
    "audio": {"base", "num"},
    "kernels": {"base", "device", "num"},
    "ops": {"base", "num", "weights", "kernels"},
    "prompt": {"base"},
    "plan": {"base", "shape"},
    "onnx": {"base", "shape", "weights"},
    # num: inverse frequencies, correctly rounded; prompt: patterns of names of modules
    "checkpoint": {"base", "num", "weights", "onnx", "prompt"},
    "compiler": {"base", "shape", "num", "weights", "onnx", "plan", "kernels"},
    "run": {"base", "device", "shape", "num", "weights", "plan", "kernels"},
    "grammar": {"base"},
    "sample": {"base", "num", "grammar"},
    "hub": {"base", "device"},
    "signature": {"base"},
    "receipt": {"base", "plan", "grammar", "sample", "signature"},
    "dispute": {"base", "device", "num", "weights", "plan", "kernels", "run", "sample", "receipt"},
    "generate": {
        "audio",
        "base",
        "device",
        "hub",
        "num",  # ArithmeticEnv: Python's threads arrive in any environment
        "weights",
        "onnx",
        "checkpoint",
        "compiler",
        "plan",
        "run",
        "prompt",
        "grammar",
        "sample",
        "signature",
        "receipt",
        "dispute",
    },
    "conformance": {"base", "device", "num", "kernels"},
    "http": {"base"},
    "store": {"base", "device"},
    "serve": {"base", "http", "store", "generate", "prompt", "grammar", "receipt", "sample"},
}
IMPORT_CODE = re.compile(r"src/ops/[a-z0-9_]+/(import([./]|_[a-z0-9_]+\.)|torch\.cc)")
OF_IMPORT_CODE = {"base", "num", "ops", "compiler"}
ROOM_API = "compiler/room_api.h"  # all that import code sees of the compiler
OF_TESTS = {"ops": {"device"}, "num": {"base"}}  # what the tests of a stage may include beyond that
LIBRARIES = {"base", "num", "generate"}

# (who, private headers, why): who may include what of another stage, by regular expressions.
OPENED = [
    (
        r"src/(ops|conformance)/",
        r"kernels/(cpu|cuda|vendor)/",
        "the parts that kernels are made of",
    ),
    (
        r"src/checkpoint/adapter/",
        r"prompt/regex/regex\.h$",
        "an adapter names modules by a pattern",
    ),
    (
        r"(src/(ops|conformance|run/prepare|run/execute)|bench/programs)/",
        r"kernels/fusion/",
        "which kernels run a chain of operations is an interface of src/kernels",
    ),
    (
        r"src/(ops|run/weights)/",
        r"kernels/blocks/",
        "which kernels read packed weights is an interface of src/kernels",
    ),
    (
        r"(src/(ops|run/weights)|bench/programs)/",
        r"weights/tiles/",
        "a loader makes what kernels of a GPU read",
    ),
    (
        r"src/run/prepare/executable\.h$|tests/operation_sets/",
        r"kernels/vendor/vendor_kernel\.h$",
        "the table of library rows is an interface of src/kernels",
    ),
    (
        r"tests/fuzz/parsers/",
        r"checkpoint/adapter/adapter\.h|hub/repo/listing\.h|prompt/regex/matches\.h|"
        r"serve/(batch/row|protocol/call)\.h",
        "readers of strangers' files are fuzzed alone",
    ),
    (r"bench/load/", r"hub/http/curl\.h$", "a load generator is a client of HTTP"),
]
USED = set()  # of OPENED, by the last check
# Of the parts that cross-compile to anything, none may need a package.
BARE = {
    "base",
    "device",
    "shape",
    "num",
    "weights",
    "audio",
    "kernels",
    "ops",
    "plan",
    "run",
    "sample",
    "dispute",
    "conformance",
}
PACKAGE = re.compile(r"[<\"](nlohmann|CLI|google|onnx/onnx|onnx\.pb|openssl|mpfr|gmp)")
MLIR = re.compile(r"[<\"](mlir|llvm|llvm-c|mlir-c)/")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
HERE = "tools/laws/includes.py"
OUTSIDE = ("apps/", "bench/", "tests/", "tools/")


def may_include(path, stage):
    """The stages whose headers `path` may include; any, outside src."""
    if stage is None:
        return set(MAY)
    if IMPORT_CODE.match(path):
        return OF_IMPORT_CODE
    return (
        MAY[stage] | {stage} | (OF_TESTS.get(stage, set()) if path.endswith("_test.cc") else set())
    )


def is_private(path, stage, header):
    """Whether `header` (STAGE/...) belongs to another stage, or another room, and is none of its
    public ones."""
    parts = header.split("/")
    if parts[0] == "compiler" and IMPORT_CODE.match(path):
        return header != ROOM_API
    if parts[0] == "ops":
        return not path.startswith(f"src/ops/{parts[1]}/")
    if parts[0] == stage or parts[0] in LIBRARIES or len(parts) == 2:
        return False
    opened = [
        k
        for k, (who, what, _) in enumerate(OPENED)
        if re.match(who, path) and re.match(what, header)
    ]
    USED.update(opened)
    return not opened


INTEGER = re.compile(r"\bu?int(8|16|32|64)_t\b")
BRINGS_INTEGERS = re.compile(r"cstdint|stdint\.h|cinttypes|.*/.*|arm_neon\.h|immintrin\.h")


def lacks_integers(files):
    """Lines of the files whose integer types arrive by chance. Third-party headers, which are none
    of a standard library, may bring them."""
    reached = {}

    def included(path):
        for line in code(files[path]).splitlines():
            if m := INCLUDE.match(line):
                yield m.groups()

    def reaches(path):
        if path in reached:
            return reached[path]
        reached[path] = False  # in a circle the others decide
        for quote, name in included(path):
            folders = (posixpath.dirname(path), "src", "tests", "apps", "bench")
            own = [posixpath.normpath(posixpath.join(f, name)) for f in folders]
            own = next((f for f in own if files.get(f) is not None), None)
            if own:
                brings = reaches(own)
            else:  # a generated header, or one of a library
                brings = quote == '"' or BRINGS_INTEGERS.fullmatch(name)
            if brings:
                reached[path] = True
                break
        return reached[path]

    for path, text in files.items():
        if text is None or not path.startswith(("src/", *OUTSIDE)) or not path.endswith(CPP):
            continue
        for n, line in lines(code(text, strings=False)):
            if m := INTEGER.search(line):
                if not reaches(path):
                    yield finding(path, n, f"says {m.group()}; include <cstdint>")
                break


def check(files):
    found = list(lacks_integers(files))
    stages = 0
    USED.clear()
    for path, text in files.items():
        if text is None or not path.startswith(("src/", *OUTSIDE)) or not path.endswith(CPP):
            continue
        stage = path.split("/")[1] if path.startswith("src/") else None
        stages += stage is not None
        if stage and stage not in MAY:
            found.append(
                finding(
                    path,
                    1,
                    f"src/{stage} is no stage of the river; tools/laws/includes.py lists them",
                )
            )
            continue
        imports = bool(IMPORT_CODE.match(path))
        may = may_include(path, stage)
        for n, line in lines(code(text)):
            m = INCLUDE.match(line)
            if not m:
                continue
            quote, name = m.groups()
            first = name.split("/")[0]
            if ".." in name.split("/"):
                found.append(finding(path, n, f"includes {name}; write the path from src/"))
            if MLIR.search(quote + name) and stage != "compiler":
                found.append(
                    finding(
                        path,
                        n,
                        f"includes {name}; only src/compiler includes MLIR",
                    )
                )
            if (
                PACKAGE.match(quote + name)
                and stage in BARE
                and not imports
                and not path.endswith("_test.cc")
            ):
                found.append(
                    finding(path, n, f"includes {name}; src/{stage} must build without any package")
                )
            if name.startswith("openssl/") and stage != "signature":
                found.append(finding(path, n, f"includes {name}; only src/signature knows OpenSSL"))
            if quote != '"' or "/" not in name or first not in MAY:
                continue
            if first not in may:
                found.append(
                    finding(
                        path,
                        n,
                        f"includes {name}; {stage} may include only {', '.join(sorted(may))}",
                    )
                )
            elif is_private(path, stage, name):
                owner = "the room" if first == "ops" else f"src/{first}"
                other = (
                    ROOM_API if imports and first == "compiler" else f"a header flat in src/{first}"
                )
                found.append(
                    finding(
                        path, n, f"includes {name}, which is private to {owner}; include {other}"
                    )
                )
    if HERE in files:  # the whole tree
        for k in sorted(set(range(len(OPENED))) - USED):
            found.append(
                finding(HERE, 1, f"OPENED: nobody includes {OPENED[k][1]} any longer; remove it")
            )
    if not stages:
        found.append(finding("src", 1, "no C++ files found: this law has nothing to hold on to"))
    return found


SELF_TEST = [
    ("an exception that is none any longer", {HERE: "", "src/run/x.cc": "int x;\n"}, len(OPENED)),
    ("against the river", {"src/num/x.cc": '#include "run/session.h"\n'}, 1),
    ("the runtime meets the compiler", {"src/run/x.h": '#include "compiler/compiler.h"\n'}, 1),
    (
        "the compiler meets the runtime",
        {"src/compiler/passes/x.h": '#include "run/session.h"\n'},
        1,
    ),
    ("MLIR in the runtime", {"src/run/x.cc": '#include "mlir/IR/Value.h"\n'}, 1),
    ("MLIR in an app", {"src/run/x.cc": "\n", "apps/cli/x.cc": '#include "mlir/IR/Value.h"\n'}, 1),
    ("JSON in a kernel", {"src/ops/add/cpu.cc": "#include <nlohmann/json.hpp>\n"}, 1),
    ("an integer that arrives by chance", {"src/run/x.h": "#include <string>\nuint64_t x;\n"}, 1),
    (
        "integers by a header of the project",
        {
            "src/run/x.h": '#include "run/y.h"\nuint64_t x;\n',
            "src/run/y.h": '#include "run/x.h"\n#include <cstdint>\n',
        },
        0,
    ),
    ("a relative path", {"src/run/x.cc": '#include "../plan/plan.h"\n'}, 1),
    ("a new stage", {"src/misc/x.cc": "\n"}, 1),
    ("another stage's private header", {"src/run/x.cc": '#include "plan/text/cursor.h"\n'}, 1),
    (
        "an app in a stage's privates",
        {"src/run/x.cc": "\n", "apps/cli/x.cc": '#include "run/segments/segment.h"\n'},
        1,
    ),
    ("a stage uses the journey", {"src/receipt/x.cc": '#include "generate/verify/verify.h"\n'}, 1),
    ("another room's header", {"src/ops/add/cpu.cc": '#include "ops/mul/table.h"\n'}, 1),
    (
        "import code in the privates of the driver",
        {"src/ops/add/import/x.h": '#include "compiler/emit/weight_hashing.h"\n'},
        1,
    ),
    (
        "import code and the driver's own header",
        {"src/ops/add/import.cc": '#include "compiler/compiler.h"\n'},
        1,
    ),
    ("MLIR in import code", {"src/ops/add/import.cc": '#include "mlir/IR/Value.h"\n'}, 1),
    (
        "a kernel that knows the compiler",
        {"src/ops/add/cpu.cc": '#include "compiler/lowering/op_builder.h"\n'},
        1,
    ),
    (
        "the runtime opens the kernels' parts",
        {"src/run/x.cc": '#include "kernels/cpu/vector_io.h"\n'},
        1,
    ),
    (
        "with the river",
        {
            "src/run/x.cc": '#include "kernels/op_contract.h"\n#include <vector>\n'
            '// #include "compiler/compiler.h"\n',
            "src/run/execute/x.cc": '#include "run/prepare/x.h"\n#include "base/file/file.h"\n'
            '#include "num/lane/lane.h"\n',
            "src/ops/add/cpu.cc": '#include "kernels/cpu/vector_io.h"\n#include "ops/add/table.h"\n',
            "src/ops/add/import.cc": '#include "compiler/room_api.h"\n',
            "src/ops/add/import/more.h": '#include "compiler/room_api.h"\n',
            "src/ops/add/torch.cc": '#include "compiler/room_api.h"\n',
            "apps/cli/x.cc": '#include "run/session.h"\n#include "base/file/file.h"\n#include "npy.h"\n',
        },
        0,
    ),
]
