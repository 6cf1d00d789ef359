"""Prompt -> answer and receipt; receipt -> verdict. The same code as `invar run`, `invar validate`
and `invar verify`. requests.py has the functions whose arguments are options."""

import json
import os
import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, Union

from invar import _native, argument_table, arrays, jobs

INT32 = 2**31 - 1
Path: TypeAlias = str | os.PathLike[str]
Paths: TypeAlias = Path | list[Path] | tuple[Path, ...]
Receipt: TypeAlias = Union[Path, dict[str, Any], "Generation"]
Receipts: TypeAlias = Receipt | list[Receipt] | tuple[Receipt, ...]


def whole(name, value, least, most):
    """An int in this range."""
    if (
        isinstance(value, bool)
        or not hasattr(value, "__index__")
        or not least <= value.__index__() <= most
    ):
        raise _native.BadInput(f"{name}: {value!r} is not a whole number from {least} to {most}")
    return value.__index__()


def decimal(name, value):
    """A number as the text that the command line would be given: the shortest that reads back as
    it."""
    if value is None:
        return None
    try:
        if isinstance(value, bool | str):
            raise TypeError
        return repr(float(value))
    except (TypeError, ValueError, OverflowError):
        raise _native.BadInput(f"{name}: {value!r} is not a number") from None


def name_or_default(name, value):
    """A name as the native side takes it, where "" is the default."""
    if value == "":
        raise _native.BadInput(f"{name}: '' is no name; leave it out for the default")
    return "" if value is None else text_of(name, value)


def text_of(name, value):
    if not isinstance(value, str):
        raise _native.BadInput(f"{name}: {type(value).__name__} is no str")
    try:
        value.encode()
    except UnicodeEncodeError as e:
        raise _native.BadInput(
            f"{name}: half of a surrogate pair at character {e.start}, which UTF-8 does not have"
        ) from None
    return value


def prompt_of(value):
    """A prompt; several have an answer each."""
    if isinstance(value, list | tuple):
        raise _native.BadInput(
            "prompt: a list: give one str at a time; an invar.InferenceSession keeps the model loaded "
            "between them"
        )
    return text_of("prompt", value)


def path_of(name, value):
    """A path as text; None: none."""
    if value is None:
        return ""
    try:
        return text_of(name, os.fsdecode(value))
    except TypeError:
        raise _native.BadInput(f"{name}: {type(value).__name__} is no path") from None


def flag(name, value):
    if not isinstance(value, bool):
        raise _native.BadInput(f"{name}: {value!r} is neither True nor False")
    return value


def list_of(name, value, item):
    """A list whose items item(name, x) has checked; None: nobody says it."""
    if value is None:
        return None
    if isinstance(value, str | bytes | dict):
        raise _native.BadInput(f"{name}: {value!r} is no list")
    try:
        return [item(name, x) for x in value]
    except TypeError:
        raise _native.BadInput(f"{name}: {value!r} is no list") from None


def token(name, value):
    return whole(name, value, 0, INT32)


