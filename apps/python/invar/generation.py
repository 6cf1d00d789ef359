"""Prompt -> answer and receipt; receipt -> verdict. The same code as `invar run`, `invar validate`
and `invar verify`."""

import json
import os
import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, Union

from invar import _native, arrays

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


def word(name, value):
    found = list_of(name, value, token)
    if not found:
        raise _native.BadInput(f"{name}: {value!r} is no list of token ids")
    return found


def stop_string(name, value):
    if not text_of(name, value):
        raise _native.BadInput(f"{name}: an empty text ends nothing")
    return value


def sampling_of(numbers, seed, do_sample, generation_config, **others):
    """SamplingOptions of decimals, of whole numbers (name = (value, least, most)) and of lists."""
    made = _native.SamplingOptions(
        numbers={n: decimal(n, v) for n, v in numbers.items() if v is not None},
        seed=whole("seed", seed, 0, 2**64 - 1),
        do_sample=do_sample,
        generation_config=flag("generation_config", generation_config),
    )
    for name, value in others.items():
        if isinstance(value, tuple):
            value = None if value[0] is None else whole(name, *value)
        if value is not None:
            setattr(made, name, value)
    return made


def execution_of(
    device,
    isa,
    threads,
    prefill_chunk,
    kv_cache=True,
    n_partitions=0,
    weights_memory=0,
    tensor_parallel=1,
    workers=None,
):
    if workers is not None:
        raise _native.NotCovered(
            "workers: processes and hosts are of the command line alone: `invar run --workers`; "
            "leave it out"
        )
    return _native.ExecutionOptions(
        device=device_of(device),
        isa=text_of("isa", isa),
        threads=whole("threads", threads, 0, _native.most_threads),
        prefill_chunk=whole("prefill_chunk", prefill_chunk, 0, 1 << 20),
        kv_cache=flag("kv_cache", kv_cache),
        n_partitions=whole("n_partitions", n_partitions, 0, 1 << 16),
        weights_memory=whole("weights_memory", weights_memory, 0, 2**63 - 1),
        tensor_parallel=whole("tensor_parallel", tensor_parallel, 1, 1 << 10),
    )


def device_of(value):
    """One device, or several: a list of names, or the text that the command line takes."""
    if isinstance(value, list | tuple) and value:
        return ",".join(text_of("device", name) for name in value)
    return text_of("device", value)


def warn(notes):
    for note in notes:
        warnings.warn(f"invar: {note}", RuntimeWarning, stacklevel=3)


class Generation:
    """The answer to one prompt: an iterator of pieces of its text (str, none of them empty), each
    computed when it is asked for. Joined, the pieces are `text`. What follows is about the whole
    answer, and computes what is missing of it:

    text           the answer
    tokens         its token ids, a list of int, a stop token at its end included
    receipt        the receipt, a dict of the members in spec/receipt.md
    receipt_json   the receipt as `invar run` writes it, to the byte
    receipt_hash   64 hexadecimal digits
    finish_reason  "stop" (the last token is a stop token) or "length"

    Threads may share a generation; one of them computes at a time. An error ends it, and each later
    use raises it again."""

    def __init__(self, native: Any) -> None:
        self._native, self._error, self._ended, self._lock = native, None, False, threading.Lock()
        self._receipt = None

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
        self._path, self._engine = path_of("model", path), None

    def __fspath__(self) -> str:
        return self._path

    def engine(self, where, execution):
        if self._engine is None or not self._engine.serves(where, execution):
            self._engine = None  # frees its memory first
            self._engine = _native.Engine(where, execution)
        return self._engine

    def unload(self) -> None:
        self._engine = None

    @property
    def loads(self) -> int:
        """How often the engine of the last call has loaded the model."""
        return 0 if self._engine is None else self._engine.loads


