"""A small language of sentences with choices, and the random numbers that choose.

[red|blue|]      one of the parts, each as likely; parts may have choices themselves
{name}           a word of the scene; {Name} begins with a capital; {a name} has its article"""

import functools
import random

VOWELS = frozenset("aeiouAEIOU")
AN = ("hour", "honest")  # words that begin with a vowel's sound, and those that only look so
A = ("one", "use", "uni", "European")


class Dice:
    """Random numbers of a seed. Only random() is used, whose values Python promises to keep."""

    def __init__(self, seed):
        self._random = random.Random(seed).random

    def below(self, n):
        return int(self._random() * n)

    def chance(self, p):
        return self._random() < p

    def pick(self, items):
        return items[int(self._random() * len(items))]

    def picks(self, items, count):
        """Different items, in random order."""
        left = list(items)
        return [left.pop(int(self._random() * len(left))) for _ in range(count)]

    def between(self, low, high):
        return low + int(self._random() * (high - low + 1))


def article(word):
    if word.startswith(AN):
        return "an " + word
    if word.startswith(A):
        return "a " + word
    return ("an " if word[:1] in VOWELS else "a ") + word


def capital(text):
    return text[:1].upper() + text[1:]


def listed(items, last="and"):
    """red, blue and green"""
    items = list(items)
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + f" {last} " + items[-1]


def _parse(text, at, inside):
    """(parts, the place after them): texts, names in a tuple, choices in a list."""
    parts, begin = [], at
    while at < len(text) and not (inside and text[at] in "|]"):
        if text[at] not in "[{":
            at += 1
            continue
        if at > begin:
            parts.append(text[begin:at])
        if text[at] == "{":
            end = text.index("}", at)
            parts.append((text[at + 1 : end],))
            at = end + 1
        else:
            choices = []
            while text[at] != "]":
                found, at = _parse(text, at + 1, True)
                choices.append(found)
            parts.append(choices)
            at += 1
        begin = at
    if at > begin:
        parts.append(text[begin:at])
    return parts, at


@functools.lru_cache(None)
def parsed(text):
    return _parse(text, 0, False)[0]


def _write(parts, dice, words, out):
    for part in parts:
        if type(part) is str:
            out.append(part)
        elif type(part) is list:
            _write(dice.pick(part), dice, words, out)
        else:
            out.append(_word(part[0], words))


def _word(name, words):
    if name in words:
        return words[name]
    if name[:2] in ("a ", "A "):
        found = article(_word(name[2:], words))
        return capital(found) if name[0] == "A" else found
    return capital(words[name[0].lower() + name[1:]])


def write(text, dice, words):
    """The text with its choices made and its names replaced."""
    out = []
    _write(parsed(text), dice, words, out)
    found = "".join(out)
    while "  " in found:
        found = found.replace("  ", " ")
    return found.strip(" ")


def say(dice, text, **names):
    return write(text, dice, {k.replace("_", "."): v for k, v in names.items()})
