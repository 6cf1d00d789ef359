"""A second reading of spec/speech.md, speech.1 to speech.6: recordings, and what an encoder hears of
them. Numbers that are next to real ones come from 60 decimal digits. Writers of WAV and FLAC."""

import functools
import math
import struct
from decimal import Decimal, getcontext

import numpy as np

getcontext().prec = 50
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")


def cosine(n, turn=400):
    """cos(2 pi n / turn) by its series, after the turn is halved four times."""
    angle, terms = 2 * PI * (n % turn) / turn / 16, 20
    x2, term, value = angle * angle, Decimal(1), Decimal(0)
    for k in range(terms):
        value += term
        term = -term * x2 / ((2 * k + 1) * (2 * k + 2))
    for _ in range(4):
        value = 2 * value * value - 1
    return Decimal(0) if abs(value) < Decimal("1e-40") else value


@functools.cache
def circle():
    """speech.3 -> cosines, sines"""
    cosines = np.array([float(cosine(n)) for n in range(400)])
    return cosines, np.roll(cosines, 100)


@functools.cache
def corners(bands):
    """speech.3"""

    def mel(f):
        return 3 * f / 200 if f < 1000 else 15 + 27 * (f / 1000).ln() / Decimal("6.4").ln()

    def hertz(m):
        return 200 * m / 3 if m < 15 else 1000 * (Decimal("6.4").ln() * (m - 15) / 27).exp()

    last = mel(Decimal(8000))
    return np.array([float(hertz(last * i / (bands + 1))) for i in range(bands + 2)])


def power(frames):
    """speech.4, of samples [frames, 400] -> [frames, 201]"""
    cosines, sines = circle()
    y = (0.5 - 0.5 * cosines) * frames.astype(np.float64)
    k = np.arange(101)
    sums = {name: np.zeros((len(frames), 101)) for name in "EOFG"}
    for n in range(1, 201):
        a = y[:, n] + y[:, 400 - n] if n < 200 else y[:, n]
        b = y[:, n] - y[:, 400 - n] if n < 200 else 0 * a
        c, s = cosines[k * n % 400], sines[k * n % 400]
        of_cosines, of_sines = ("E", "F") if n % 2 == 0 else ("O", "G")
        sums[of_cosines] = sums[of_cosines] + a[:, None] * c
        if n < 200:
            sums[of_sines] = sums[of_sines] + b[:, None] * s
    e, o, f, g = sums.values()
    result = np.empty((len(frames), 201))
    result[:, :101] = (e + o) * (e + o) + (g + f) * (g + f)
    result[:, 100:] = ((e - o) * (e - o) + (g - f) * (g - f))[:, ::-1]
    return result


def log10(x):
    """Correctly rounded to binary32, for positive binary32."""
    l = math.log10(x)
    near = np.float32(l)
    # Between two binary32 numbers: more digits decide.
    if abs(l - (float(near) + float(np.nextafter(near, np.float32(l), dtype=np.float32))) / 2) < 1e-13:
        exact = Decimal(float(x)).log10()
        near = min((np.nextafter(near, np.float32(d), dtype=np.float32) for d in (-99, 99, near)),
                   key=lambda c: abs(Decimal(float(c)) - exact))  # fmt: skip
    return near


def log_mel(samples, bands, positions, first=0):
    """speech.2, speech.5, speech.6 -> [bands, 2 positions]"""
    frames, size = 2 * positions, 320 * positions
    x = np.zeros(size, np.float32)
    heard = samples[first : first + size]
    x[: len(heard)] = heard
    padded = np.concatenate([x[200:0:-1], x, x[-2:-202:-1]])
    of_frame = np.stack([padded[160 * t : 160 * t + 400] for t in range(frames)])
    powers = power(of_frame)
    f, hertz = corners(bands), 40.0 * np.arange(201)
    features = np.empty((bands, frames), np.float32)
    for m in range(bands):
        up = (hertz - f[m]) / (f[m + 1] - f[m])
        down = (f[m + 2] - hertz) / (f[m + 2] - f[m + 1])
        parts = (2.0 / (f[m + 2] - f[m])) * np.maximum(0.0, np.minimum(up, down))
        energy = np.zeros(frames)
        for k in range(201):
            energy = energy + parts[k] * powers[:, k]
        features[m] = [log10(e) for e in np.maximum(energy, 1e-10).astype(np.float32)]
    least = features.max() - np.float32(8)
    return (np.maximum(features, least) + np.float32(4)) * np.float32(0.25)


