"""What the tests of torch's spellings share: the rooms' cases (src/ops/ROOM/tests/cases.txt,
tests/conformance/README.md), and what the reproducible operation and torch make of one."""

import itertools
import math
import re
import runpy
import struct
import warnings
import zlib
from dataclasses import dataclass

import numpy as np
import pytest
from conftest import BUILD, ROOT

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import torch  # noqa: E402
import torch.nn.functional as functional  # noqa: E402
from invar import NotCovered, _native, rooms  # noqa: E402
from invar.modules.emitted import TYPES  # noqa: E402

LISTED, _, _ = runpy.run_path(str(ROOT / "tools/ops/generate.py"))["read"](ROOT)
OPSET = {op.name: op for op in LISTED}
for op in [op for op, entry in OPSET.items() if entry.room in ("fixed", "optim")]:
    del OPSET[op]  # no graph of ONNX has the operations of training
for op in [op for op in OPSET if op == "fixed_matmul" or op.endswith("_exact16")]:
    del OPSET[op]
LARGEST = 1 << 14  # elements of a case, and
# Cases of a line: spellings differ by ranks, types and attributes, not by sizes around a kernel's
# tiles.
CHOSEN = 6


@dataclass
class Case:
    op: str
    line: int
    operands: list[tuple[str, list[int], str]]  # element type, shape, fill
    result: tuple[str, list[int]]
    attributes: dict

    def __str__(self):
        text = lambda t: f"{t[0]}{t[1]}"
        return (
            f"{self.op} {' '.join(map(text, self.operands))} -> {text(self.result)} "
            f"{self.attributes} (cases.txt:{self.line})"
        )

    def types(self):
        return [(dtype, shape) for dtype, shape, _ in self.operands]

    def empty(self):
        return any(0 in shape for _, shape in [*self.types(), self.result])


def number(text):
    return (
        struct.unpack("<f", struct.pack("<I", int(text[4:], 16)))[0]
        if text.startswith("f32:")
        else int(text)
    )


def dimension(text):
    return sum(math.prod(map(int, product.split("*"))) for product in text.split("+"))


def repeated(operand):
    times = re.match(r"(\d+)\*", operand)
    return [operand[times.end() :]] * int(times[1]) if times else [operand]


def tensor(text):
    dtype, dims, fill = re.fullmatch(r"@?(\w+)\[([^\]]*)\](.*)", text).groups()
    return dtype, [dimension(d) for d in dims.split(",") if d], fill.lstrip(":")


def parsed(op, n, line):
    line, _, more = line.partition("|")
    operands, _, result = line.partition("->")
    attributes = {}
    for name, value in (word.split("=") for word in more.split() if "=" in word):
        if name not in ("seed", "chunks", "spare"):
            attributes[name] = (
                [number(v) for v in value.split(",") if v] if "," in value else number(value)
            )
    return Case(
        op,
        n,
        [tensor(t) for operand in operands.split() for t in repeated(operand)],
        tensor(result.strip())[:2],
        attributes,
    )


