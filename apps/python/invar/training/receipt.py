"""Receipts of trainings: form, hashes and files (spec/training.md training.9 to training.14)."""

import hashlib
import json
import math
import os
import re
import stat
from pathlib import Path
from typing import Any

from invar import _native
from invar._native import merkle_root
from invar.training.digest import compact, leaf

SCHEMA = "invar-training-receipt 1"
NUMERICS = "invar-1"
NONE = "0" * 64

_DIGEST = re.compile("[0-9a-f]{64}")
_FLOAT = re.compile(r"-?0x(1\.[0-9a-f]{13}p[+-][0-9]+|0\.[0-9a-f]{13}p-1022|0\.0p\+0)|-?inf|nan")


def printable(text):
    """A text of a file for a terminal: what shows nothing or steers it is escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def read_text(path):
    """The text of a file, which is never waited for: a pipe or a device is refused."""
    path = os.fspath(path)  # no number of an open file
    try:
        with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as file:
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            text = file.read().decode() if regular else None
    except (OSError, ValueError) as e:  # ValueError: no UTF-8, or a path with a zero byte
        reason = e.strerror if isinstance(e, OSError) else "it is no UTF-8"
        raise _native.BadInput(f"{printable(path)}: {reason}") from None
    if text is None:
        raise _native.BadInput(f"{printable(path)}: not a regular file")
    return text


def number(value):
    """A binary64 number as text: float.hex of Python (training.11)."""
    return float(value).hex()


def setting(name, value):
    """A setting as a receipt holds it: numbers with a fraction become text."""
    if isinstance(value, bool | int | str | None):
        return value
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list | tuple):
        return [setting(name, v) for v in value]
    raise _native.NotCovered(f"{name}: {type(value).__name__} is no setting of a receipt")


def settings_of(values):
    """Settings as a receipt holds them; those that are None are left out."""
    return {name: setting(name, v) for name, v in values.items() if v is not None}


def header_hash(receipt):
    """c_0: the Merkle root over the fields before the steps, as hexadecimal digits
    (training.12)."""
    fields = {"schema": receipt["schema"]}
    for section in ("program", "model"):
        fields |= {f"{section}.{key}": v for key, v in sorted(receipt[section].items())}
    fields["initial"] = receipt["initial"]
    leaves = [hashlib.sha256(f"{n}=".encode() + compact(v)).digest() for n, v in fields.items()]
    return merkle_root(leaves).hex()


def chained(before, step):
    """c_(i+1) of c_i and step i: SHA-256 of both (training.12)."""
    bound = {name: value for name, value in step.items() if name != "chain"}
    data = bytes.fromhex(before) + hashlib.sha256(compact(bound)).digest()
    return hashlib.sha256(data).hexdigest()


class Receipt:
    """A receipt that has been checked by itself: form and hashes. `data`: its members; len(): the
    number of steps; state(i): the digest of the state before step i."""

    def __init__(self, data: dict[str, Any], path: str | os.PathLike[str] | None = None) -> None:
        self.data, self.path = data, Path(path) if path is not None else None
        check(data, str(path) if path is not None else "receipt")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Receipt":
        text, where = read_text(path), printable(path)
        try:
            data = json.loads(text, object_pairs_hook=lambda pairs: _once(pairs, where))
        except json.JSONDecodeError as e:
            raise _native.BadInput(f"{where}: no JSON: line {e.lineno}, column {e.colno}") from None
        except _native.BadInput:
            raise
        except ValueError:  # Python's limit
            raise _native.BadInput(f"{where}: an integer of too many digits") from None
        except RecursionError:
            raise _native.BadInput(f"{where}: JSON that is nested too deeply") from None
        return cls(data, path)

    def __len__(self) -> int:
        return len(self.data["steps"])

    @property
    def hash(self) -> str:
        return self.data["receipt_hash"]

    @property
    def losses(self) -> list[float]:
        """The loss of each step."""
        return [float.fromhex(step["loss"]) for step in self.data["steps"]]

    def state(self, index: int) -> str:
        return self.data["steps"][index - 1]["state"] if index else self.data["initial"]["state"]

    def leaves(self, index: int) -> list[str] | None:
        """The leaves of the state before step `index`, ascending by name; None: it has none."""
        if index:
            return self.data["steps"][index - 1].get("tensors")
        return [leaf(entry).hex() for entry in self.data["initial"]["tensors"]]

    def chain(self, index: int) -> str:
        """c_index: binds everything before step `index`."""
        return self.data["steps"][index - 1]["chain"] if index else header_hash(self.data)

    def write(self, path: str | os.PathLike[str]) -> None:
        path = Path(path)
        partial = path.with_name(path.name + ".part")
        partial.write_text(
            json.dumps(self.data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
        )
        partial.replace(path)


def _once(pairs, path):
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        name = next(n for n in names if names.count(n) > 1)
        raise _native.BadInput(f"{path}: member {name!r} twice")
    return found


def _text(value):
    return isinstance(value, str)


def _digest(value):
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def _float(value):
    if not isinstance(value, str) or _FLOAT.fullmatch(value) is None:
        return False
    try:
        return float.fromhex(value).hex() == value
    except OverflowError:
        return False


def _setting(value):
    if isinstance(value, list):
        return all(map(_setting, value))
    return value is None or isinstance(value, bool | int | str)


def _settings(value):
    return isinstance(value, dict) and all(map(_setting, value.values()))


def _list(item):
    return lambda value: isinstance(value, list) and all(map(item, value))


def _size(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _modules(value):
    return (
        isinstance(value, dict) and all(map(_digest, value.values())) and all(map(_beside, value))
    )


def _beside(name):
    """Whether it is the path of a file below a folder."""
    return bool(name) and not any(part in ("", ".", "..") for part in name.split("/"))


def _texts(value):
    return isinstance(value, dict) and all(map(_text, value.values()))


# Members, and what their values must be: a function, or the members of an object.
TENSOR = {"name": _text, "dtype": _text, "shape": _list(_size), "sha256": _digest}
FORM = {
    "schema": _text,
    "program": {
        "numerics": _text,
        "script": _text,
        "sha256": _digest,
        "modules": _modules,
        "settings": _settings,
    },
    "model": {"constants": _digest},
    "initial": {"state": _digest, "tensors": _list(lambda v: not list(_faults(v, TENSOR, "")))},
    "steps": _list(lambda v: isinstance(v, dict)),
    "receipt_hash": _digest,
    "states": _list(_size),
    "execution": _texts,
}
STEP = {
    "data": _digest,
    "settings": _settings,
    "loss": _float,
    "state": _digest,
    "tensors": _list(_digest),
    "chain": _digest,
}
OPTIONAL = {"program.modules", "steps.tensors", "execution", "states"}


def _faults(value, form, path):
    if not isinstance(value, dict):
        yield f"{path or 'the receipt'} is no object"
        return
    where = f"{path}." if path else ""
    for name in value.keys() - form.keys():
        yield f"unknown member {where}{name}"
    for name, wanted in form.items():
        if name not in value:
            if re.sub(r"\[\d+\]", "", f"{where}{name}") not in OPTIONAL:
                yield f"no member {where}{name}"
        elif isinstance(wanted, dict):
            yield from _faults(value[name], wanted, f"{where}{name}")
        elif not wanted(value[name]):
            yield f"{where}{name} is ill-formed"


def check(data, where):
    """Refuses a receipt whose form or hashes do not hold, in one line (training.13)."""

    def refuse(text):
        raise _native.BadInput(f"{printable(where)}: {printable(text)}")

    try:
        compact(data)
    except UnicodeEncodeError:
        refuse("a text that is no Unicode: half of a surrogate pair")
    except RecursionError:
        refuse("nested too deeply")
    except (TypeError, ValueError) as e:  # data that no file holds
        refuse(f"no JSON: {e}")
    if not isinstance(data, dict) or not str(data.get("schema", "")).startswith("invar-training-"):
        refuse(f"no receipt of a training (its schema is not {SCHEMA!r})")
    if data["schema"] != SCHEMA:
        refuse(f"schema {data['schema']!r}; this version reads {SCHEMA!r}")
    for fault in _faults(data, FORM, ""):
        refuse(fault)
    initial = data["initial"]
    names = [entry["name"] for entry in initial["tensors"]]
    if names != sorted(set(names), key=str.encode):
        refuse("initial.tensors: names do not ascend")
    if merkle_root([leaf(entry) for entry in initial["tensors"]]).hex() != initial["state"]:
        refuse("initial.state is not the root over initial.tensors")
    before = header_hash(data)
    for i, step in enumerate(data["steps"]):
        for fault in _faults(step, STEP, f"steps[{i}]"):
            refuse(fault)
        if "tensors" in step and _root(step["tensors"]) != step["state"]:
            refuse(f"steps[{i}].state is not the root over its tensors")
        if chained(before, step) != step["chain"]:
            what = "the head or step 0" if i == 0 else f"step {i}"
            refuse(f"steps[{i}].chain does not fit: {what} or its chain was changed")
        before = step["chain"]
    if data["receipt_hash"] != before:
        refuse("receipt_hash is not the chain of the last step")
    if any(i > len(data["steps"]) for i in data.get("states", [])):
        refuse("states: more steps than the receipt has")


def _root(leaves):
    return merkle_root([bytes.fromhex(one) for one in leaves]).hex()


def shown(text):
    """A number of a receipt for people: float.hex -> decimal."""
    value = float.fromhex(text)
    return repr(value) if math.isfinite(value) else text
