"""Law 3: no room writes its own sum. The reduction tree exists once, in src/num/reduce; the
contraction schedule once, in src/num/contract.

What a script can see: in a room's kernels, standard-library sums, and a floating-point value that
is built up from itself (x += ..., x = x + ..., x = fma(a, b, x), x = add(x, a)). The law knows what
a name is from its declaration in the scope around: a step of a pointer, an iterator or an integer
(p += n) is no sum, y[i] += of a pointer to float is one. A recurrence that is the operation itself,
such as the fold of online softmax, is written law of its own: it cites its clause (`attention.9`)
on the line or within the three lines above. So does a kernel that must write the schedule out, as
its lanes hold other things as well (`contraction.2`, `reduction.2`).
"""

import re

from law import CPP, code, finding, is_test, lines

LIBRARY = re.compile(
    r"std::(accumulate|reduce|inner_product|transform_reduce|partial_sum|inclusive_scan|exclusive_scan)\b"
)
# Floating-point types: C++'s, the processors' vectors, and the lanes of src/num/lane (F: floats, D:
# doubles).
FLOAT = re.compile(
    r"(?:\w+::)*(?:float[234]?|double[234]?|__m\d+d?|float\d+x\d+_t|FF?|DD?|V|Vec|Lane)$|lane::\w+$"
)
NO_TYPE = set(
    """
    return else case delete new throw goto using namespace const static constexpr typename
    class struct enum union template operator sizeof if while for do switch inline public
    private extern volatile mutable co_return unsigned signed explicit virtual friend requires
    auto
    """.split()
)
# A declaration: TYPE, pointers and references, NAME, dimensions; what follows a comma shares the
# type.
DECLARATION = re.compile(
    r"(?<![\w.>:])(?P<type>[A-Za-z_][\w:]*)(?P<of><[^<>;{}()]*(?:<[^<>;{}()]*>)?[^<>;{}()]*>)?(?:\s+const\b)?"
    r"(?P<stars>(?:\s*(?:[*&]|const\b|__restrict(?:__)?\b))*)\s*(?<![\w])(?P<name>[a-z]\w*)\b\s*"
    r"(?P<dims>(?:\[[^\]]*\]\s*)*)(?=[=;,({):]|$)"
)
MORE = re.compile(
    r"\s*(?P<stars>(?:[*&]|const\b|__restrict(?:__)?\b|\s)*)(?P<name>[a-z]\w*)\s*(?P<dims>(?:\[[^\]]*\]\s*)*)(?=[=;,({])"
)
MARK = re.compile(r"[][(){};,]")
TEMPLATE = re.compile(r"\btemplate\s*<([^{};]*?)>\s*(?:__|[A-Za-z\[])")
ARRAY = re.compile(r"(?:std::)?(?:array|vector|span)$")
ASSIGNED = re.compile(
    r"(?P<deref>\*\s*)*(?<![\w.>])(?P<name>[a-z]\w*)(?P<index>(?:\[[^\]]*\])*)\s*(?P<op>\+=|-=|=(?!=))(?=(?P<rest>[^;]*;?))"
)


def depth_of(type_name, of, stars, dims, templates):
    """How often what is declared must be indexed to reach a floating-point value; None where it
    never does."""
    depth = stars.count("*") + dims.count("[")
    if ARRAY.match(type_name) and of:
        inner = of[1:-1].split(",")[0].strip()
        m = re.match(r"(?:const\s+)?([\w:]+)(<.*>)?\s*((?:\*|const|\s)*)$", inner)
        below = depth_of(m.group(1), m.group(2) or "", m.group(3), "", templates) if m else None
        return None if below is None else depth + 1 + below
    if type_name in templates or not FLOAT.match(type_name):
        return None
    return depth


def declarations(text):
    """(position, name, depth) of every declaration that the text seems to hold, in order."""
    found = []
    templates = set()  # names of types that are parameters here, as in `template <class F>`
    for m in TEMPLATE.finditer(text):
        templates.update(re.findall(r"\b(?:class|typename)\s+(\w+)", m.group(1)))
    for m in DECLARATION.finditer(text):
        if m["type"] in NO_TYPE or (
            not m["stars"].strip() and text[m.start("name") - 1] not in " \n"
        ):
            continue
        found.append(
            (
                m.start("name"),
                m["name"],
                depth_of(m["type"], m["of"], m["stars"], m["dims"], templates),
            )
        )
        for at, stars, name, dims in siblings(text, m.end()):
            found.append((at, name, depth_of(m["type"], m["of"], stars, dims, templates)))
    return sorted(found, key=lambda d: d[0])