def generate(
    model: Path,
    prompt: str | None = None,
    *,
    messages: list[dict[str, Any]] | dict[str, Any] | None = None,
    tools: list[dict[str, Any]] | None = None,
    enable_thinking: bool | None = None,
    max_new_tokens: int | None = None,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float | None = None,
    no_repeat_ngram_size: int | None = None,
    min_new_tokens: int | None = None,
    bad_words_ids: list[list[int]] | None = None,
    suppress_tokens: list[int] | None = None,
    stop_strings: str | list[str] | None = None,
    seed: int = 0,
    do_sample: bool | None = None,
    generation_config: bool = True,
    device: str | list[str] | tuple[str, ...] = "cpu",
    isa: str = "",
    threads: int = 0,
    prefill_chunk: int = 0,
    kv_cache: bool = True,
    n_partitions: int = 0,
    tensor_parallel: int = 1,
    weights_memory: int = 0,
    workers: None = None,
    plan: Path | None = None,
    operation_set: str | None = None,
    numerics: str | None = None,
    task_dir: Path | None = None,
    tasks_root: Path | None = None,
    colocate_tensors: bool = False,
    name: str | None = None,
    receipt_path: Path | None = None,
    record_model_path: bool = False,
    sign: Paths | None = None,
    salt_prompt: bool = False,
    previous: Receipt | None = None,
) -> Generation:
    """The answer of a language model to a prompt, as a Generation: iterate over it for the text as
    it is computed, or ask it for `.text`, `.tokens` and `.receipt`. Text, tokens and receipt hash
    are those of `invar run` with the same parameters.

    model              a Hugging Face checkpoint folder, or "org/name" in the local cache
    prompt             str
    messages           list of dicts, or a dict with "messages" and other members of a chat
                       (spec/chat.md), which the model's chat template makes the prompt of
    tools              list of dicts that the template shows to the model
    enable_thinking    bool: the template's switch

    These change the answer and stand in the receipt. None: what the checkpoint's
    generation_config.json says, else greedy.
    max_new_tokens     int >= 1
    temperature        number >= 0; 0: always the most likely token, whatever the others say
    top_k              int >= 0; 0: all tokens
    top_p              number in (0, 1]
    min_p              number in [0, 1]; tokens of less than this share of the best one's
                       probability are not drawn
    repetition_penalty    number > 0; 1: none
    no_repeat_ngram_size  int >= 0; 0: no limit
    min_new_tokens     int >= 0; no token that ends the answer comes before
    bad_words_ids      list of lists of token ids that never come in a row
    suppress_tokens    list of token ids that never come
    stop_strings       str, or a list of them; each ends the answer, which keeps it
    seed               int, 0 to 2**64 - 1
    do_sample          True: tokens are drawn; False: always the most likely token; None: drawn
                       where temperature, top_k, top_p or min_p is given or the checkpoint says so
    generation_config  False: nothing is taken from generation_config.json but the tokens that end
                       an answer
    operation_set      "reproducible" (the default), "deterministic" or "default"
    numerics           how products with the model's weights are computed: "fp32" (the default), or
                       "exact16", in rows of 16-bit integers; another program, with other bits

    These change no bit of a reproducible program.
    device, isa, threads (0: one per core), prefill_chunk (tokens of the prompt per step; 0:
    chosen), kv_cache
    n_partitions       int: the model is split by layers into N parts over the devices of `device`,
                       which may be several then (["cuda:0", "cuda:1"] or "cuda:0,cuda:1"); 0: one
                       for each device
    tensor_parallel    int: each part is divided by whole results, heads and columns, among N ranks
                       over the devices of `device`
    weights_memory     int: at most N bytes of weights in the device's memory; layers that do not
                       fit are loaded at every step; 0: all of them stay
    workers            None: processes and hosts are of the command line alone, anything else raises
                       NotCovered
    plan               a compiled plan that is used instead of compiling the checkpoint
    task_dir, tasks_root, colocate_tensors    where export and plan are kept, as --task-dir,
                                              --tasks-root and --colocate-tensors

    name               str: what the receipt calls the model, a label that the receipt binds; None:
                       the name of the folder or of the hub
    receipt_path       a file that the receipt is written to when the answer ends; None: it is in
                       `.receipt` alone
    record_model_path  the receipt's execution section also names `model`
    sign               the file of a private key, or several, that sign the receipt
    salt_prompt        True: the receipt binds a random salt, so that `invar redact` can withhold
                       the prompt
    previous           the receipt of the turn before, which this one binds: a path, a dict or a
                       Generation

    Raises BadInput, NotCovered or Failed before anything is computed where the request is at fault,
    with the line of `invar run`."""
    if (prompt is None) == (messages is None):
        raise _native.BadInput("no prompt: give prompt= or messages=, one of them")
    if messages is None and not (tools is None and enable_thinking is None):
        raise _native.BadInput("tools and enable_thinking are for messages=, not for prompt=")
    chat = "" if messages is None else chat_of(messages, tools, enable_thinking)
    if model is None:
        raise _native.BadInput("no model: give a checkpoint folder, or org/name")
    if do_sample is not None:
        flag("do_sample", do_sample)
    if do_sample is False and any(
        x is not None for x in (temperature or None, top_k, top_p, min_p)
    ):
        raise _native.BadInput(
            "do_sample=False always takes the most likely token: leave temperature, top_k, top_p and "
            "min_p out"
        )
    if isinstance(stop_strings, str):
        stop_strings = [stop_strings]
    sampling = sampling_of(
        {
            "temperature": temperature,
            "top_p": top_p,
            "min_p": min_p,
            "repetition_penalty": repetition_penalty,
        },
        seed,
        do_sample,
        generation_config,
        max_new_tokens=(max_new_tokens, 1, 1 << 30),
        min_new_tokens=(min_new_tokens, 0, 1 << 30),
        top_k=(top_k, 0, INT32),
        no_repeat_ngram_size=(no_repeat_ngram_size, 0, INT32),
        bad_words_ids=list_of("bad_words_ids", bad_words_ids, word),
        suppress_tokens=list_of("suppress_tokens", suppress_tokens, token),
        stop_strings=list_of("stop_strings", stop_strings, stop_string),
    )
    where = _native.ModelOptions(
        model_name=path_of("model", model),
        plan=path_of("plan", plan),
        task_dir=path_of("task_dir", task_dir),
        tasks_root=path_of("tasks_root", tasks_root),
        colocate_tensors=flag("colocate_tensors", colocate_tensors),
        operation_set=name_or_default("operation_set", operation_set),
        numerics=name_or_default("numerics", numerics),
        name=name_or_default("name", name),
    )
    execution = execution_of(
        device,
        isa,
        threads,
        prefill_chunk,
        kv_cache,
        n_partitions,
        weights_memory,
        tensor_parallel,
        workers,
    )
    native = _native.Generation(
        model.engine(where, execution)
        if isinstance(model, KeptModel)
        else _native.Engine(where, execution),
        sampling,
        "" if prompt is None else text_of("prompt", prompt),
        chat=chat,
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
    if receipt is None:
        raise _native.BadInput("no receipt: give a path, a dict or a Generation")
    return None, path_of("receipt", receipt)


def validate(receipt: Receipts, *, require_key: Paths | None = None) -> Any:
    """Checks a receipt's structure, hashes and signatures and computes nothing, as `invar
    validate`. Returns a Verdict; raises BadInput where there is no receipt at all.

    receipt      a path, a dict, or a Generation; a list of those, or the path of a batch: then it
                 returns a list of Verdicts, and one that is refused is among them
    require_key  a public key that must have signed, or several, all of which must: the path of a
                 .pub file, or 64 hexadecimal digits"""
    return judged(_native.validate, receipt, require_key)


def verify(
    receipt: Receipts,
    model: Path | None = None,
    *,
    plan: Path | None = None,
    device: str | list[str] | tuple[str, ...] = "cpu",
    isa: str = "",
    threads: int = 0,
    prefill_chunk: int = 0,
    n_partitions: int = 0,
    tensor_parallel: int = 1,
    weights_memory: int = 0,
    workers: None = None,
    spot: int | None = None,
    salt: str | None = None,
    steps: tuple[int, int] | None = None,
    require_key: Paths | None = None,
    inputs: Mapping[str, Any] | None = None,
    dims: Mapping[str, int] | None = None,
    bind: Mapping[str, Any] | None = None,
    choices: str = "all",
) -> Any:
    """Computes a receipt again on this machine and compares bit for bit, as `invar verify`. Returns
    a Verdict.

    receipt   a path, a dict (the `.receipt` of a Generation, or json.load() of a file), or a
              Generation; several, as for validate(): a model is then loaded once
    model     the checkpoint: a folder, or "org/name"; None: it is found by what the receipt says
              and what this user ran before
    plan      compared instead of compiling the checkpoint, which stands for the plan then; the
              verdict is then VERIFIED BY A GIVEN PLAN
    device, isa, threads, prefill_chunk, n_partitions, tensor_parallel, weights_memory, workers
              as for generate(); the verdict does not depend on them

    spot      int: only N steps are computed, which the receipt's hash and `salt` choose;
              the verdict is then SPOT CHECKED
    salt      str, which the prover could not know; None: a random one, which the report names
    steps     (A, B): only the steps from A up to, and without, B are computed
    require_key     as for validate()

    These are for receipts of tensors, whose model is a .onnx file, or which have a plan:
    inputs    a dict from names to arrays on the host
    dims, bind, choices    as the model was compiled: a dict from names of dimensions to sizes, a
                           dict from names of inputs to arrays, and numerics choices

    Raises BadInput where the receipt or the model is none or is not found, NotCovered where the
    receipt's operation set, or a withheld prompt, lets nobody verify it here."""
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
    return judged(
        _native.verify,
        receipt,
        require_key,
        _native.ModelOptions(model_name=path_of("model", model), plan=path_of("plan", plan)),
        execution_of(
            device,
            isa,
            threads,
            prefill_chunk,
            n_partitions=n_partitions,
            weights_memory=weights_memory,
            tensor_parallel=tensor_parallel,
            workers=workers,
        ),
        0 if spot is None else whole("spot", spot, 1, INT32),
        "" if salt is None else text_of("salt", salt),
        steps,
        arrays_of("inputs", inputs),
        arrays_of("bind", bind),
        [(text_of("dims", name), whole("dims", n, 0, INT32)) for name, n in (dims or {}).items()],
        text_of("choices", choices),
    )


def arrays_of(what, given):
    """A dict from names to arrays, as the native module takes it."""
    if not isinstance(given, Mapping | None):
        raise _native.BadInput(f"{what}: {type(given).__name__} is no dict from names to arrays")
    return [
        (text_of(what, name), arrays.on_host(array, f"{what} '{name}'"))
        for name, array in (given or {}).items()
    ]
