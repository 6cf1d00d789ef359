#!/usr/bin/env python3
"""Masks beside those of llguidance, an engine of others, where both document the same meaning.

oracle.py [SCHEMAS]    needs `pip install llguidance`; INVAR_BUILD names the build

Random schemas without what the two write in different ways on purpose: numbers (grammar.10 bounds
their digits), escapes, and keys that no schema declares (grammar.6). At every token of texts that
fit, both allow the same tokens of a vocabulary."""

import sys

import llguidance
from probe import Probe, Schemas, written
from test_grammar import tokens_of

COMPACT = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}


class Tokenizer:
    """What llguidance asks of one."""

    def __init__(self, tokens):
        self.tokens = [*tokens, b"<end>"]
        self.eos_token_id, self.bos_token_id = len(tokens), None
        self.special_token_ids = [self.eos_token_id]

    def __call__(self, text):
        byte = {t: i for i, t in enumerate(self.tokens) if len(t) == 1}
        return [byte[bytes([b])] for b in (text if isinstance(text, bytes) else text.encode())]


def comparable(schema):
    """Without numbers, and with all keys declared."""
    if isinstance(schema, list):
        return all(map(comparable, schema))
    if not isinstance(schema, dict):
        return not isinstance(schema, int | float) or isinstance(schema, bool)
    types = schema.get("type", "" if {"enum", "anyOf"} & schema.keys() else "number")
    if {"integer", "number"} & {types if isinstance(types, str) else "", *types}:
        return False
    if "object" in types and schema.get("additionalProperties") is not False:
        return False
    if "array" in types and "items" not in schema:
        return False
    bounds = {"minItems", "maxItems", "minLength", "maxLength"}
    return all(comparable(v) for k, v in schema.items() if k not in bounds)


def main(count):
    probe, steps, compared = Probe(), 0, 0
    for seed in range(count):
        made = Schemas(seed)
        schema = made.schema()
        if not comparable(schema):
            continue
        tokens = tokens_of(made.random)
        wrapped = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer(tokens)))
        grammar = llguidance.LLMatcher.grammar_from_json_schema(schema, overrides=COMPACT)
        texts = [written(made.instance(schema)) for _ in range(4)]
        fits = probe.ask({"json": schema}, texts)
        if "error" in fits:
            continue
        compared += 1
        for text, fit in zip(texts, fits["fits"]):
            byte = {t: i for i, t in enumerate(tokens) if len(t) == 1}
            ids = [byte.get(bytes([b])) for b in text]
            if not fit or None in ids or b"\\" in text:
                continue
            matcher = llguidance.LLMatcher(wrapped, grammar)
            assert not matcher.is_error(), matcher.get_error()
            masks = probe.ask(
                {"json": schema}, (), tokens, answers=[ids[:i] for i in range(len(ids) + 1)]
            )
            for i, mine in enumerate(masks["masks"]):
                bias = matcher.compute_logit_bias()
                theirs = {t for t in range(len(tokens)) if bias[t]}
                theirs |= {-1} if matcher.is_accepting() else set()
                if (
                    matcher.compute_ff_tokens()
                ):  # one way alone: it has the tokens of its tokenizer only
                    theirs |= set(mine)
                differ = {t for t in theirs ^ set(mine) if t < 0 or b"\\" not in tokens[t]}
                shown = [tokens[t] if t >= 0 else "the end" for t in differ]
                assert not differ, (schema, text[:i], shown, sorted(differ & theirs))
                steps += 1
                if i < len(ids):
                    assert matcher.consume_token(ids[i])
    print(f"{steps} masks of {compared} schemas are equal")
    probe.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