def siblings(text, at):
    """The further names of a declaration whose first ends at `at`: (position, stars, name,
    dimensions)."""
    open_brackets = 0
    while mark := MARK.search(text, at):
        at, c = mark.start(), mark.group(0)
        if c in "([{":
            open_brackets += 1
        elif c in ")]}":
            open_brackets -= 1
            if open_brackets < 0:
                return  # a parameter: the next one names its own type
        elif c == ";" and not open_brackets:
            return
        elif c == "," and not open_brackets:
            m = MORE.match(text, at + 1)
            if not m:
                return
            yield m.start("name"), m["stars"], m["name"], m["dims"]
        at += 1


def sums(text):
    """(line, what) of every floating-point value that is built up from itself, by the declarations
    in scope."""
    events = [(at, "declared", (name, depth)) for at, name, depth in declarations(text)]
    events += [(m.start(), m.group(0), None) for m in re.finditer(r"[{}();]", text)]
    events += [(m.start("name"), "assigned", m) for m in ASSIGNED.finditer(text) if builds_up(m)]
    scopes = [{}]  # one for each open brace: {name: depth}
    # What parentheses declared: parameters, or a loop's variables, until its body begins or its
    # statement ends.
    pending = {}
    parens = [0]
    found = []
    for at, what, data in sorted(events, key=lambda e: e[0]):
        if what == "{":
            scopes.append(pending)
            parens.append(0)
            pending = {}
        elif what == "}":
            if len(scopes) > 1:
                scopes.pop()
                parens.pop()
        elif what in "()":
            parens[-1] += 1 if what == "(" else -1
        elif what == ";":
            pending = pending if parens[-1] > 0 else {}
        elif what == "declared":
            (pending if parens[-1] > 0 else scopes[-1])[data[0]] = data[1]
        else:
            name, steps = data["name"], (data["deref"] or "").count("*") + data["index"].count("[")
            depth = next((s[name] for s in [pending, *reversed(scopes)] if name in s), None)
            if depth is not None and steps >= depth:
                found.append((text.count("\n", 0, at) + 1, name + data["index"]))
    return found


def builds_up(m):
    me, rest = re.escape(m["name"] + m["index"]), m["rest"]
    if m["op"] in ("+=", "-="):
        return True
    if m["name"] + m["index"] not in rest:
        return False
    return bool(
        re.match(rf"\s*{me}\s*[+-]", rest)
        or re.search(rf"[+]\s*{me}\s*;", rest)
        or re.search(rf"\bfma\w*\s*\(.*,\s*{me}\s*\)", rest, re.S)
        or re.match(
            rf"\s*(?:\w+::)*add\s*\(\s*{me}\s*,|\s*(?:\w+::)*add\s*\(.*,\s*{me}\s*\)\s*;",
            rest,
            re.S,
        )
    )


def check(files):
    found = []
    for path, text in files.items():
        if (
            text is None
            or not re.match(r"src/(ops/[a-z0-9_]+|kernels/(cpu|cuda))/", path)
            or not path.endswith(CPP)
        ):
            continue
        if is_test(path) or re.search(r"/import\.(cc|h)$|/import/", path):
            continue
        raw = text.split("\n")
        clause = re.compile(rf"//.*\b(?:{path.split('/')[2]}|contraction|reduction)\.\d+")
        text = code(text, strings=False)
        for n, line in lines(text):
            if LIBRARY.search(line):
                found.append(finding(path, n, "a library sum; use num/reduce or num/contract"))
        for n, what in sums(text):
            if not any(clause.search(above) for above in raw[max(0, n - 4) : n]):
                found.append(
                    finding(path, n, f"'{what}' is summed here; use num/reduce or num/contract")
                )
    return found