def biases(name, value):
    """A dict from token ids to numbers, as pairs."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise _native.BadInput(f"{name}: {value!r} is no dict from token ids to numbers")
    numbers = [(token(name, t), decimal(name, bias)) for t, bias in value.items()]
    if any(bias is None for _, bias in numbers):
        raise _native.BadInput(f"{name}: None is not a number")
    return numbers


def json_text(name, value):
    """A value as the text of its JSON; a text is that already."""
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _native.BadInput(f"{name}: not JSON: {error}") from None


def word(name, value):
    found = list_of(name, value, token)
    if not found:
        raise _native.BadInput(f"{name}: {value!r} is no list of token ids")
    return found


def stop_string(name, value):
    if not text_of(name, value):
        raise _native.BadInput(f"{name}: an empty text ends nothing")
    return value


def names_of(name, value):
    """One name, or several: a list of them, or the text that the command line takes."""
    if isinstance(value, list | tuple) and value:
        return ",".join(text_of(name, one) for one in value)
    return text_of(name, value)


# Kind of an argument (tools/options/generate.py) -> its value as the native options take it; None:
# nobody says it.
CONVERSIONS = {
    "whole": lambda name, value, *limits: None if value is None else whole(name, value, *limits),
    "decimal": decimal,
    "flag": flag,
    "not": lambda name, value: not flag(name, value),
    "flag?": lambda name, value: None if value is None else flag(name, value),
    "path": path_of,
    "name": name_or_default,
    "text": text_of,
    "device": lambda name, value: names_of(name, arrays.device_of(value)),
    "hosts": lambda name, value: (
        names_of(name, value) if isinstance(value, list | tuple) else name_or_default(name, value)
    ),
    "tokens": lambda name, value: list_of(name, value, token),
    "bias": biases,
    "json": json_text,
    "token lists": lambda name, value: list_of(name, value, word),
    "texts": lambda name, value: list_of(
        name, [value] if isinstance(value, str) else value, stop_string
    ),
}


def filled(options, arguments, given):
    """Native options with those of the given values that are theirs."""
    for name, (member, kind, *limits) in arguments.items():
        if name in given:
            value = CONVERSIONS[kind](name, given[name], *limits)
            if value is not None:
                setattr(options, member, value)
    return options


def execution_of(given):
    return filled(_native.ExecutionOptions(), argument_table.EXECUTION, given)


def warn(notes):
    for note in notes:
        warnings.warn(f"invar: {note}", RuntimeWarning, stacklevel=3)


class Generation:
    """The answer to one prompt: an iterator of pieces of its text (str, none of them empty), each
    computed when it is asked for. Joined, the pieces are `text`. What follows is about the whole
    answer, and computes what is missing of it:

    text           the answer
    tokens         its token ids, a list of int, a stop token at its end included
    logprobs       where they were asked for, a list of dicts, one for each token: "token",
                   "logprob", and "top_logprobs", a list of such for the most likely tokens
    receipt        the receipt, a dict of the members in spec/receipt.md
    receipt_json   the receipt as `invar run` writes it, to the byte
    receipt_hash   64 hexadecimal digits
    finish_reason  "stop" (the last token is a stop token) or "length"

    Threads may share a generation; one of them computes at a time. An error ends it, and each later
    use raises it again."""

    def __init__(self, native: Any) -> None:
        self._native, self._error, self._lock = native, None, threading.Lock()
        self._ended, self._receipt = isinstance(native, Answered), None

    def __iter__(self) -> "Generation":
        return self

    def __next__(self) -> str:
        with self._lock:
            if self._error is not None:
                raise self._error
            if not self._ended:
                try:
                    piece = self._native.next()
                except _native.Error as e:
                    self._error = e
                    raise
                if piece is not None:
                    return piece
                self._ended = True
        raise StopIteration

    def _answer(self) -> Any:
        for _ in self:
            pass
        return self._native

    @property
    def text(self) -> str:
        return self._answer().text

    @property
    def tokens(self) -> list[int]:
        return self._answer().tokens

    @property
    def logprobs(self) -> list[dict[str, Any]]:
        return self._answer().logprobs

    @property
    def segments(self) -> list[dict[str, Any]]:
        """Of an answer with timestamps: dicts with start and end (seconds), text and tokens."""
        return self._answer().segments

    @property
    def next_audio_start(self) -> int | None:
        """The audio_start of the window after this one; None: there is none."""
        start = self._answer().next_audio_start
        return None if start < 0 else start

    @property
    def receipt_json(self) -> str:
        return self._answer().receipt

    @property
    def receipt(self) -> dict[str, Any]:
        if self._receipt is None:
            self._receipt = json.loads(self.receipt_json)
        return self._receipt

    @property
    def receipt_hash(self) -> str:
        return self.receipt["receipt_hash"]

    @property
    def finish_reason(self) -> str:
        return self.receipt["output"]["finish_reason"]

    def __repr__(self) -> str:
        if not self._ended:
            return "<invar.Generation: not at its end; .text computes the rest>"
        return f"<invar.Generation: {self.text!r}, {len(self.tokens)} tokens, {self.finish_reason}>"

    def __reduce__(self) -> Any:
        """As another process gets it: the whole answer, at its end."""
        answer = self._answer()
        return Generation, (
            Answered(**{name: getattr(answer, name) for name in Answered.__slots__}),
        )


@dataclass(slots=True)
class Answered:
    """What a Generation at its end knows, away from the engine that computed it."""

    text: str
    tokens: list[int]
    logprobs: list[dict[str, Any]]
    segments: list[dict[str, Any]]
    next_audio_start: int
    receipt: str


def chat_of(messages, tools, enable_thinking):
    """The JSON of a chat (spec/chat.md)."""

    def written(name, value):
        try:
            return json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise _native.BadInput(f"{name}: not JSON: {error}") from None

    return _native.chat_input(
        written("messages", messages),
        None if tools is None else written("tools", tools),
        None if enable_thinking is None else flag("enable_thinking", enable_thinking),
    )


class KeptModel:
    """A model for generate() that stays loaded from call to call, as long as they ask for it in the
    same way (device, threads, operation_set, ...)."""

    def __init__(self, path: Path) -> None:
        self._path, self._engine, self._worker_model = path_of("model", path), None, None

    def __fspath__(self) -> str:
        return self._path

    def engine(self, where, execution, given, worker_model):
        same = self._engine is not None and self._engine.serves(where, execution)
        if not same or self._worker_model != worker_model:
            self._engine = None  # frees its memory, and ends its workers, first
            job = jobs.start(given, worker_model)
            self._engine, self._worker_model = _native.Engine(where, execution, job), worker_model
        return self._engine

    def unload(self) -> None:
        self._engine = None

    @property
    def loads(self) -> int:
        """How often the engine of the last call has loaded the model."""
        return 0 if self._engine is None else self._engine.loads


def answer_to(
    model,
    prompt,
    *,
    messages,
    tools,
    enable_thinking,
    audio,
    audio_start,
    language,
    task,
    timestamps,
    receipt_path,
    record_model_path,
    sign,
    salt_prompt,
    previous,
    worker_model,
    **given,
):
    """invar.generate() (requests.py)."""
    if sum(x is not None for x in (prompt, messages, audio)) != 1:
        raise _native.BadInput("no prompt: give prompt=, messages= or audio=, one of them")
    if audio is None and (
        audio_start != 0 or timestamps or language is not None or task is not None
    ):
        raise _native.BadInput(
            "audio_start, language, task and timestamps are for audio=: leave them out"
        )
    if messages is None and not (tools is None and enable_thinking is None):
        raise _native.BadInput("tools and enable_thinking are for messages=, not for prompt=")
    chat = "" if messages is None else chat_of(messages, tools, enable_thinking)
    if model is None:
        raise _native.BadInput("no model: give a checkpoint folder, or org/name")
    if given["do_sample"] is False and any(
        given[name] is not None and (name, given[name]) != ("temperature", 0)
        for name in ("temperature", "top_k", "top_p", "min_p")
    ):
        raise _native.BadInput(
            "do_sample=False always takes the most likely token: leave temperature, top_k, top_p and "
            "min_p out"
        )
    sampling = filled(_native.SamplingOptions(), argument_table.SAMPLING, given)
    where = _native.ModelOptions()
    where.model_name = path_of("model", model)
    filled(where, argument_table.MODEL, given)
    execution = execution_of(given)
    native = _native.Generation(
        model.engine(where, execution, given, worker_model)
        if isinstance(model, KeptModel)
        else _native.Engine(where, execution, jobs.start(given, worker_model)),
        sampling,
        "" if prompt is None else prompt_of(prompt),
        chat=chat,
        audio=path_of("audio", audio),
        audio_start=whole("audio_start", audio_start, 0, 2**62),
        language=name_or_default("language", language),
        task=name_or_default("task", task),
        timestamps=flag("timestamps", timestamps),
        receipt_path=None if receipt_path is None else path_of("receipt_path", receipt_path),
        record_model_path=flag("record_model_path", record_model_path),
        sign=paths_of("sign", sign),
        salt_prompt=flag("salt_prompt", salt_prompt),
        previous="" if previous is None else hash_of(previous),
    )
    warn(native.notes)
    return Generation(native)


@dataclass(frozen=True, slots=True)
class Finding:
    """What does not hold: a field of the receipt, such as "output.tokens[12]". found: what the
    receipt says. expected: what this machine computes, or what a rule requires."""

    field: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """ok: it holds, and so is the truth value. verdict: "VERIFIED", "NOT VERIFIED", "VALID", ...
    findings: empty where it holds. compared: what was compared with what. caveats: the keys of
    compared that say what the verdict does not. report: all of it as the lines that the command
    line prints; why, where one of several is "REFUSED". receipt: its name."""

    ok: bool
    verdict: str
    findings: tuple[Finding, ...]
    compared: dict[str, str]
    receipt_hash: str
    report: str
    receipt: str = "receipt"
    caveats: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.ok


def verdict_of(found):
    return Verdict(
        found["ok"],
        found["verdict"],
        tuple(Finding(*f) for f in found["findings"]),
        found["compared"],
        found["receipt_hash"],
        found["report"],
        found["receipt"],
        tuple(found["caveats"]),
    )


def judged(native, receipt, require_key, *how):
    """The Verdict of a receipt; a list of them for several receipts, and for a batch."""
    several = isinstance(receipt, list | tuple)
    claims = [claim(one) for one in (receipt if several else [receipt])]
    found, notes = native(claims, several, paths_of("require_key", require_key), *how)
    warn(notes)
    verdicts = [verdict_of(one) for one in found]
    return verdicts if several or len(verdicts) > 1 else verdicts[0]


def paths_of(name, value):
    """None, one path or several -> a list of paths."""
    if value is None:
        return []
    return [path_of(name, one) for one in (value if isinstance(value, list | tuple) else [value])]


def hash_of(receipt):
    """The hash of a valid receipt."""
    verdict = validate(receipt)
    if isinstance(verdict, list) or not verdict:
        raise _native.BadInput("previous: not a valid receipt: validate() says why")
    return verdict.receipt_hash


def claim(receipt):
    """A receipt in one of its forms -> (its JSON, or None where a file has it; its name in
    messages)."""
    if isinstance(receipt, Generation):
        return receipt.receipt_json, "receipt"
    if isinstance(receipt, dict):
        try:
            return json.dumps(receipt, ensure_ascii=False, allow_nan=False), "receipt"
        except (TypeError, ValueError) as e:
            raise _native.BadInput(f"receipt: a dict that is no JSON: {e}") from None
    if isinstance(receipt, str) and receipt.lstrip().startswith("{"):
        return receipt, "receipt"
    if receipt is None:
        raise _native.BadInput("no receipt: give a path, a dict or a Generation")
    return None, path_of("receipt", receipt)


def validate(receipt: Receipts, *, require_key: Paths | None = None) -> Any:
    """Checks a receipt's structure, hashes and signatures and computes nothing, as `invar
    validate`. Returns a Verdict; raises BadInput where there is no receipt at all.

    receipt      a path, a dict or its JSON, or a Generation; a list of those, or the path of a
                 batch: then it returns a list of Verdicts, and one that is refused is among them
    require_key  a public key that must have signed, or several, all of which must: the path of a
                 .pub file, or 64 hexadecimal digits"""
    return judged(_native.validate, receipt, require_key)


def verdict_on(
    receipt,
    model,
    *,
    plan,
    spot,
    salt,
    steps,
    require_key,
    inputs,
    dims,
    bind,
    choices,
    audio,
    worker_model,
    **given,
):
    """invar.verify() (requests.py)."""
    if salt is not None and spot is None:
        raise _native.BadInput("salt: of a spot check: give spot=")
    if salt == "":
        raise _native.BadInput("salt: empty: give a text that the prover could not know, or None")
    if spot is not None and steps is not None:
        raise _native.BadInput("spot and steps: give one of them")
    if steps is not None:
        try:
            first, last = steps
        except (TypeError, ValueError):
            raise _native.BadInput(f"steps: {steps!r} is no pair (A, B)") from None
        steps = (whole("steps", first, 0, INT32), whole("steps", last, 0, INT32))
    where = _native.ModelOptions()
    where.model_name, where.plan = path_of("model", model), path_of("plan", plan)
    return judged(
        _native.verify,
        receipt,
        require_key,
        where,
        execution_of(given),
        jobs.start(given, worker_model),
        0 if spot is None else whole("spot", spot, 1, INT32),
        "" if salt is None else text_of("salt", salt),
        steps,
        arrays_of("inputs", inputs),
        arrays_of("bind", bind),
        [(text_of("dims", name), whole("dims", n, 0, INT32)) for name, n in (dims or {}).items()],
        text_of("choices", choices),
        path_of("audio", audio),
    )


def arrays_of(what, given):
    """A dict from names to arrays, as the native module takes it."""
    if not isinstance(given, Mapping | None):
        raise _native.BadInput(f"{what}: {type(given).__name__} is no dict from names to arrays")
    return [
        (text_of(what, name), arrays.on_host(array, f"{what} '{name}'"))
        for name, array in (given or {}).items()
    ]
