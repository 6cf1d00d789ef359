"""Answers that fit a schema (spec/grammar.md), by readers that know nothing of it: json and
jsonschema take every text that the masks lead to, and the masks take every value that jsonschema
accepts."""

import json
import time

import jsonschema
import pytest
from probe import Probe, Schemas, written

SEEDS = range(120)


@pytest.fixture(scope="module")
def probe():
    made = Probe()
    yield made
    made.close()


def tokens_of(random):
    """Bytes, so that everything can be spelled, and pieces that cross the borders of JSON."""
    pieces = [
        '{"',
        '"}',
        '","',
        '":',
        '":"',
        "[",
        "]",
        "],[",
        "tr",
        "ue",
        "null",
        "12",
        "-",
        "é",
        "ab",
    ]
    pieces += ["".join(random.choices(pieces, k=3)) for _ in range(60)] + ["hello", "xx", " y"]
    alphabet = [bytes([b]) for b in [*range(32, 127), 0xC3, 0xA9, 0xF0, 0x9F, 0x98, 0x80, 10]]
    return alphabet + [p.encode() for p in pieces]


def test_random_schemas(probe):
    """120 schemas: each walk through the masks parses and validates; instances are accepted just as
    jsonschema accepts them."""
    ended = fitted = 0
    for seed in SEEDS:
        made = Schemas(seed)
        schema = made.schema()
        validator = jsonschema.Draft202012Validator(schema)
        values = [made.instance(made.schema() if i % 4 == 3 else schema) for i in range(12)]
        texts = [written(v) for v in values]
        answer = probe.ask(
            {"json": schema}, texts, tokens_of(made.random), walks=3, most=200, seed=seed
        )
        if "error" in answer:
            assert "no answer fits" in answer["error"], (schema, answer)
            assert not any(map(validator.is_valid, values)), schema
            continue
        for text in filter(None, answer["walks"]):
            ended += 1
            validator.validate(json.loads(text))
        # Values are accepted where their members are in the schema's order: instances of it are.
        bytewise = probe.ask({"json": schema}, texts)["fits"]
        for i, (value, fits) in enumerate(zip(values, bytewise)):
            assert not fits or validator.is_valid(value), (schema, value)
            if i % 4 != 3:
                assert fits == validator.is_valid(value), (schema, value)
                fitted += fits
    assert ended > 150 and fitted > 500, (ended, fitted)


def test_a_mask_of_a_large_vocabulary_is_soon_there(probe):
    """All masks of an answer over 128,000 tokens; the time is for the log alone."""
    random = Schemas(1).random
    letters = "etaoinshrdlucmfwygpbvk"
    tokens = tokens_of(random) + [
        (" " * (i % 2) + "".join(random.choices(letters, k=1 + i % 9))).encode()
        for i in range(127_500)
    ]
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "short": {"type": "string", "maxLength": 40},
            "n": {"type": "number"},
        },
        "required": ["name", "short", "n"],
        "additionalProperties": False,
    }
    (space,) = [i for i, t in enumerate(tokens) if t == b"e"][:1]
    byte = {t: i for i, t in enumerate(tokens) if len(t) == 1}
    text = b'{"name":"' + b"e" * 40 + b'","short":"' + b"e" * 40
    ids = [byte[bytes([b])] for b in text]
    start = time.monotonic()
    masks = probe.ask(
        {"json": schema}, (), tokens, answers=[ids[:i] for i in [*range(9, len(ids), 8), len(ids)]]
    )
    print(f"{len(masks['masks'])} masks and their JSON in {time.monotonic() - start:.2f} s")
    inside, last = masks["masks"][5], masks["masks"][-1]
    plain = [
        i for i, t in enumerate(tokens) if not set(t) & set(b'"\\') and t.isascii() and t >= b" "
    ]
    assert set(plain) <= set(inside) and space in inside
    assert [tokens[i] for i in last if not tokens[i].startswith(b'"')] == []


HOSTILE = [
    {"$ref": "#"},
    {"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
    {"type": "string", "pattern": "(" * 3000 + ")" * 3000},
    {"type": "string", "pattern": "((a{1,999}){1,999}){1,999}"},
    {"type": "string", "maxLength": 10**30},
    {"type": "array", "prefixItems": [{}] * 300},
    {"enum": []},
    {"type": []},
    {"type": "array", "items": {"enum": list(range(40000))}, "maxItems": 256, "minItems": 256},
    {
        "type": "object",
        "properties": {str(i): {"type": "string", "maxLength": 4096} for i in range(60)},
    },
]


def test_hostile_schemas_end(probe):
    for schema in HOSTILE:
        answer = probe.ask({"json": schema})
        assert "error" in answer or schema.get("items"), schema
    deep = {"type": "null"}
    for _ in range(150):
        deep = {"type": "array", "items": deep, "minItems": 1}
    assert "no answer fits" in probe.ask({"json": deep})["error"]
    chain = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(500)} | {"d500": {"const": 1}}
    assert probe.ask({"json": {"$ref": "#/$defs/d0", "$defs": chain}}, [b"1", b"2"])["fits"] == [
        True,
        False,
    ]
    wide = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(400)} | {
        "d400": {"const": 1}
    }
    answer = probe.ask({"json": {"$ref": "#/$defs/d0", "$defs": wide}}, [b"1"])
    assert answer.get("fits") == [True] or "alternatives" in answer["error"]
    many = {"type": "object", "properties": {str(i): True for i in range(3000)}}
    assert "alternatives" in probe.ask({"json": many}, [b"{}"])["error"]
    assert "alternatives" in probe.ask({"regex": "(.?){1100}x"}, [b"x"])["error"]
