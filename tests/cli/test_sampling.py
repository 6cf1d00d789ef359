"""The known answers of sampling are what an independent reading of spec/sampling.md gives (numpy,
decimal)."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location(
    "sampling_vectors", ROOT / "tools/sampling/vectors.py"
)
vectors = importlib.util.module_from_spec(spec)
spec.loader.exec_module(vectors)


def test_committed_vectors_follow_the_specification():
    for name, made in (
        ("vectors.txt", vectors.cases()),
        ("processor_vectors.txt", vectors.processor_cases()),
        ("logprob_vectors.txt", vectors.logprob_cases()),
    ):
        assert list(made) == (ROOT / "src/sample" / name).read_text().splitlines()


def test_philox_known_answers():  # Random123, tests/kat_vectors
    ones = 0xFFFFFFFF
    assert vectors.philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert vectors.philox([ones] * 4, [ones] * 2) == [
        0x408F276D,
        0x41C83B0E,
        0xA20BC7C6,
        0x6D5451FD,
    ]
    assert vectors.philox(
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0]
    ) == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def test_worked_example_of_the_specification():
    text = (ROOT / "spec/sampling.md").read_text()
    line = next(vectors.cases())
    parameters, logits, rest = line.split(" | ")
    chosen, token = rest.split(" -> ")
    assert " ".join(logits.split()) in text
    for pair in chosen.split():
        weight = int(pair.split(":")[1])
        assert f"{weight:x}" in text, pair
    u = vectors.random_u64(42, 0, 0)
    total = sum(int(p.split(":")[1]) for p in chosen.split())
    for number in (u, total, u * total >> 64):
        assert f"{number:x}" in text, hex(number)
    assert f"token {token}" in text
