"""Law 7: kernels do not allocate, lock or call the system; they do not throw or print.

Looked at: the rooms' reference.cc, cpu*.cc, cpu/, cuda/, vendor/ and *.cu, what they share in
src/kernels/cpu and src/kernels/cuda, and the headers of src/num that they are made of. What a GPU
runs neither waits nor allocates, takes no function of the vendor's mathematical library, and adds
no floats in an order of chance. A kernel that may start before the one it follows has ended
(launch_dependent, launch_clusters) waits for that one, whatever it does. Libraries are opened in
src/device/shared_library.cc alone, and a vendor's functions and types stay in src/kernels/vendor: a
library row, in src/ops/ROOM/vendor, calls what the header there declares, reproducible rows nothing
of it.
"""

import re

from law import code, finding, lines

KERNEL = re.compile(
    r"src/ops/[a-z0-9_]+/((reference|cpu(_[a-z0-9]+)?)\.cc$|(cpu|vendor)/.*\.(cc|h)$|.*\.cuh?$)|"
    r"src/kernels/(cpu|cuda)/.*|src/num/(lane|reduce|contract)/.*\.h$"
)
FORBIDDEN = re.compile(
    r"\bnew\b|\bmalloc\b|\bcalloc\b|\brealloc\b|\bfree\s*\(|\balloca\b|std::(vector|string|map|unordered_map|deque|list|function|"
    r"make_unique|make_shared|mutex|lock_guard|unique_lock|atomic|thread|async|cout|cerr|ofstream|ifstream)\b|\bthrow\b|"
    r"\b(f|s|sn)?printf\s*\(|\bfopen\b|\bgetenv\b|\bmmap\b|#\s*include\s+<(iostream|fstream|mutex|thread|filesystem)>"
)

GPU = re.compile(
    r"\bcuda(Malloc\w*|Free\w*|HostAlloc|DeviceSynchronize|StreamSynchronize|EventSynchronize|Memcpy|Memset|StreamCreate\w*)\s*\(|"
    r"\b__?(exp|log|sin|cos|tan|pow|exp10|log2|log10|sincos|saturate|fdividef|frcp_rn|frsqrt_rn)f?\s*\(|"
    r"\b(exp|exp2|exp10|expm1|log|log2|log10|log1p|sin|cos|tan|tanh|sinh|cosh|erf|erfc|pow|rsqrt|"
    r"cbrt|fmod)f\s*\(|\batomicAdd\s*\((?!.*(?:, 1u\)|taken, |integer_at, ))|\batomicExch\s*\((?!.*leader)"
)

KERNEL_OF_GPU = re.compile(
    r"\b__global__\s+void\s+(?:__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)\s*)?(\w+)\s*\((?:[^()]|\([^()]*\))*\)\s*\{"
)
DEPENDENT = re.compile(r"\blaunch_(?:dependent|clusters)\s*\(\s*(\w+)")
LAMBDA = re.compile(r"\[[&=]?\]\s*(\([^()]*\))?\s*$")
WAITS = re.compile(r"\b(wait_for_previous_grid|trigger_and_wait)\s*\(\s*\)\s*;")


def waits_first(body):
    """Whether the text of a kernel from its opening brace on waits in every thread: not within a
    branch, nor behind a return."""
    inside = []  # of what is open: whether it is a lambda
    for m in re.finditer(r"[{}]|\breturn\s*;|" + WAITS.pattern, body):
        if m.group(0) == "{":
            inside.append(bool(LAMBDA.search(body, max(0, m.start() - 80), m.start())))
        elif m.group(0) == "}":
            inside.pop()
            if not inside:
                return False
        elif m.group(0).startswith("return"):
            if not any(inside):
                return False
        elif len(inside) == 1:
            return True
    return False


def check_dependent_launches(files):
    texts = {
        path: code(text, strings=False)
        for path, text in files.items()
        if text and re.match(r"src/.*\.(cu|cuh|h)$", path)
    }
    waits = {}
    for text in texts.values():
        for m in KERNEL_OF_GPU.finditer(text):
            waits[m.group(1)] = waits_first(text[m.end() - 1 :])
    return [
        finding(
            path,
            text[: m.start()].count("\n") + 1,
            f"'{m.group(1)}' may start early and does not begin with trigger_and_wait() or "
            f"wait_for_previous_grid()",
        )
        for path, text in texts.items()
        for m in DEPENDENT.finditer(text)
        if m.group(1) not in ("kernel", "void") and not waits.get(m.group(1))
    ]


OPENS = re.compile(r"\bdl(open|sym|mopen)\s*\(|#\s*include\s+<dlfcn\.h>")
VENDOR = re.compile(
    r"#\s*include\s+[<\"](dnnl|oneapi|cublas)|\b(dnnl_\w+|cublas(?!_reduced)[A-Z_]\w*)\s*\(|\bkernels/vendor/(onednn|cublas)\.h\"|\b(onednn|cublas)::"
)
OF_LIBRARY = re.compile(r"src/(kernels|ops/[a-z0-9_]+)/vendor/(onednn|cublas)\.(cc|cu|h)$")