def resampled(x, rate):
    """speech.10"""
    common = math.gcd(16000, rate)
    p, q = 16000 // common, rate // common
    d = max(p, q)
    scale = min(Decimal(1), Decimal(p) / q)
    h = [float(scale)]
    for n in range(1, 32 * d):
        angle = PI * n / d
        window = (1 + cosine(n, 64 * d)) / 2
        h.append(float(scale * cosine(2 * n - d, 4 * d) / angle * window))
    made = []
    for j in range(-(-len(x) * p // q)):
        total = 0.0
        for i in range(max(0, -((32 * d - 1 - j * q) // p)), min(len(x), (j * q + 32 * d - 1) // p + 1)):
            total += float(x[i]) * h[abs(i * p - j * q)]
        made.append(total)
    return np.array(made, np.float32)


def sound(seed, count):
    """Tones that glide, noise and silences, as whole numbers of 16 bits."""
    state, values, phase = seed * 2 + 1, [], 0
    for i in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        phase = (phase + 40 + (i // 50) % 900 + 97 * seed) % 4096
        tone = abs(phase - 2048) - 1024
        loud = (i // 1600) % 4
        values.append((tone * 6 * loud + (state >> 52) * loud - 2048 * loud) // 2)
    return np.array(values, np.int32).clip(-32768, 32767).astype(np.int16)


def wav(samples, kind=1, bits=16, channels=1, rate=16000, before=b"", size=None, extensible=False):
    """A WAV file whose data are these bytes."""
    frame = channels * bits // 8
    form = struct.pack("<HHIIHH", kind, channels, rate, rate * frame, frame, bits)
    if extensible:
        guid = struct.pack("<H", kind) + bytes.fromhex("000000001000800000aa00389b71")
        form = struct.pack("<H", 0xFFFE) + form[2:] + struct.pack("<HHI", 22, bits, 0) + guid
    size = len(samples) if size is None else size
    chunks = b"fmt " + struct.pack("<I", len(form)) + form + before
    chunks += b"data" + struct.pack("<I", size) + samples
    return b"RIFF" + struct.pack("<I", 4 + len(chunks) & 0xFFFFFFFF) + b"WAVE" + chunks


def crc(data, bits, polynomial):
    total = 0
    for byte in data:
        total ^= byte << (bits - 8)
        for _ in range(8):
            total = total << 1 ^ (polynomial if total >> (bits - 1) else 0)
            total &= (1 << bits) - 1
    return total


class Bits:
    def __init__(self):
        self.text = ""

    def put(self, value, count):
        if count:
            self.text += format(value & ((1 << count) - 1), f"0{count}b")
        return self

    def bytes(self):
        text = self.text + "0" * (-len(self.text) % 8)
        return int("1" + text, 2).to_bytes(len(text) // 8 + 1, "big")[1:]


def rice(bits, values, parameter):
    for v in values:
        folded = 2 * v if v >= 0 else -2 * v - 1
        bits.put(0, folded >> parameter).put(1, 1).put(folded, parameter)


def subframe(bits, x, size, kind):
    """One channel of `size` bits: constant, verbatim, fixed, lpc, wasted, or raw residuals."""
    x = [int(v) for v in x]
    if kind == "constant":
        bits.put(0, 8).put(x[0], size)
    elif kind == "verbatim":
        bits.put(1 << 1, 8)
        for v in x:
            bits.put(v, size)
    elif kind == "wasted":  # two zero bits below each sample
        bits.put(1 << 1 | 1, 8).put(1, 2)
        for v in x:
            bits.put(v >> 2, size - 2)
    elif kind == "fixed":  # order 2, two partitions
        bits.put((8 + 2) << 1, 8).put(x[0], size).put(x[1], size).put(0, 2).put(1, 4)
        left = [a - 2 * b + c for a, b, c in zip(x[2:], x[1:], x, strict=False)]
        half = len(x) // 2 - 2
        bits.put(11, 4)
        rice(bits, left[:half], 11)
        bits.put(12, 4)
        rice(bits, left[half:], 12)
    else:  # lpc of order 3, factors over 2^6; "raw": the residual in whole numbers of 20 bits
        factors, shift = (101, -47, 9), 6
        bits.put((31 + 3) << 1, 8)
        for v in x[:3]:
            bits.put(v, size)
        bits.put(8 - 1, 4).put(shift, 5)
        for f in factors:
            bits.put(f, 8)
        made = [x[i] - (sum(f * x[i - 1 - j] for j, f in enumerate(factors)) >> shift)
                for i in range(3, len(x))]  # fmt: skip
        if kind == "lpc":
            bits.put(1, 2).put(0, 4).put(10, 5)
            rice(bits, made, 10)
        else:
            bits.put(0, 2).put(0, 4).put(15, 4).put(20, 5)
            for v in made:
                bits.put(v, 20)


def flac(frames, bits=16, channels=1, rate=16000):
    """A FLAC file of frames (assignment, [(kind, samples, extra bits)])."""
    head = Bits().put(16, 16).put(4096, 16).put(0, 48).put(rate, 20).put(channels - 1, 3)
    head.put(bits - 1, 5).put(0, 36).put(0, 128)
    file = b"fLaC\0\0\0\x22" + head.bytes() + b"\x84\0\0\x03abc"
    for number, (assignment, subframes) in enumerate(frames):
        count = len(subframes[0][1])
        header = Bits().put(0x3FFE, 14).put(0, 2).put(7, 4).put(0, 4).put(assignment, 4).put(0, 4)
        header.put(number % 128, 8).put(count - 1, 16)
        frame = Bits().put(int.from_bytes(header.bytes(), "big"), 8 * len(header.bytes()))
        frame.put(crc(header.bytes(), 8, 0x07), 8)
        for kind, x, extra in subframes:
            subframe(frame, x, bits + extra, kind)
        file += frame.bytes() + crc(frame.bytes(), 16, 0x8005).to_bytes(2, "big")
    return file
