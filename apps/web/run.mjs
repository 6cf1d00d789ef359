// Runs a module of the web build under Node with the page's own system (page/wasi.js):
// `node apps/web/run.mjs MODULE.wasm ARGUMENT...`. Paths in arguments are those of this machine.
import { closeSync, fstatSync, openSync, readFileSync, readSync, readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";

const here = new URL("page/wasi.js", import.meta.url);
const makeWasi = new Function(`${readFileSync(here, "utf8")}; return makeWasi;`)();

const files = new Map();
function add(path) {
  const info = statSync(path);
  if (info.isDirectory()) return readdirSync(path).forEach((name) => add(join(path, name)));
  files.set(path, {
    size: info.size,
    modified: info.mtimeMs,
    read(begin, end) {
      const content = Buffer.alloc(end - begin);
      const fd = openSync(path);
      const length = fstatSync(fd).size < begin ? 0 : readSync(fd, content, 0, end - begin, begin);
      closeSync(fd);
      return content.subarray(0, length);
    },
  });
}
const words = process.argv.slice(3);
const args = words.map((word, i) => {
  const path = resolve(word);
  try {
    statSync(path);
  } catch {
    return word;
  }
  add(path);
  // The command, and the value of an option, may be called as a file here is.
  const plain = i === 0 || words[i - 1].startsWith("--");
  return plain && !/[/.]/.test(word) ? word : path;
});
const wasi = makeWasi({
  args: [process.argv[2], ...args],
  files,
  write: (stream, text) => (stream === 2 ? process.stderr : process.stdout).write(text),
});
const module = await WebAssembly.compile(readFileSync(process.argv[2]));
const instance = await WebAssembly.instantiate(module, wasi.imports);
process.exitCode = wasi.run(instance);
if (process.env.SHOW_MEMORY) console.error(`memory ${instance.exports.memory.buffer.byteLength}`);
