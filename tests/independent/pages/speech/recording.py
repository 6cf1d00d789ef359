"""speech.1 to speech.7: a recording, its windows, and what the encoder hears of them."""

import hashlib
import struct
from pathlib import Path

from arithmetic.library import floats, operation
from arithmetic.mutation import active


class Recording:
    """speech.1: the samples of a WAV file of whole numbers of 16 bits."""

    def __init__(self, path):
        data = Path(path).read_bytes()
        at, chunks = 12, {}
        while at + 8 <= len(data):
            (size,) = struct.unpack_from("<I", data, at + 4)
            chunks[data[at : at + 4]] = data[at + 8 : at + 8 + size]
            at += 8 + size + size % 2
        kind, channels, rate, _, _, bits = struct.unpack("<HHIIHH", chunks[b"fmt "][:16])
        assert (kind, channels, rate, bits) == (1, 1, 16000, 16)
        whole = struct.unpack(f"<{len(chunks[b'data']) // 2}h", chunks[b"data"])
        scale = 32767 if active("samples_over_32767") else 2**15
        self.samples = [x / scale for x in whole]

    def digest(self):
        """receipt.46"""
        return hashlib.sha256(struct.pack(f"<{len(self.samples)}f", *self.samples)).hexdigest()

    def features(self, begin, positions, bands):
        """speech.2 and speech.6: [bands, 2 positions] of the window from this sample on."""
        window = floats(320 * positions)
        heard = self.samples[begin : begin + len(window)]
        window[: len(heard)] = heard
        return operation("features", window, positions, bands, n=2 * positions * bands)


def decoder_tokens(config, settings, language, task, timestamps):
    """speech.7, of a language and a task that were asked for."""
    found = [settings.get("decoder_start_token_id", config.get("decoder_start_token_id"))]
    if "lang_to_id" in settings:
        found += [settings["lang_to_id"][language], settings["task_to_id"][task]]
    without = settings.get("no_timestamps_token_id")
    return found + ([] if timestamps or without is None else [without])