SELF_TEST = [
    ("a running sum", {"src/ops/softmax/cpu.cc": "float s = 0;\nfor (;;) s += x[i];\n"}, 1),
    ("spelled out", {"src/ops/softmax/cpu.cc": "float s = 0.0f, t = 0;\nt = t + x[i];\n"}, 1),
    (
        "by fma",
        {"src/ops/matmul/reference.cc": "float acc = 0;\nacc = std::fma(a[k], b[k], acc);\n"},
        1,
    ),
    (
        "by lanes",
        {
            "src/ops/matmul/cpu.cc": "num::F acc = num::zero();\nacc = num::add(acc, x);\nD d[4];\n"
            "d[i] = fma(a, b, d[i]);\n"
        },
        2,
    ),
    ("into memory", {"src/ops/matmul/cpu.cc": "float* y = out;\ny[i] += a * b;\n"}, 1),
    (
        "into what a pointer shows",
        {"src/ops/matmul/cpu.cc": "void f(float* __restrict y, int n) {\n  *y += n;\n}\n"},
        1,
    ),
    (
        "into a table",
        {
            "src/ops/matmul/cpu.cc": "float sum[2][8] = {};\nstd::array<float, 4> t;\n"
            "sum[i][j] += a;\nt[i] -= a;\n"
        },
        2,
    ),
    (
        "from the library",
        {"src/ops/rmsnorm/cpu.cc": "return std::accumulate(x, x + n, 0.0f);\n"},
        1,
    ),
    (
        "behind an index loop",
        {
            "src/ops/matmul/cpu.cc": "float s = 0;\nfor (int j = 0; j < n; ++j) s = std::fma(a[j], "
            "b[j], s);\n"
        },
        1,
    ),
    (
        "another room's clause",
        {"src/ops/matmul/cpu.cc": "float s = 0;\ns += a;  // attention.9\n"},
        1,
    ),
    (
        "of a name that is an index elsewhere",
        {
            "src/ops/matmul/cpu.cc": "void f(int64_t s) { s += 1; }\nvoid g(float s) {\n  s += 1;\n"
            "}\nvoid h(int* s) { s[0] += 1; }\n"
        },
        1,
    ),
    (
        "after an inner scope of another type",
        {"src/ops/matmul/cpu.cc": "float s = 0;\nfor (;;) { int s = 0; s += 1; }\ns += x;\n"},
        1,
    ),
    (
        "in a lambda",
        {"src/ops/matmul/cpu.cc": "each(n, [&](int64_t i, float* y) { y += i, y[i] += 2; });\n"},
        1,
    ),
    ("in a part of kernels", {"src/kernels/cuda/x.cuh": "float s = 0;\ns += a;\n"}, 1),
    (
        "its own clause",
        {"src/ops/attention/cpu.cc": "float s = 0;\n// attention.9\ns = std::fma(s, f, s);\n"},
        0,
    ),
    (
        "the schedule, cited",
        {"src/ops/conv/cuda/x.cuh": "F s = zero();\ns = fma(a, b, s);  // contraction.2\n"},
        0,
    ),
    (
        "steps of pointers and iterators",
        {
            "src/ops/matmul/cuda/x.cuh": "struct S {\n  const float* p;\n"
            "  void move(int64_t n) { p += n; }\n};\n"
            "void f(const float* a, double* b[2], std::span<const float*> s) {\n"
            "  a += 4, b[0] += 4, s[1] -= 2;\n"
            "  const float *c = a, *d = a;\n  d = d + 1;\n  auto it = s.begin();\n  it += 2;\n}\n"
        },
        0,
    ),
    (
        "a function that is a parameter",
        {
            "src/ops/x/cpu.cc": "template <class F>\nvoid f(F g, int64_t i) {\n  i = add(i, 1);\n"
            "  g += 1;\n}\n"
        },
        0,
    ),
    (
        "indices, one fma, tests",
        {
            "src/ops/rope/cpu.cc": "int64_t i = 0;\ni += 8;\nfloat y = std::fma(a, b, c);\n"
            "float z = x1 * c - x2 * s;\n",
            "src/ops/rope/rope_test.cc": "float s = 0; s += 1;\n",
            "src/num/reduce/row.h": "float s = 0; s += 1;\n",
        },
        0,
    ),
]
