"""tokens.16: a SentencePiece file of the kind BPE, without a map of characters."""

import json
import struct

from arithmetic.mutation import active

UNKNOWN, CONTROL, ADDED, UNUSED, BYTE = 2, 3, 4, 5, 6
SPACE = "\u2581"


def fields(data):
    """A message of protocol buffers: the number and the value of each field."""
    at = 0

    def varint():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte, at = data[at], at + 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        number, form = divmod(varint(), 8)
        if form == 0:
            yield number, varint()
            continue
        size = 4 if form == 5 else varint()
        yield number, data[at : at + size]
        at += size


class Pieces:
    def __init__(self, data, checkpoint):
        message = list(fields(data))
        rows = [dict(fields(value)) for number, value in message if number == 1]
        trainer, normalizer = (
            dict(pair for n, value in message if n == number for pair in fields(value))
            for number in (2, 3)
        )
        assert trainer[3] == 2
        self.names = [r[1].decode() for r in rows]
        self.kinds = [r.get(3, 1) for r in rows]
        self.scores = [struct.unpack("<f", r[2])[0] for r in rows]
        # Control pieces are not found in text, nor are bytes.
        found = (1, ADDED, UNUSED)
        self.ids = {n: i for i, n in enumerate(self.names) if self.kinds[i] in found}
        self.own = sorted((n for n in self.ids if self.is_a(n, ADDED)), key=len, reverse=True)
        self.by_byte = trainer.get(35) and {
            int(n[3:5], 16): i for i, n in enumerate(self.names) if self.kinds[i] == BYTE
        }
        self.prefix, self.less = normalizer[3], normalizer[4]
        assert not self.less
        settings = {}
        if checkpoint.has("tokenizer_config.json"):
            settings = json.loads(checkpoint.bytes_of("tokenizer_config.json"))
        begin, end = (trainer.get(number, -1) for number in (41, 42))
        self.front = [begin] if begin < len(rows) and settings.get("add_bos_token", True) else []
        self.behind = [end] if settings.get("add_eos_token", False) else []
        self.unknown = self.kinds.index(UNKNOWN)

    def is_a(self, name, kind):
        return name in self.ids and self.kinds[self.ids[name]] == kind

    def symbols(self, text):
        """User-defined pieces, the longest at each place, and characters: text, whether it may
        join."""
        out, at = [], 0
        while at < len(text):
            piece = next((n for n in self.own if text.startswith(n, at)), None)
            if piece and not active("own_pieces_are_text"):
                out.append((piece, False))
            else:
                out.append((SPACE if text[at] == " " else text[at], True))
            at += len(out[-1][0])
        return out

    def joined(self, symbols):
        """Pieces, each with the two that it was joined of."""
        row = [(text, may, None) for text, may in symbols]
        while True:
            best = None
            for i, (a, b) in enumerate(zip(row, row[1:])):
                name = a[0] + b[0]
                if a[1] and b[1] and name in self.ids:
                    score = (
                        -i if active("pieces_join_from_the_left") else self.scores[self.ids[name]]
                    )
                    if best is None or score > best[0]:
                        best = score, i, name
            if best is None:
                return row
            _, i, name = best
            row[i : i + 2] = [(name, True, (row[i], row[i + 1]))]

    def apart(self, piece):
        """An unused piece is taken apart again, as it was joined."""
        name, _, halves = piece
        if halves and self.is_a(name, UNUSED) and not active("unused_pieces_stay"):
            return [one for half in halves for one in self.apart(half)]
        return [name]

    def encode(self, text):
        if self.prefix and text.strip(" "):
            text = " " + text
        out, unknown = [], False
        for name in (n for piece in self.joined(self.symbols(text)) for n in self.apart(piece)):
            known = name in self.ids
            if known:
                out.append(self.ids[name])
            elif self.by_byte:
                out += [self.by_byte[b] for b in name.encode()]
            elif not unknown:
                out.append(self.unknown)
            unknown = not known
        return [*self.front, *out, *self.behind]

    def decode(self, ids):
        """Bytes give the characters that they are, and one U+FFFD for each that begins none."""
        text, raw = "", b""
        for i in [*ids, None]:
            if i is not None and self.kinds[i] == BYTE:
                raw += bytes([int(self.names[i][3:5], 16)])
                continue
            text, raw = text + characters(raw), b""
            if i is not None and self.kinds[i] == UNKNOWN:
                text += " \u2047 "
            elif i is not None and self.kinds[i] != CONTROL:
                name = self.names[i].replace(SPACE, " ")
                at_the_start = self.prefix and not text and not active("the_first_space_stays")
                text += name.removeprefix(" ") if at_the_start else name
        return text


def characters(raw):
    out, at = "", 0
    while at < len(raw):
        for size in (4, 3, 2, 1):
            try:
                out += raw[at : at + size].decode()
            except UnicodeDecodeError:
                continue
            break
        else:
            out, size = out + "\ufffd", 1
        at += size
    return out
