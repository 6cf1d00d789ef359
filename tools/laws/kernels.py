"""Law 7: kernels do not allocate, lock or call the system; they do not throw or print. Looked at: the rooms' reference.cc,
cpu*.cc and *.cu, and the headers of src/num they are made of. What a GPU runs neither waits nor allocates, takes no function of
the vendor's mathematical library, and adds no floats in an order of chance."""

import re

from law import code, finding, lines

KERNEL = re.compile(r"src/ops/[a-z0-9_]+/(reference|cpu(_[a-z0-9]+)?)\.cc$|src/ops/.*\.cuh?$|src/num/(lane|reduce|contract)/.*\.h$")
FORBIDDEN = re.compile(
    r"\bnew\b|\bmalloc\b|\bcalloc\b|\brealloc\b|\bfree\s*\(|\balloca\b|std::(vector|string|map|unordered_map|deque|list|function|"
    r"make_unique|make_shared|mutex|lock_guard|unique_lock|atomic|thread|async|cout|cerr|ofstream|ifstream)\b|\bthrow\b|"
    r"\b(f|s|sn)?printf\s*\(|\bfopen\b|\bgetenv\b|\bmmap\b|#\s*include\s+<(iostream|fstream|mutex|thread|filesystem)>")

GPU = re.compile(
    r"\bcuda(Malloc\w*|Free\w*|HostAlloc|DeviceSynchronize|StreamSynchronize|EventSynchronize|Memcpy|Memset|StreamCreate\w*)\s*\(|"
    r"\b__?(exp|log|sin|cos|tan|pow|exp10|log2|log10|sincos|saturate|fdividef|frcp_rn|frsqrt_rn)f?\s*\(|"
    r"\b(exp|exp2|exp10|expm1|log|log2|log10|log1p|sin|cos|tan|tanh|sinh|cosh|erf|erfc|pow|rsqrt|cbrt|fmod)f\s*\(|\batomicAdd\s*\((?!.*, 1u\))|\batomicExch\s*\(")


def check(files):
    found = []
    for path, text in files.items():
        if text is None or not KERNEL.match(path):
            continue
        for n, line in lines(code(text, strings=False)):
            m = FORBIDDEN.search(line) or (path.endswith((".cu", ".cuh")) and GPU.search(line))
            if m:
                found.append(finding(path, n, f"'{m.group(0).strip()}' in a kernel; use scratch or the stack, and report through the session"))
    return found


SELF_TEST = [
    ("allocates", {"src/ops/softmax/cpu.cc": "std::vector<float> t(n);\n"}, 1),
    ("throws", {"src/ops/softmax/reference.cc": "throw 1;\n"}, 1),
    ("locks", {"src/num/reduce/row.h": "std::mutex m;\n"}, 1),
    ("allocates on a GPU", {"src/ops/softmax/cuda.cu": "cudaMalloc(&p, n);\n"}, 1),
    ("the vendor's function", {"src/ops/softmax/rows.cuh": "y = __expf(x) + expf(x);\n"}, 1),
    ("an order of chance", {"src/ops/scatter/cuda.cu": "atomicAdd(&y[i], x);\n"}, 1),
    ("counts", {"src/ops/topk/cuda.cu": "atomicAdd(&count[i], 1u);\n"}, 0),
    ("queues", {"src/ops/softmax/cuda.cu": "cudaMemcpyAsync(a, b, n, k, stream);\ny = exp(x);\n"}, 0),
    ("does none of it", {"src/ops/softmax/cpu.cc": "// new\nfloat t[8];\nif (is_new) {}\n", "src/run/x.cc": "std::vector<int> v;\n"}, 0),
]
