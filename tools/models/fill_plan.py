#!/usr/bin/env python3
"""Seeded bf16 weights for a plan that was compiled of a checkpoint of holes.

fill_plan.py PLAN FOLDER... [--budget SECONDS] [--processes N]

For measurements of models that are larger than the machine which compiles them. The tensors are
written to FOLDER..., as many to each as fit, and the plan gets their places and their SHA-256. What
does not fit, or is not made within the budget, has the bytes of the layers before: layer i has
those of layer i % D, and the last line says D. The plan's folder gets a link to each file. Needs
numpy."""

import argparse
import hashlib
import multiprocessing
import os
import re
import shutil
import time
from pathlib import Path

import numpy as np
from random_llama import CHUNK, table

PAGE = 4096
WEIGHT = re.compile(r'^weight (w\d+) "([^"]*)" bf16 \[([^\]]*)\]', re.M)
PLACE = re.compile(r'^place (w\d+) "([^"]*)" offset \d+ length \d+$', re.M)
DIGESTS = re.compile(r'^((?:weight w\d+|tensor) "([^"]*)" .* sha256 )[0-9a-f]{64}$', re.M)


def fill(job):
    """Writes a tensor: (its name, (file, offset, bytes, SHA-256))."""
    name, path, offset, count, seed = job
    values, digest = table(1.0 if "norm" in name else 0.0), hashlib.sha256()
    with open(path, "r+b", buffering=0) as f:
        f.seek(offset)
        for chunk, first in enumerate(range(0, count, CHUNK)):
            n = min(CHUNK, count - first)
            raw = np.random.PCG64(np.random.SeedSequence([seed, chunk])).random_raw((n + 3) // 4)
            data = memoryview(np.take(values, raw.view(np.uint16)[:n])).cast("B")
            digest.update(data)
            while data:
                data = data[f.write(data) :]
    return name, (path, offset, 2 * count, digest.hexdigest())


def layer_of(name):
    """-1: a tensor that is no layer's."""
    found = re.match(r"model\.layers\.(\d+)\.", name)
    return int(found[1]) if found else -1


def jobs_of(layers, folders):
    """Layer -> its jobs, for as many layers as fit."""
    jobs, used, seed = {}, dict.fromkeys(folders, 0), 0
    free = {folder: int(shutil.disk_usage(folder).free * 0.95) for folder in folders}
    for layer, tensors in sorted(layers.items()):
        size = sum(2 * count + PAGE for _, count in tensors)
        folder = next((f for f in folders if used[f] + size <= free[f]), None)
        if folder is None:
            break
        jobs[layer] = []
        for name, count in sorted(tensors, key=lambda t: (-t[1], t[0])):
            seed += 1
            jobs[layer].append((name, str(folder / "weights.bin"), used[folder], count, seed))
            used[folder] += -(-2 * count // PAGE) * PAGE
    for folder, size in used.items():
        with open(folder / "weights.bin", "wb") as f:
            f.truncate(size)
    return jobs


def make(jobs, budget, processes):
    """Name -> place and digest of the tensors that were made in time."""
    begin, made, ahead = time.monotonic(), {}, []
    with multiprocessing.Pool(processes) as pool:
        for layer in sorted(jobs):
            if layer > 0 and time.monotonic() - begin > budget:
                break
            ahead.append(pool.map_async(fill, jobs[layer], chunksize=1))
            if len(ahead) > max(2, processes // 3):  # no processor waits for the last of a layer
                made.update(ahead.pop(0).get())
        for one in ahead:
            made.update(one.get())
    return made


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("plan", type=Path)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--budget", type=float, default=1e9)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    text, begin = options.plan.read_text(), time.monotonic()
    names = {w: (n, int(np.prod([*map(int, s.split(","))]))) for w, n, s in WEIGHT.findall(text)}
    holes = {w for w, file in PLACE.findall(text) if w in names}
    layers = {}
    for w in holes:
        layers.setdefault(layer_of(names[w][0]), []).append(names[w])
    for folder in options.folders:
        folder.mkdir(parents=True, exist_ok=True)
    made = make(jobs_of(layers, options.folders), options.budget, options.processes)
    period, count = 1 + max(map(layer_of, made)), 1 + max(layers)
    for layer in range(period, count):
        for name, _ in layers[layer]:
            like = re.sub(r"^model\.layers\.\d+", f"model.layers.{layer % period}", name)
            made[name] = made[like]
    links = {}
    for n, folder in enumerate(options.folders):
        link, file = options.plan.parent / f"weights{n}.bin", folder / "weights.bin"
        links[str(file)] = link.name
        link.unlink(missing_ok=True)
        link.symlink_to(file.resolve())

    def place(match):
        if match[1] not in holes:
            return match[0]
        path, offset, length, _ = made[names[match[1]][0]]
        return f'place {match[1]} "{links[path]}" offset {offset} length {length}'

    text = PLACE.sub(place, text)
    text = DIGESTS.sub(lambda m: m[1] + made[m[2]][3] if m[2] in made else m[0], text)
    options.plan.write_text(text)
    total = sum(2 * names[w][1] for w in holes) / 1e9
    took = time.monotonic() - begin
    print(f"{total:.1f} GB, {period} of {count} layers with bytes of their own, {took:.1f} s")


if __name__ == "__main__":
    main()
