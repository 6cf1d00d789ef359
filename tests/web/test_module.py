"""The kernels of the page compute the bits of spec/: the conformance harness as WebAssembly, under
Node."""

import json
import shutil
import subprocess

import pytest
from conftest import BUILD, ROOT

import sample

MODULE = BUILD / "web/bin/invar_conformance.wasm"
RUN = ROOT / "apps/web/run.mjs"
if not MODULE.exists():
    pytest.skip("the page is not built: ./setup.sh web", allow_module_level=True)
if not shutil.which("node"):
    pytest.skip("no Node here", allow_module_level=True)


def test_every_kernel_agrees_with_the_reference_and_the_golden_digests():
    rooms = ROOT / "src/ops"
    part = ["--part", f"{sample.turn('wasm', 8)}/8"] if sample.TIER == 2 else []
    done = subprocess.run(
        ["node", RUN, MODULE, "--rooms", rooms, "--isa", "wasm", "--fast", *part],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "wasm" in done.stdout


# A file of 6 GB that is not there: each byte is what its place says.
FAR = """
const makeWasi = new Function(require("fs").readFileSync(process.argv[1], "utf8") + "; return makeWasi;")();
const size = 6 * 2 ** 30, asked = [];
const byte = (at) => (at % 251) ^ Math.floor(at / 2 ** 30);
const read = (begin, end) => {
  asked.push([begin, end]);
  return Uint8Array.from({ length: end - begin }, (_, i) => byte(begin + i));
};
const memory = new WebAssembly.Memory({ initial: 2 });
const { imports, run } = makeWasi({ args: [], files: new Map([["/f", { size, modified: 0, read }]]), write() {} });
const wasi = imports.wasi_snapshot_preview1;
const v = () => new DataView(memory.buffer);
const found = [];
run({ exports: { memory, _start() {
  new Uint8Array(memory.buffer).set(new TextEncoder().encode("f"), 0);
  wasi.path_open(3, 0, 0, 1, 0, 0n, 0n, 0, 8);
  const fd = v().getUint32(8, true);
  v().setUint32(16, 1024, true), v().setUint32(20, 16, true);
  wasi.fd_filestat_get(fd, 64);
  found.push(Number(v().getBigUint64(96, true)));
  for (const at of [2 ** 31 - 8, 2 ** 31, 2 ** 32 - 8, 2 ** 32 + 5, size - 8]) {
    for (const seek of [false, true]) {
      if (seek) wasi.fd_seek(fd, BigInt(at), 0, 128), wasi.fd_read(fd, 16, 1, 132);
      else wasi.fd_pread(fd, 16, 1, BigInt(at), 132);
      const count = v().getUint32(132, true);
      found.push([at, count, [...new Uint8Array(memory.buffer, 1024, count)].every((b, i) => b === byte(at + i))]);
    }
  }
} } });
console.log(JSON.stringify([found, asked]));
"""


def test_files_are_read_beyond_what_32_bits_count():
    wasi = ROOT / "apps/web/page/wasi.js"
    done = subprocess.run(["node", "-e", FAR, wasi], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (size, *reads), asked = json.loads(done.stdout)
    assert size == 6 << 30
    places = [(1 << 31) - 8, 1 << 31, (1 << 32) - 8, (1 << 32) + 5, size - 8]
    for i, (at, count, is_right) in enumerate(reads):
        assert at == places[i // 2] and count == (8 if at == size - 8 else 16) and is_right
        assert asked[i] == [at, at + count]
    assert len(reads) == 10
