"""Dimensions that are computed from named ones (spec/plan.md plan.12)."""

import re

from invar import _native

TOKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[-+*/(),]")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\b(?!\()")  # of a dimension, in what is computed from it


class _Reader:
    """SUM = [-] TERM {+|- TERM}; TERM = FACTOR {* FACTOR}; FACTOR = NUMBER | NAME | (SUM)/NUMBER |
    min(SUM,SUM). Computes while it reads; `size` says what a name is."""

    def __init__(self, text, size):
        self.text, self.size = text, size
        self.tokens = TOKEN.findall(text)[::-1]
        if "".join(reversed(self.tokens)) != text:
            self.refuse()

    def refuse(self):
        raise _native.BadInput(
            f"dimension {self.text!r}: no sum of products as spec/plan.md has it (plan.12)"
        )

    def accept(self, *wanted):
        return self.tokens.pop() if self.tokens and self.tokens[-1] in wanted else None

    def expect(self, wanted):
        return self.accept(wanted) or self.refuse()

    def whole(self):
        found = self.sum()
        return self.refuse() if self.tokens else found

    def sum(self):
        total = -self.term() if self.accept("-") else self.term()
        while sign := self.accept("+", "-"):
            total += self.term() if sign == "+" else -self.term()
        return total

    def term(self):
        found = self.factor()
        while self.accept("*"):
            found *= self.factor()
        return found

    def factor(self):
        if self.accept("("):
            found = self.sum()
            self.expect(")"), self.expect("/")
            by = self.number()
            return found // by if by > 0 else self.refuse()
        token = self.tokens[-1] if self.tokens else self.refuse()
        if token[0].isdigit():
            return self.number()
        if not NAME.fullmatch(token):
            self.refuse()
        self.tokens.pop()
        if token == "min" and self.accept("("):
            first = self.sum()
            self.expect(",")
            second = self.sum()
            self.expect(")")
            return min(first, second)
        return self.size(token)

    def number(self):
        return (
            int(self.tokens.pop()) if self.tokens and self.tokens[-1].isdigit() else self.refuse()
        )


def value(dim, sizes):
    """A dimension for sizes of the named ones; None: one of its names has none."""
    if not isinstance(dim, str):
        return dim
    read = []  # to the end, so that other texts are refused whatever their names
    found = _Reader(dim, lambda name: read.append(name) or sizes.get(name, 0)).whole()
    return found if all(name in sizes for name in read) else None


def in_python(dim):
    """A quotient of a dimension binds closer than what stands before it: 4*(n+1)/2 is
    4*((n+1)//2)."""
    _Reader(
        dim, lambda name: 0
    ).whole()  # what comes from a file becomes code: nothing but such a sum does
    text, opened, number = "", [], False
    for c in dim:
        if number and not c.isdigit():
            text, number = text + ")", False
        if c == "(":
            opened.append(len(text))
        elif c == ")":
            last = opened.pop()
        elif c == "/":
            text, c, number = f"{text[:last]}({text[last:]}", "//", True
        text += c
    return text + ")" * number
