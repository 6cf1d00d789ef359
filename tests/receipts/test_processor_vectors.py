"""The known answers of processors, which the program has, hold for the independent implementation:
sampling.10 to sampling.19, sampling.22 to sampling.24 and sampling.32 of spec/sampling.md."""

import struct
import sys

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests/independent"))
from arithmetic.library import f32, row  # noqa: E402
from pages.processors import processed  # noqa: E402
from pages.receipt import float_text  # noqa: E402
from pages.sampling import Parameters, draw, remaining  # noqa: E402

LISTS = ("forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens")
FLOATS = ("repetition_penalty", "frequency_penalty", "presence_penalty")


def number(bits):
    return struct.unpack(">f", bytes.fromhex(bits))[0]


def ids(text, by=None):
    return [int(x) for x in text.split(by)]


def value_of(name, text):
    """A setting as `input` of a receipt has it, of FLOATS as its text."""
    if name in FLOATS:
        return float_text(number(text))
    if name in LISTS:
        return sorted(set(ids(text, ",")))
    if name == "bad_words_ids":
        return [ids(word, ",") for word in text.split(";")]
    if name == "logit_bias":
        pairs = (pair.split(":") for pair in text.split(","))
        return [[int(token), float_text(number(bits))] for token, bits in pairs]
    return int(text)


def parameters_of(said):
    def real(name, absent):
        return number(said[name]) if name in said else absent

    return Parameters(
        said["do_sample"] == "1", real("temperature", 1.0), int(said.get("top_k", 0)),
        real("top_p", 1.0), int(said["seed"]), real("min_p", 0.0), real("epsilon_cutoff", 0.0),
        int(said.get("stream", 0)),
    )  # fmt: skip


def bits(values):
    return ["nan" if x != x else struct.pack("<f", x).hex() for x in values]


def weights_of(logits, parameters):
    weights = remaining(logits, parameters)
    return " ".join(f"{i}:{weights[i]}" for i in sorted(weights) if weights[i])


def answer_of(line):
    """-> what is known of a line, and what the independent implementation says."""
    settings, prompt, answer, stop, limit, logits, after, chosen, token = line.split("|")
    said = dict(pair.split("=") for pair in settings.split())
    given = {name: value_of(name, text) for name, text in said.items()
             if name not in ("do_sample", "seed", "temperature", "top_k", "top_p", "min_p",
                             "epsilon_cutoff", "stream")}  # fmt: skip
    given |= {"tokens": ids(prompt), "stop_tokens": ids(stop), "max_new_tokens": int(limit)}
    parameters = parameters_of(said)
    logits = row(*map(number, logits.split()))
    made = processed([f32(x) for x in logits], given, ids(answer))
    known = [bits(map(number, after.split())), int(token)]
    try:
        found = [bits(made), draw(made, parameters, len(ids(answer)))]
    except ValueError:  # no logit is left
        found = [bits(made), -1]
    if parameters.do_sample and int(token) >= 0:
        known.append(chosen.strip())
        found.append(weights_of(made, parameters))
    return known, found


def test_known_answers():
    lines = (ROOT / "src/sample/processor_vectors.txt").read_text().splitlines()
    assert len(lines) == 800
    for n, line in enumerate(lines, start=1):
        known, found = answer_of(line)
        assert found == known, n
