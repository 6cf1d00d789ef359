#!/usr/bin/env python3
"""Masks beside those of llguidance and xgrammar, engines of others, where all document the same
meaning.

oracle.py [SCHEMAS] [llguidance|xgrammar]    INVAR_BUILD names the build; needs the package of the
                                             engine, which is llguidance where none is named

Random schemas without what they write in different ways on purpose: numbers (grammar.10 bounds
their digits), escapes, and keys that no schema declares (grammar.6). At every token of texts that
fit, both allow the same tokens of a vocabulary."""

import json
import sys

from probe import Probe, Schemas, written
from test_grammar import tokens_of

END = -1  # that the text may end


class Tokenizer:
    """What llguidance asks of one."""

    def __init__(self, tokens):
        self.tokens = [*tokens, b"<end>"]
        self.eos_token_id, self.bos_token_id = len(tokens), None
        self.special_token_ids = [self.eos_token_id]

    def __call__(self, text):
        byte = {t: i for i, t in enumerate(self.tokens) if len(t) == 1}
        return [byte[bytes([b])] for b in (text if isinstance(text, bytes) else text.encode())]


class Llguidance:
    """The walk of one text: what may come, and what has."""

    COMPACT = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}

    @staticmethod
    def takes(schema):
        return True

    @classmethod
    def walks(cls, schema, tokens):
        import llguidance

        wrapped = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer(tokens)))
        grammar = llguidance.LLMatcher.grammar_from_json_schema(schema, overrides=cls.COMPACT)
        return lambda: cls(llguidance.LLMatcher(wrapped, grammar), len(tokens))

    def __init__(self, matcher, count):
        assert not matcher.is_error(), matcher.get_error()
        self.matcher, self.count = matcher, count

    def allowed(self, mine):
        bias = self.matcher.compute_logit_bias()
        theirs = {t for t in range(self.count) if bias[t]}
        theirs |= {END} if self.matcher.is_accepting() else set()
        if self.matcher.compute_ff_tokens():  # one way alone: it has its tokenizer's tokens only
            theirs |= set(mine)
        return theirs

    def take(self, token):
        return self.matcher.consume_token(token)


class Xgrammar:
    """It reads a pattern in its own way, and takes no prefixItems without an end."""

    @classmethod
    def takes(cls, schema):
        if isinstance(schema, list):
            return all(map(cls.takes, schema))
        if not isinstance(schema, dict):
            return True
        return "pattern" not in schema and all(map(cls.takes, schema.values()))

    @classmethod
    def walks(cls, schema, tokens):
        import xgrammar

        info = xgrammar.TokenizerInfo(
            [*tokens, b"<end>"], xgrammar.VocabType.RAW, stop_token_ids=[len(tokens)]
        )
        compact = {"any_whitespace": False, "separators": (",", ":"), "strict_mode": False}
        compiler = xgrammar.GrammarCompiler(info, max_threads=1)
        compiled = compiler.compile_json_schema(json.dumps(schema), **compact)
        return lambda: cls(xgrammar, compiled, len(tokens))

    def __init__(self, xgrammar, compiled, count):
        self.matcher, self.count = xgrammar.GrammarMatcher(compiled), count
        self.mask = xgrammar.allocate_token_bitmask(1, count + 1)

    def allowed(self, mine):
        self.matcher.fill_next_token_bitmask(self.mask)
        words = self.mask[0].tolist()
        bits = {t for t in range(self.count + 1) if words[t // 32] >> t % 32 & 1}
        return {END if t == self.count else t for t in bits}

    def take(self, token):
        return self.matcher.accept_token(token)


ENGINES = {"llguidance": Llguidance, "xgrammar": Xgrammar}


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


def main(count, engine):
    probe, steps, compared = Probe(), 0, 0
    for seed in range(count):
        made = Schemas(seed)
        schema = made.schema()
        if not comparable(schema) or not engine.takes(schema):
            continue
        tokens = tokens_of(made.random)
        walk = engine.walks(schema, tokens)
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
            matcher = walk()
            masks = probe.ask(
                {"json": schema}, (), tokens, answers=[ids[:i] for i in range(len(ids) + 1)]
            )
            for i, mine in enumerate(masks["masks"]):
                theirs = matcher.allowed(mine)
                differ = {t for t in theirs ^ set(mine) if t < 0 or b"\\" not in tokens[t]}
                shown = [tokens[t] if t >= 0 else "the end" for t in differ]
                assert not differ, (schema, text[:i], shown, sorted(differ & theirs))
                steps += 1
                if i < len(ids):
                    assert matcher.take(ids[i])
    print(f"{steps} masks of {compared} schemas are equal")
    probe.close()


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    main(int(given.get(1, 400)), ENGINES[given.get(2, "llguidance")])