def check_libraries(files):
    found = []
    for path, text in files.items():
        if (
            text is None
            or not re.match(r"src/.*\.(cc|h|cu|cuh)$", path)
            or path.endswith("_test.cc")
        ):
            continue
        for n, line in lines(code(text)):
            if OPENS.search(line) and path != "src/device/shared_library.cc":
                found.append(
                    finding(path, n, "opens a library; src/device/shared_library.cc does that")
                )
            if VENDOR.search(line) and not OF_LIBRARY.match(path):
                found.append(
                    finding(
                        path, n, "uses a vendor's library outside its rows (src/ops/ROOM/vendor)"
                    )
                )
    return found


def check(files):
    found = check_dependent_launches(files) + check_libraries(files)
    for path, text in files.items():
        if text is None or not KERNEL.match(path):
            continue
        for n, line in lines(code(text, strings=False)):
            m = FORBIDDEN.search(line) or (path.endswith((".cu", ".cuh")) and GPU.search(line))
            if m:
                found.append(
                    finding(
                        path,
                        n,
                        f"'{m.group(0).strip()}' in a kernel; use scratch or the stack, and report "
                        f"through the session",
                    )
                )
    return found


SELF_TEST = [
    ("allocates", {"src/ops/softmax/cpu.cc": "std::vector<float> t(n);\n"}, 1),
    ("throws", {"src/ops/softmax/reference.cc": "throw 1;\n"}, 1),
    ("locks", {"src/num/reduce/row.h": "std::mutex m;\n"}, 1),
    ("allocates on a GPU", {"src/ops/softmax/cuda.cu": "cudaMalloc(&p, n);\n"}, 1),
    ("the vendor's function", {"src/ops/softmax/cuda/rows.cuh": "y = __expf(x) + expf(x);\n"}, 1),
    ("an order of chance", {"src/ops/scatter/cuda.cu": "atomicAdd(&y[i], x);\n"}, 1),
    ("counts", {"src/ops/topk/cuda.cu": "atomicAdd(&count[i], 1u);\n"}, 0),
    ("sums of integers", {"src/ops/matmul/cuda.cu": "atomicAdd(integer_at, y);\n"}, 0),
    (
        "gives places away",
        {"src/ops/gather/cuda/segments.cuh": "begin[i] = atomicAdd(taken, count[i]);\n"},
        0,
    ),
    ("who comes last", {"src/ops/gather/cuda/scatter.cu": "y[i] = atomicExch(&x[i], u);\n"}, 1),
    (
        "who leads a chain that is put in order before it is used",
        {"src/ops/gather/cuda/scatter.cu": "next[i] = atomicExch(leader, i);\n"},
        0,
    ),
    (
        "queues",
        {"src/ops/softmax/cuda.cu": "cudaMemcpyAsync(a, b, n, k, stream);\ny = exp(x);\n"},
        0,
    ),
    (
        "starts early, waits",
        {
            "src/ops/softmax/cuda.cu": "template <class F>\n__global__ void "
            "__launch_bounds__(kTeam* g(2)) k(int n, F f) {\n"
            "  if (n) { f(n); }\n  trigger_and_wait();\n}\n"
            "launch_dependent(k<F>, n);\n"
        },
        0,
    ),
    (
        "returns from a lambda",
        {
            "src/ops/softmax/cuda.cu": "__global__ void k(int n) {\n  auto f = [&](int i) {\n"
            "    if (i) return;\n  };\n  trigger_and_wait();\n}\n"
            "launch_dependent(k, n);\n"
        },
        0,
    ),
    (
        "starts early, never waits",
        {
            "src/ops/softmax/cuda.cu": "__global__ void k(int n) {\n  work(n);\n}\nlaunch_dependent(k, n);\n"
        },
        1,
    ),
    (
        "waits in a branch",
        {
            "src/ops/softmax/cuda.cu": "__global__ void k(int n) {\n"
            "  if (n) { trigger_and_wait(); }\n}\nlaunch_dependent(k, n);\n"
        },
        1,
    ),
    (
        "ends before",
        {
            "src/ops/softmax/cuda.cu": "__global__ void k(int n) {\n  if (n) return;\n"
            "  trigger_and_wait();\n}\nlaunch_clusters(k, n);\n"
        },
        1,
    ),
    ("opens a library", {"src/ops/softmax/cpu.cc": 'dlopen("x.so", 1);\n'}, 1),
    (
        "a reproducible row that calls a library",
        {"src/ops/matmul/cpu.cc": '#include "kernels/vendor/onednn.h"\nonednn::product(p);\n'},
        2,
    ),
    (
        "the runtime that calls a library",
        {"src/run/prepare/passes/select_kernels.cc": "cublasSetStream_v2(h, s);\n"},
        1,
    ),
    (
        "a library row that allocates",
        {"src/ops/matmul/vendor/onednn.cc": "std::vector<float> t(n);\n"},
        1,
    ),
    (
        "a library row",
        {
            "src/ops/matmul/vendor/onednn.cc": '#include "kernels/vendor/onednn.h"\nonednn::product(p);\n',
            "src/device/shared_library.cc": "dlopen(name, 1);\n",
        },
        0,
    ),
    (
        "a part of kernels that allocates",
        {"src/kernels/cpu/x.h": "std::vector<float> t(n);\n", "src/ops/conv/cpu/x.h": "new int;\n"},
        2,
    ),
    (
        "does none of it",
        {
            "src/ops/softmax/cpu.cc": "// new\nfloat t[8];\nif (is_new) {}\n",
            "src/run/x.cc": "std::vector<int> v;\n",
        },
        0,
    ),
]
