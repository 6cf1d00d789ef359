"""The examples of models, tokens and sampling in spec/. Each function yields what differs."""

import hashlib
import re

from pages import processors, rotary, sampling
from pages.model import Model
from pages.tokens import Tokenizer

from examples import ROOT, bits, expect, number, page, rows_of

SHIPPED = ROOT / "models/shakespeare-4m"
KEYS = {
    "low": "low_freq_factor",
    "high": "high_freq_factor",
    "n": "original_max_position_embeddings",
}


def frequencies():
    """The table of checkpoint.md."""
    rows = [cells for cells in rows_of("checkpoint", "| ") if cells[0].isdigit()]
    yield from expect("checkpoint.md rows", len(rows), 6)
    for d, theta, kind, table, factor in rows:
        name, *others = kind.replace("`", "").replace(" = ", " ").split(", ")
        parameters = {"rope_type": name, "rope_theta": float(theta)}
        for key, value in (other.split(" ") for other in others):
            parameters[KEYS.get(key, key)] = False if value == "false" else float(value)
        values, a = rotary.inverse_frequencies({"rope_parameters": parameters}, int(d))
        if "SHA-256" in table:
            found = f"SHA-256 `{hashlib.sha256(bytes(values)).hexdigest()}`"
        else:
            found, table = " ".join(f"`{bits(x)}`" for x in values), table.split(":")[0]
        yield from expect(f"checkpoint.md {kind}, d = {d}", found, table)
        yield from expect(f"checkpoint.md {kind}: a", "1" if a == 1 else f"`{bits(a)}`", factor)


def tokens():
    """The table of tokens.md, with the second text as it stands and the third as it is
    described."""
    tokenizer = Tokenizer((SHIPPED / "tokenizer.json").read_bytes())
    found = [c for c in rows_of("tokens", "| ") if len(c) == 3 and re.fullmatch(r"[\d, ]+", c[1])]
    yield from expect("tokens.md rows", len(found), 3)
    for text, ids, _ in found:
        text = "a\n\n b<|end_of_text|>c" if "line feeds" in text else text.strip("`")
        yield from expect(f"tokens.md {text}", ", ".join(map(str, tokenizer.encode(text))), ids)
    yield from expect("tokens.md text", tokenizer.decode([542, 13, 314, 297]), " then, in I")


def random_draws():
    """The example of sampling.md."""
    logits = [number(x) for x in "3fc00000 be800000 3fc00000 00000000 ff800000 40400000".split()]
    parameters = sampling.Parameters(True, number("3f4ccccd"), 4, number("3f666666"), 42)
    weights = {5: 0x10000000000, 0: 0x2742458000, 2: 0x2742458000}
    yield from expect("sampling.md weights", sampling.remaining(logits, parameters), weights)
    without = sampling.Parameters(True, number("3f4ccccd"), 4)
    weights[3] = 0x605425000
    yield from expect("sampling.md top_k", sampling.remaining(logits, without), weights)
    words = " ".join(f"{w:08x}" for w in sampling.philox((0, 0, 0, 0), (42, 0)))
    yield from expect("sampling.md Philox", words, "9ceaf053 77f5493b 12bf50ad 5742b3d7")
    yield from expect("sampling.md u", sampling.random_number(42, 0), 0x77F5493B9CEAF053)
    yield from expect("sampling.md token", sampling.draw(logits, parameters, 0), 5)
    for text in [words, "2742458000", "605425000", "77f5493b9ceaf053"]:
        yield from expect(f"sampling.md has {text}", text in page("sampling"), True)


def settings():
    """The examples of processors, min_p and epsilon_cutoff in sampling.md."""
    logits = [1.0, -1.0, 3.0, 0.5, 2.0]
    given = {"tokens": [0, 1, 2], "stop_tokens": [2], "max_new_tokens": 9}
    steps = [
        {"repetition_penalty": "1.3"},
        {"logit_bias": [[4, "-1.5"]]},
        {"frequency_penalty": "0.3", "presence_penalty": "0.1"},
        {"no_repeat_ngram_size": 2},
        {"bad_words_ids": [[1, 4], [2, 0, 3]]},
        {"min_new_tokens": 3},
    ]
    lines = [c[1] for c in rows_of("sampling", "| ") if re.match("`[0-9a-f]{8} ", c[1])]
    yield from expect("sampling.md rows", len(lines), len(steps))
    for step, line in zip(steps, lines):
        given |= step
        found = " ".join(map(bits, processors.processed(logits, given, [0])))
        yield from expect(f"sampling.md {step}", f"`{found}`", line)
    logits = [number(x) for x in "3fc00000 be800000 3fc00000 00000000 ff800000 40400000".split()]
    for epsilon, kept in {"00000000": {0, 2, 5}, "3e4ccccd": {5}}.items():
        parameters = sampling.Parameters(
            True, number("3f4ccccd"), 4, 1.0, 42, number("3dcccccd"), number(epsilon)
        )
        found = set(sampling.remaining(logits, parameters))
        yield from expect(f"sampling.md epsilon_cutoff {epsilon}", found, kept)
    for x, y in {"3dcccccd": "199999a000", "3e4ccccd": "3333334000"}.items():
        yield from expect(f"sampling.md fixed40 {x}", f"{sampling.fixed40(number(x)):x}", y)
        yield from expect(f"sampling.md has {y}", f"`{y}`" in page("sampling"), True)


def llama(folder=SHIPPED):
    """The example of llama.md: every value of a step of three tokens."""
    seen = []
    session = Model(folder).decoder.session()
    for token in [0, 5, 7]:
        step = []
        session.watch = lambda name, value, step=step: step.append((name, bytes(value)))
        session.step(token)
        seen.append(step)
    layer = len(seen[0]) - 2  # but for n and logits
    first = 3 + 1 + (layer - 4) // 5
    kept = [*range(first), layer - 1, layer, layer + 1]
    table = [
        c for c in rows_of("llama", "| ") if len(c) == 4 and re.fullmatch("`[0-9a-f]{64}`", c[3])
    ]
    yield from expect("llama.md rows", len(table), len(kept))
    for index, (name, _, last, digest) in zip(kept, table):
        values = [step[index][1] for step in seen]
        yield from expect("llama.md name", seen[0][index][0], name.split(" ")[0])
        yield from expect(f"llama.md {name} last", f"`{values[2][-4:][::-1].hex()}`", last)
        found = hashlib.sha256(b"".join(values)).hexdigest()
        yield from expect(f"llama.md {name}", f"`{found}`", digest)


def differences():
    for example in (frequencies, tokens, random_draws, settings, llama):
        yield from example()
