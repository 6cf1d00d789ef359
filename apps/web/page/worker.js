// The thread that computes: gets the compiled module and the files, sends what the verifier says.
// A Blob reads slices, so a file of any size is never in memory as a whole here.
"use strict";

onmessage = async ({ data }) => {
  const reader = new FileReaderSync();
  const total = data.files.reduce((n, { file }) => n + file.size, 0);
  let bytesRead = 0;
  let told = 0;
  const files = new Map();
  for (const { path, file } of data.files)
    files.set(path, {
      size: file.size,
      modified: file.lastModified || 0,
      read(begin, end) {
        const content = new Uint8Array(reader.readAsArrayBuffer(file.slice(begin, end)));
        bytesRead += content.length;
        if (Date.now() - told > 100) {
          told = Date.now();
          postMessage({ read: bytesRead, total });
        }
        return content;
      },
    });
  let said = "";
  const wasi = makeWasi({
    args: ["verifier", "verify", ...data.args],
    files,
    write(stream, text) {
      if (stream === 2) said += text;
      else
        for (const line of text.split("\n").filter((one) => one !== "")) postMessage({ line: JSON.parse(line) });
    },
  });
  try {
    const instance = await WebAssembly.instantiate(data.module, wasi.imports);
    const exit = wasi.run(instance);
    postMessage({ exit, memory: instance.exports.memory.buffer.byteLength });
  } catch (error) {
    const memory = error instanceof RangeError || error instanceof WebAssembly.RuntimeError;
    postMessage({
      crash: (memory ? "the verifier ended, most likely because memory ran out: " : "") + error.message,
      said,
    });
  }
};