def cases(op):
    """Some of each line of the operation's, small ones."""
    lines = (ROOT / "src/ops" / OPSET[op].room / "tests/cases.txt").read_text().splitlines()
    for n, line in enumerate(lines, 1):
        named = re.match(r"([\w,]+):\s", line)
        if (
            line.startswith("#")
            or not line.strip()
            or (named and not {op, OPSET[op].keys.get("kind")} & set(named.group(1).split(",")))
        ):
            continue
        loop, rest = re.match(
            r"(?:for ([^:]*) : )?(.*)", line[named.end() :] if named else line
        ).groups()
        words = [w.split("=") for w in loop.split()] if loop else []
        made = []
        for values in itertools.product(*(re.split(r",(?![^(]*\))", v) for _, v in words)):
            text = rest
            for (name, _), value in zip(words, values):
                text = re.sub(rf"\b{name}\b", value, text)
            case = parsed(op, n, text)
            if max(math.prod(shape) for _, shape in [*case.types(), case.result]) <= LARGEST:
                made.append(case)
        step = max(1, -(-len(made) // CHOSEN))
        yield from made[zlib.crc32(f"{op}:{n}".encode()) % min(step, len(made) or 1) :: step]


SPECIAL = np.array(
    [
        0x00000000,
        0x80000000,
        0x00000001,
        0x807FFFFF,
        0x00800000,
        0x3F800000,
        0xBF800000,
        0x7F800000,
        0xFF800000,
        0x7FC00000,
        0x7F7FFFFF,
        0xFF7FFFFF,
    ],
    np.uint32,
).view(np.float32)


def special(random, shape):
    """Numbers of any exponent, zeros, infinities, NaN, subnormals."""
    wide = np.ldexp(random.standard_normal(shape), random.integers(-40, 40, shape)).astype(
        np.float32
    )
    return np.where(random.integers(0, 3, shape) == 0, random.choice(SPECIAL, shape), wide)


def eighths(random, shape):
    """So few bits that sums and products of them are exact in any order."""
    return (random.integers(1, 9, shape) * random.choice([-1, 1], shape)) / 8


def ordinary(random, shape):
    return random.standard_normal(shape)


def small(random, shape):
    return random.standard_normal(shape) / 10


def positive(random, shape):
    """What every type of numbers has room for."""
    return random.uniform(0.5, 100, shape)


# Which integers name something, or are divided by; others are as cases.txt says.
DIVIDING = {"div", "fmod", "mod"}


def filled(case, i, floats):
    """Operand i; `floats` makes floating numbers. Integers that name no place, which torch refuses,
    and divisors of 0 and -1, which it refuses or the processor does, are left out."""
    dtype, shape, fill = case.operands[i]
    random = np.random.default_rng([zlib.crc32(str(case).encode()), i])
    type = TYPES[dtype]
    if type.is_floating_point:
        return (
            torch.from_numpy(np.asarray(floats(random, shape), np.float32)).reshape(shape).to(type)
        )
    if dtype == "bool":
        return torch.from_numpy(np.asarray(random.integers(0, 2, shape), np.bool_))
    if fill.startswith("="):
        values = (
            np.array([int(b, 16) for b in fill[1:].split(",")], np.uint64)
            .view(np.int64)
            .reshape(shape)
        )
    elif limit := re.match(r"(below|around)\((\d+)\)", fill):
        n = int(limit.group(2))
        values = random.integers(-n if limit.group(1) == "around" else 0, n, shape)
    else:
        info = torch.iinfo(torch.int64 if dtype == "u64" else type)
        values = random.integers(
            info.min, info.max, shape, dtype=np.int64, endpoint=True
        ) >> random.integers(0, 64, shape)
    if case.op in DIVIDING and i == 1:
        values = np.where((values == 0) | (values == -1), 3, values)
    return torch.from_numpy(np.asarray(values)).to(type)


def evaluated(text, operands):
    names = {f"x{i}": x for i, x in enumerate(operands)}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*degrees of freedom")
        return eval(text, {"torch": torch, "functional": functional, "rooms": rooms, **names})


def text_of(op, attributes, types, result):
    """How torch says it, with operands x0, x1, ..."""
    text = _native.torch_expression(op, attributes, types, result)
    return text.format(*(f"x{i}" for i in range(len(types))))


def reproducible(case, operands):
    """The native kernel's result; absent attributes are what the room's page of spec/ops says."""
    result = torch.empty(case.result[1], dtype=TYPES[case.result[0]])
    _native.run_operation(case.op, case.attributes, operands, result, "")
    return result


def refused(case):
    """What torch refuses, and says so: kernels that slide over nothing or give nothing, channels
    there are none of; u64, mostly."""
    return (
        OPSET[case.op].room in ("conv", "conv_integer", "pool", "batchnorm")
        and case.empty()
        or any(t == "u64" for t, _ in case.types())
    )


def written(op, floats=ordinary, every=1):
    """(case, text, operands) of the cases that torch computes."""
    done = 0
    for case in itertools.islice(cases(op), 0, None, every):
        operands = [filled(case, i, floats) for i in range(len(case.operands))]
        if joins_twice(case, operands) or any(names_nothing(case, i) for i in range(len(operands))):
            continue
        try:
            text = text_of(op, case.attributes, case.types(), case.result)
            got = evaluated(text, operands)
        except (NotCovered, RuntimeError, IndexError):
            assert refused(case), case
            continue
        assert got.dtype == TYPES[case.result[0]] and list(got.shape) == case.result[1], (
            str(case),
            text,
        )
        done += 1
        yield case, text, operands
    assert done, f"{op}: no case"


def pairs(op, floats, every=1):
    """(case, text, what torch says, what the reproducible operation says)."""
    for case, text, operands in written(op, floats, every):
        yield case, text, evaluated(text, operands), reproducible(case, operands)


def joins_twice(case, operands):
    """Updates of one place, of which torch lets any stay."""
    if not case.op.startswith("scatter") or case.attributes.get("reduction", 0):
        return False
    indices = operands[1]
    if case.op == "scatter_nd":
        return (
            len(set(map(tuple, indices.reshape(-1, indices.shape[-1]).tolist())))
            < indices[..., 0].numel()
        )
    axis = case.attributes.get("axis", 0)
    n = case.operands[0][1][axis]
    return 0 < n and any(
        len(set(i)) < len(i)
        for i in (indices % n).movedim(axis, -1).reshape(-1, max(1, indices.shape[axis])).tolist()
    )


def names_nothing(case, i):
    """An index of any value, or of a table without rows."""
    return (
        i == 1
        and OPSET[case.op].room == "gather"
        and (case.empty() or case.operands[i][2] == "any" or case.operands[i][2].startswith("="))
    )


def raw(tensor):
    return (
        tensor.view(
            {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
        )
        .numpy()
        .tobytes()
    )


def canonical(tensor):
    """One NaN and one zero, which subnormal numbers become: stores of kernels flush them, torch
    keeps them."""
    if not tensor.is_floating_point():
        return raw(tensor)
    least = torch.finfo(tensor.dtype).smallest_normal
    tensor = torch.where(tensor.isnan(), math.nan, tensor)
    return raw(torch.where(tensor.abs() < least, 0.0, tensor))
