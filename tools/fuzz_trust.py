#!/usr/bin/env python3
"""Damages task folders, plans and receipts at random and asks `invar` for an answer each time.

fuzz_trust.py SECONDS [--invar PROGRAM] [--seed N]     SECONDS of processor time

What must hold, whatever was changed:
  cache     `run` with a damaged task folder ends with an error or the honest receipt
  planted   a task folder whose record agrees with a changed plan may fool `run`, never `verify`
  plan      `run --plan` with a changed plan has the honest answer or another program digest, which
            `verify` refuses
  receipt   `validate` passes a changed receipt only where nothing bound changed, or where all
            hashes were made anew; `verify` passes it only where nothing bound changed, or where the
            changed claim is true: a run agrees
  signed    with `--require-key`, `validate` passes a changed receipt, redacted receipt or batch
            only where what was signed did not change
Exit 0: it held; 1: it did not, the case is kept and named."""

import argparse
import collections
import copy
import hashlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from receipt_oracle import SECTIONS, seal  # noqa: E402

MODEL = ROOT / "models/shakespeare-4m"
TOKENS = "8"


class Wrong(Exception):
    pass


def processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Fuzz:
    def __init__(self, program, seed, place):
        self.program, self.pick, self.place = program, random.Random(seed), place
        self.codes = collections.Counter()
        self.task, self.receipt = place / "honest", place / "honest.json"
        self.env = {**os.environ, "XDG_CACHE_HOME": str(place / "cache")}
        done = self.run("--task-dir", self.task, "--receipt-path", self.receipt)
        if done.returncode:
            sys.exit(f"fuzz_trust.py: {program} does not run: {done.stderr.decode()}")
        self.honest = json.loads(self.receipt.read_text())
        self.bound = {s: self.honest[s] for s in SECTIONS}
        self.sign()

    def sign(self):
        """A signed receipt, one whose prompt is withheld, and a batch of both."""
        self.key, salted = self.place / "key", self.place / "salted.json"
        self.signed = [self.place / f"{name}.json" for name in ("signed", "redacted", "batch")]
        steps = (
            lambda: self.invar("keygen", self.key),
            lambda: self.run("--sign", self.key, "--receipt-path", self.signed[0]),
            lambda: self.run("--sign", self.key, "--salt-prompt", "--receipt-path", salted),
            lambda: self.invar("redact", salted, "-o", self.signed[1]),
            lambda: self.invar("seal", *self.signed[:2], "-o", self.signed[2], "--sign", self.key),
        )
        for step in steps:
            done = step()
            if done.returncode:
                sys.exit(f"fuzz_trust.py: {done.stderr.decode()}")

    def invar(self, *args):
        done = subprocess.run(
            [self.program, *map(str, args)], capture_output=True, env=self.env, timeout=120
        )
        if done.returncode not in (0, 1, 2, 3) or (
            done.returncode and not (done.stderr or done.stdout)
        ):
            raise Wrong(f"exit {done.returncode}: {done.stderr[-300:]}")
        return done

    def run(self, *args):
        return self.invar(
            "run",
            "--model-name",
            MODEL,
            "--prompt-text",
            "ROMEO:",
            "--max-new-tokens",
            TOKENS,
            "--json",
            *args,
        )

    def damaged(self, content):
        """Bits, a piece removed or doubled, the end cut off, a digit."""
        content, pick = bytearray(content), self.pick
        if not content:
            return b"x"
        at = pick.randrange(len(content))
        kind = pick.randrange(6)
        if kind <= 1:
            for _ in range(1 if kind else pick.randrange(1, 9)):
                content[pick.randrange(len(content))] ^= 1 << pick.randrange(8)
        elif kind == 2:
            del content[at : at + pick.randrange(1, 40)]
        elif kind == 3:
            content[at:at] = content[at : at + pick.randrange(1, 40)]
        elif kind == 4:
            del content[at:]
        else:
            digits = [i for i, c in enumerate(content) if chr(c) in "0123456789abcdef"] or [at]
            content[pick.choice(digits)] = ord(pick.choice("0123456789abcdef"))
        return bytes(content)

    def task_folder(self):
        folder = self.place / "task"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.task, folder, symlinks=True)
        return folder

    def cache(self):
        folder, receipt = self.task_folder(), self.place / "r.json"
        files = [f for f in folder.iterdir() if not f.is_symlink()]
        file = self.pick.choice(files)
        how = self.pick.randrange(12)
        if how == 0:
            file.unlink()
        elif how == 1:
            shutil.copy(self.pick.choice(files), self.place / "other")
            shutil.move(self.place / "other", file)
        else:
            file.write_bytes(self.damaged(file.read_bytes()))
        done = self.run("--task-dir", folder, "--receipt-path", receipt)
        if (
            done.returncode == 0
            and json.loads(done.stdout)["receipt_hash"] != self.honest["receipt_hash"]
        ):
            raise Wrong(f"another answer of a damaged cache ({file.name})")
        return done.returncode

    def changed_plan(self, plan):
        """The plan in the folder, changed; False where it stayed the same."""
        before = plan.read_bytes()
        plan.write_bytes(self.damaged(before))
        return plan.read_bytes() != before

    def refused_by_verify(self, receipt):
        if self.invar("verify", receipt, "--model-name", MODEL).returncode == 0:
            raise Wrong("verify passed a receipt of a changed plan")

    def planted(self):
        folder, receipt = self.task_folder(), self.place / "r.json"
        self.changed_plan(folder / "plan.invar")
        record = json.loads((folder / "identity").read_text().rsplit("\n", 2)[0])
        record["files"]["plan.invar"] = hashlib.sha256(
            (folder / "plan.invar").read_bytes()
        ).hexdigest()
        body = json.dumps(record) + "\n"
        (folder / "identity").write_text(body + hashlib.sha256(body.encode()).hexdigest() + "\n")
        done = self.run("--task-dir", folder, "--receipt-path", receipt)
        if (
            done.returncode == 0
            and json.loads(receipt.read_text())["receipt_hash"] != self.honest["receipt_hash"]
        ):
            self.refused_by_verify(receipt)
        return done.returncode

    def plan(self):
        folder, receipt = self.task_folder(), self.place / "r.json"
        self.changed_plan(folder / "plan.invar")
        done = self.run("--plan", folder / "plan.invar", "--receipt-path", receipt)
        if done.returncode:
            return done.returncode
        made = json.loads(receipt.read_text())
        if made["receipt_hash"] != self.honest["receipt_hash"]:
            same_program = made["program"]["digest"] == self.honest["program"]["digest"]
            if same_program and made["output"] != self.honest["output"]:
                raise Wrong("the same program digest with another answer")
            self.refused_by_verify(receipt)
        return 0

    def altered(self, value):
        pick = self.pick
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return max(0, value + pick.choice([-1, 1, 1000]))
        if isinstance(value, str):
            at = pick.randrange(len(value) + 1)
            return (
                value[:at]
                + pick.choice("0123456789abcdefxyz \n\u001b\u202e")
                + value[at + pick.randrange(2) :]
            )
        if isinstance(value, list) and value:
            value, at = list(value), pick.randrange(len(value))
            how = pick.randrange(4)
            if how == 0:
                del value[at]
            elif how == 1:
                value.append(value[at])
            else:
                value[at] = self.altered(value[at])
            return value
        if isinstance(value, dict) and value:
            key = pick.choice(sorted(value))
            return {**value, key: self.altered(value[key])}
        return value

    def claim(self):
        """A receipt with changed claims, some with all hashes made anew, as a sender would."""
        receipt, path = copy.deepcopy(self.honest), self.place / "claim.json"
        resealed = self.pick.random() < 0.7
        if resealed:
            for _ in range(self.pick.randrange(1, 3)):
                section = self.pick.choice((*SECTIONS, "execution"))
                key = self.pick.choice(sorted(receipt[section]))
                receipt[section][key] = self.altered(receipt[section][key])
            path.write_text(json.dumps(seal(receipt), ensure_ascii=False, indent=1))
        else:
            path.write_bytes(self.damaged(self.receipt.read_bytes()))
        validated, verified = (
            self.invar(command, path, *model).returncode
            for command, model in (("validate", ()), ("verify", ("--model-name", MODEL)))
        )
        same = False
        if validated == 0 or verified == 0:
            read = json.loads(path.read_bytes())
            # A name and a revision are labels, which the report says it did not check.
            same = {s: read[s] for s in SECTIONS} == self.bound
            label = {
                **read["model"],
                "name": self.honest["model"]["name"],
                "revision": self.honest["model"]["revision"],
            }
            same_but_label = {
                **{s: read[s] for s in SECTIONS},
                "model": label,
                "input": self.honest["input"],
            } == self.bound
            if validated == 0 and not resealed and not same:
                raise Wrong("validate passed a changed receipt")
            if verified == 0 and not (
                same
                or (resealed and same_but_label and self.is_true(read["input"], read["output"]))
            ):
                raise Wrong("verify passed a changed claim")
        return verified

    def signature(self):
        """What was signed, changed by somebody who has not the key."""
        source, path = self.pick.choice(self.signed), self.place / "claim.json"
        honest = json.loads(source.read_text())
        if self.pick.random() < 0.5:
            path.write_bytes(self.damaged(source.read_bytes()))
        else:
            content = self.altered(copy.deepcopy(honest))
            if source == self.signed[0] and self.pick.random() < 0.7:
                content = seal(content)
            path.write_text(json.dumps(content, ensure_ascii=False, indent=1))
        code = self.invar("validate", path, "--require-key", f"{self.key}.pub").returncode
        if code == 0:
            read = json.loads(path.read_bytes())
            if self.what_is_signed(read) != self.what_is_signed(honest):
                raise Wrong(f"validate passed a changed {source.name} under a signature")
        return code

    @staticmethod
    def what_is_signed(content):
        if "receipts" in content:
            return [entry["receipt_hash"] for entry in content["receipts"]]
        return {key: content[key] for key in (*SECTIONS, "digests", "receipt_hash")}

    def is_true(self, claimed, output):
        """Whether a run with this input has this output: another seed may well have the same
        answer."""
        receipt = self.place / "true.json"
        done = self.invar(
            "run",
            "--model-name",
            MODEL,
            "--prompt-text",
            claimed["prompt"],
            "--max-new-tokens",
            claimed["max_new_tokens"],
            "--json",
            "--temperature",
            claimed["temperature"],
            "--top-k",
            claimed["top_k"],
            "--top-p",
            claimed["top_p"],
            "--seed",
            claimed["seed"],
            *([] if claimed["do_sample"] else ["--no-do-sample"]),
            "--task-dir",
            self.task,
            "--receipt-path",
            receipt,
        )
        made = json.loads(receipt.read_text()) if done.returncode == 0 else None
        return made is not None and (made["input"], made["output"]) == (claimed, output)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("seconds", type=float)
    parser.add_argument("--invar", default=str(ROOT / "build/bin/invar"))
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    place = Path(
        tempfile.mkdtemp(
            prefix="invar-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None
        )
    )
    fuzz, counts = Fuzz(args.invar, args.seed, place), collections.Counter()
    cases = [
        fuzz.cache,
        fuzz.cache,
        fuzz.planted,
        fuzz.plan,
        fuzz.claim,
        fuzz.claim,
        fuzz.signature,
    ]
    start = processor_time()
    while processor_time() - start < args.seconds:
        case = fuzz.pick.choice(cases)
        try:
            counts[case.__name__, case()] += 1
        except Wrong as wrong:
            print(
                f"fuzz_trust.py: {case.__name__}, seed {args.seed}, after {sum(counts.values())} "
                f"cases: {wrong}; kept in {place}"
            )
            return 1
    shutil.rmtree(place)
    for (name, code), n in sorted(counts.items()):
        print(f"{name:8} exit {code}: {n}")
    print(
        f"{sum(counts.values())} cases, {processor_time() - start:.0f} s of processor time, no "
        f"wrong answer at exit 0"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
