"""Names of tensors in short: those that differ in numbers of layers and experts are one."""

import itertools
import re


def ranges(numbers):
    """[0, 1, 2, 4] -> "0-2,4"."""
    out = []
    for n in sorted(numbers):
        if out and out[-1][1] == n - 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in out)


def numbers(text):
    parts = [[int(n) for n in p.split("-")] for p in text.split(",")]
    return [n for p in parts for n in range(p[0], p[-1] + 1)]


def packed(shapes):
    """{name: shape} -> the same with names such as model.layers.{0-3}.mlp.weight."""
    groups = {}
    for name, shape in shapes.items():
        at = tuple(int(n) for n in re.findall(r"(?<=\.)\d+(?=\.)", name))
        form = re.sub(r"(?<=\.)\d+(?=\.)", "{}", name)
        groups.setdefault((form, tuple(shape)), []).append(at)
    out = {}
    for (form, shape), places in groups.items():
        sets = [set(axis) for axis in zip(*places)]
        if set(itertools.product(*sets)) == set(places):
            out[form.format(*("{" + ranges(s) + "}" for s in sets))] = list(shape)
        else:
            out |= {form.format(*at): list(shape) for at in places}
    return out


def unpacked(short):
    out = {}
    for form, shape in short.items():
        texts = re.split(r"\{([\d,-]+)\}", form)
        choices = [numbers(t) if i % 2 else [t] for i, t in enumerate(texts)]
        for parts in itertools.product(*choices):
            out["".join(map(str, parts))] = shape
    return dict(sorted(out.items()))
