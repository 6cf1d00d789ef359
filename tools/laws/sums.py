"""Law 3: no room writes its own sum. The reduction tree exists once, in src/num/reduce; the contraction schedule once, in
src/num/contract.

What a script can see: in a room's kernels, standard-library sums, and a float variable or element that is built up from
itself (x += ..., x = x + ..., x = fma(a, b, x)). A recurrence that is the operation itself, such as the fold of online
softmax, is written law of its own: it cites its clause (`attention.9`) on the line or within the three lines above."""

import re

from law import CPP, code, finding, is_test, lines

LIBRARY = re.compile(r"std::(accumulate|reduce|inner_product|transform_reduce|partial_sum|inclusive_scan|exclusive_scan)\b")
FLOAT = re.compile(r"\b(?:float|double|__m\d+d?|float32x4_t|V|Vec|Lane|lane::\w+)\s*[*&]?\s*(?:__restrict\s+)?([a-z]\w*)\s*(?=[=;,\[({)])")
MORE = re.compile(r",\s*([a-z]\w*)\s*=")


def floats(text):
    """Names that the text declares as floating-point variables, arrays or pointers."""
    names = set()
    for line in text.split("\n"):
        for m in FLOAT.finditer(line):
            names.add(m.group(1))
            if line[m.end():].lstrip().startswith("="):
                names.update(n.group(1) for n in MORE.finditer(line, m.end()))
    return names


def check(files):
    found = []
    for path, text in files.items():
        if text is None or not re.match(r"src/ops/[a-z0-9_]+/", path) or not path.endswith(CPP):
            continue
        if is_test(path) or re.search(r"/import\.(cc|h)$", path):
            continue
        raw = text.split("\n")
        clause = re.compile(rf"//.*\b{path.split('/')[2]}\.\d+")
        text = code(text)
        names = floats(text)
        for n, line in lines(text):
            if LIBRARY.search(line):
                found.append(finding(path, n, "a library sum; use num/reduce or num/contract"))
            for m in re.finditer(r"(?<![\w.>])([a-z]\w*)((?:\[[^\]]*\])*)\s*(\+=|-=|=(?!=)([^;]*;?))", line):
                name, index, op, rest = m.groups()
                if name not in names or re.search(rf"\b(?:u?int\w*|size_t|ptrdiff_t)\s+(?:\w+\s*=[^;]*,\s*)?{name}\b", line):
                    continue  # no float, or an index of this loop that shares a float's name
                me = re.escape(name + index)
                own = op in ("+=", "-=")
                own = own or re.match(rf"\s*{me}\s*[+-]", rest or "") or re.search(rf"[+]\s*{me}\s*;", rest or "")
                own = own or re.search(rf"\bfma\w*\s*\(.*,\s*{me}\s*\)", rest or "")
                if own and not any(clause.search(above) for above in raw[max(0, n - 4):n]):
                    found.append(finding(path, n, f"'{name}{index}' is summed here; use num/reduce or num/contract"))
    return found


SELF_TEST = [
    ("a running sum", {"src/ops/softmax/cpu.cc": "float s = 0;\nfor (;;) s += x[i];\n"}, 1),
    ("spelled out", {"src/ops/softmax/cpu.cc": "float s = 0.0f, t = 0;\nt = t + x[i];\n"}, 1),
    ("by fma", {"src/ops/matmul/reference.cc": "float acc = 0;\nacc = std::fma(a[k], b[k], acc);\n"}, 1),
    ("into memory", {"src/ops/matmul/cpu.cc": "float* y = out;\ny[i] += a * b;\n"}, 1),
    ("from the library", {"src/ops/rmsnorm/cpu.cc": "return std::accumulate(x, x + n, 0.0f);\n"}, 1),
    ("behind an index loop", {"src/ops/matmul/cpu.cc": "float s = 0;\nfor (int j = 0; j < n; ++j) s = std::fma(a[j], b[j], s);\n"}, 1),
    ("another room's clause", {"src/ops/matmul/cpu.cc": "float s = 0;\ns += a;  // attention.9\n"}, 1),
    ("its own clause", {"src/ops/attention/cpu.cc": "float s = 0;\n// attention.9\ns = std::fma(s, f, s);\n"}, 0),
    ("indices, one fma, tests", {
        "src/ops/rope/cpu.cc": "int64_t i = 0;\ni += 8;\nfloat y = std::fma(a, b, c);\nfloat z = x1 * c - x2 * s;\n",
        "src/ops/rope/rope_test.cc": "float s = 0; s += 1;\n",
        "src/num/reduce/row.h": "float s = 0; s += 1;\n"}, 0),
]
