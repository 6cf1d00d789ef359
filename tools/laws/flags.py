"""Law 6: compiler flags that touch floating point stand in cmake/flags.cmake and cmake/isa.cmake
alone; nothing is fast; and every file of a build is compiled with -ffp-contract=off, a GPU's with
-fmad=false as well (given --build FOLDER)."""

import json
import re
from pathlib import Path

from law import CPP, code, finding, is_test, lines

# Never, anywhere.
FAST = re.compile(
    r"-ffast-math|-Ofast|-funsafe-math|-fassociative-math|-freciprocal-math|-ffinite-math-only|"
    r"-fno-signed-zeros|-mrecip|-march=native|-mtune=native|--use_fast_math|-ffp-contract=(fast|on)|-ftz=true"
)
# Only in the two files that own them.
OWNED = re.compile(
    r"-ffp-contract|-frounding-math|-ftrapping-math|-fno-trapping-math|-fexcess-precision|-fmad|-mfma\b|"
    r"-mavx|-msse|-mf16c|-mfpmath|-march=|-mcpu="
)
# Ways to say the same inside a source file.
PRAGMA = re.compile(
    r"FP_CONTRACT|fp_contract|FENV_ACCESS|float_control|#\s*pragma\s+GCC\s+(optimize|target)|"
    r"__attribute__\s*\(\(\s*(optimize|target)\b|\[\[gnu::(optimize|target)|__builtin_ia32_ldmxcsr"
)
OWNERS = {"cmake/flags.cmake", "cmake/isa.cmake"}
BUILD_FILES = re.compile(
    r"(^|/)CMakeLists\.txt$|\.cmake$|^CMakePresets\.json$|^setup\.sh$|^pyproject\.toml$"
)


def check(files):
    found = []
    for path, text in files.items():
        if text is None:
            continue
        if BUILD_FILES.search(path):
            text = re.sub(r"(^|\s)#.*", "", text, flags=re.M)
            for n, line in lines(text):
                if FAST.search(line):
                    found.append(
                        finding(path, n, f"{FAST.search(line).group(0)}: changes bits; remove it")
                    )
                elif path not in OWNERS and OWNED.search(line):
                    found.append(
                        finding(
                            path,
                            n,
                            f"{OWNED.search(line).group(0)} belongs into cmake/flags.cmake or "
                            f"cmake/isa.cmake",
                        )
                    )
        elif path.endswith(CPP) and not path.startswith(
            "src/base/"
        ):  # base has no float arithmetic; SHA-256 needs target()
            for n, line in lines(code(text, strings=False)):
                if PRAGMA.search(line) and not (
                    is_test(path) and "ldmxcsr" in line
                ):  # a test may spoil what env.h mends
                    found.append(
                        finding(
                            path,
                            n,
                            f"{PRAGMA.search(line).group(0)}: floating point is set in cmake/ alone",
                        )
                    )
    flags = files.get("cmake/flags.cmake") or ""
    if "-ffp-contract=off" not in re.sub(r"#.*", "", flags):
        found.append(finding("cmake/flags.cmake", 1, "does not set -ffp-contract=off"))
    if "compile_commands.json" in files:
        found += commands(files["compile_commands.json"])
    return found


def commands(text):
    """Every C++ file of a build was compiled with the contract flag last, and nothing fast."""
    found = []
    entries = json.loads(text)
    if not entries:
        return [finding("compile_commands.json", 1, "empty: nothing was built")]
    for e in entries:
        words = e.get("command", "").split() or e["arguments"]
        name = Path(e["file"]).name
        wanted = (
            {"-fmad": "-fmad=false", "-Xcompiler=-ffp": "-Xcompiler=-ffp-contract=off"}
            if name.endswith(".cu")
            else {"-ffp-contract": "-ffp-contract=off"}
        )
        for prefix, flag in wanted.items():
            if [w for w in words if w.startswith(prefix)][-1:] != [flag]:
                found.append(finding(name, 1, f"compiled without {flag}"))
        for w in words:
            if FAST.match(w):
                found.append(finding(name, 1, f"compiled with {w}"))
    return found


GOOD = {"cmake/flags.cmake": "add_compile_options(-ffp-contract=off)\n"}
SELF_TEST = [
    (
        "fast math",
        {**GOOD, "src/compiler/CMakeLists.txt": "target_compile_options(x PRIVATE -ffast-math)\n"},
        1,
    ),
    (
        "fast math in the owner",
        {"cmake/flags.cmake": "add_compile_options(-ffp-contract=off -Ofast)\n"},
        1,
    ),
    ("an instruction set elsewhere", {**GOOD, "CMakeLists.txt": "add_compile_options(-mfma)\n"}, 1),
    ("the flag is gone", {"cmake/flags.cmake": "# -ffp-contract=off\n"}, 1),
    ("a pragma", {**GOOD, "src/num/x.h": "#pragma STDC FP_CONTRACT ON\n"}, 1),
    ("an attribute", {**GOOD, "src/num/x.h": '__attribute__((optimize("O3"))) float f();\n'}, 1),
    (
        "a file built without it",
        {**GOOD, "compile_commands.json": '[{"file": "a.cc", "command": "g++ -O2 a.cc"}]'},
        1,
    ),
    (
        "a file built against it",
        {
            **GOOD,
            "compile_commands.json": '[{"file": "a.cc", "command": "g++ -ffp-contract=off '
            '-ffp-contract=fast a.cc"}]',
        },
        2,
    ),
    (
        "a GPU's without its own",
        {
            **GOOD,
            "compile_commands.json": '[{"file": "a.cu", "command": "nvcc '
            '-Xcompiler=-ffp-contract=off a.cu"}]',
        },
        1,
    ),
    (
        "a GPU's as it should be",
        {
            **GOOD,
            "compile_commands.json": '[{"file": "a.cu", "command": "nvcc -fmad=false '
            '-Xcompiler=-ffp-contract=off a.cu"}]',
        },
        0,
    ),
    (
        "as it should be",
        {
            **GOOD,
            "compile_commands.json": '[{"file": "a.cc", "command": "g++ -ffp-contract=off a.cc"}]',
            "cmake/isa.cmake": "set(F -mavx2 -mfma)\n",
            "src/x.cc": "// FP_CONTRACT\n",
        },
        0,
    ),
]
