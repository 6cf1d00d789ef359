// The system that the verifier runs on: WASI preview 1, as far as reading files, a clock and two
// streams of text go. There is no network, and nothing can be written.
"use strict";

const ERRNO = { badf: 8, inval: 28, io: 29, isdir: 31, noent: 44, nosys: 52, notdir: 54, rofs: 69, spipe: 70 };
const TYPE = { stream: 2, folder: 3, file: 4 };
const LONGEST_READ = 16 << 20; // of one call; the caller asks again

class Exit extends Error {
  constructor(code) {
    super(`exit code ${code}`);
    this.code = code;
  }
}

// files: Map of absolute path -> { size, modified (ms), read(begin, end) -> Uint8Array }.
// write(stream, text): what the program prints. Returns { imports, run(instance) -> exit code }.
function makeWasi({ args, files, write }) {
  let memory;
  const view = () => new DataView(memory.buffer);
  const bytes = (at, length) => new Uint8Array(memory.buffer, at >>> 0, length >>> 0);
  const text = (at, length) => new TextDecoder().decode(bytes(at, length));

  // Every folder and its entries.
  const folders = new Map([["/", new Map()]]);
  let inode = 1;
  const inodes = new Map();
  for (const path of files.keys()) {
    const parts = path.split("/").slice(1);
    for (let i = 0; i < parts.length; i++) {
      const parent = "/" + parts.slice(0, i).join("/");
      const entry = "/" + parts.slice(0, i + 1).join("/");
      if (!folders.has(parent)) folders.set(parent, new Map());
      folders.get(parent).set(parts[i], i + 1 < parts.length ? TYPE.folder : TYPE.file);
      if (i + 1 < parts.length && !folders.has(entry)) folders.set(entry, new Map());
    }
  }
  const number = (path) => {
    if (!inodes.has(path)) inodes.set(path, inode++);
    return inodes.get(path);
  };
  const resolve = (base, relative) => {
    const parts = [];
    for (const part of (relative.startsWith("/") ? relative : `${base}/${relative}`).split("/"))
      if (part === "..") parts.pop();
      else if (part !== "" && part !== ".") parts.push(part);
    return "/" + parts.join("/");
  };

  const open = new Map([
    [0, { stream: 0 }],
    [1, { stream: 1, left: [] }],
    [2, { stream: 2, left: [] }],
    [3, { folder: "/" }],
  ]);
  let nextFd = 4;

  const typeOf = (path) => (folders.has(path) ? TYPE.folder : files.has(path) ? TYPE.file : 0);
  const writeStat = (at, path, type) => {
    const v = view();
    at >>>= 0;
    const file = files.get(path);
    const time = BigInt(Math.round(file ? file.modified : 0)) * 1000000n;
    v.setBigUint64(at, 1n, true);
    v.setBigUint64(at + 8, BigInt(number(path)), true);
    v.setBigUint64(at + 16, BigInt(type), true);
    v.setBigUint64(at + 24, 1n, true);
    v.setBigUint64(at + 32, BigInt(file ? file.size : 0), true);
    for (let i = 40; i < 64; i += 8) v.setBigUint64(at + i, time, true);
    return 0;
  };
  const read = (file, position, iovs, count, total) => {
    let done = 0;
    for (let i = 0; i < count; i++) {
      const at = view().getUint32((iovs >>> 0) + 8 * i, true);
      const length = view().getUint32((iovs >>> 0) + 8 * i + 4, true);
      const end = Math.min(position + Math.min(length, LONGEST_READ), file.size);
      if (end <= position) break;
      let content;
      try {
        content = file.read(position, end);
      } catch {
        return ERRNO.io; // the file was changed or deleted since it was given
      }
      bytes(at, content.length).set(content);
      position += content.length;
      done += content.length;
      if (content.length < length) break;
    }
    view().setUint32(total >>> 0, done, true);
    return 0;
  };
  const flush = (stream) => {
    const last = stream.left.lastIndexOf(10);
    if (last < 0) return;
    write(stream.stream, new TextDecoder().decode(new Uint8Array(stream.left.slice(0, last + 1))));
    stream.left = stream.left.slice(last + 1);
  };

  const system = {
    args_sizes_get(count, size) {
      view().setUint32(count >>> 0, args.length, true);
      view().setUint32(size >>> 0, args.reduce((n, a) => n + new TextEncoder().encode(a).length + 1, 0), true);
      return 0;
    },
    args_get(list, buffer) {
      args.forEach((word, i) => {
        const encoded = new TextEncoder().encode(word + "\0");
        view().setUint32((list >>> 0) + 4 * i, buffer >>> 0, true);
        bytes(buffer, encoded.length).set(encoded);
        buffer += encoded.length;
      });
      return 0;
    },
    environ_sizes_get(count, size) {
      view().setUint32(count >>> 0, 0, true);
      view().setUint32(size >>> 0, 0, true);
      return 0;
    },
    environ_get: () => 0,
    clock_time_get(_clock, _precision, at) {
      view().setBigUint64(at >>> 0, BigInt(Date.now()) * 1000000n, true);
      return 0;
    },
    clock_res_get(_clock, at) {
      view().setBigUint64(at >>> 0, 1000000n, true);
      return 0;
    },
    random_get(at, length) {
      for (let i = 0; i < length; i += 65536)
        crypto.getRandomValues(bytes(at + i, Math.min(65536, length - i)));
      return 0;
    },
    sched_yield: () => 0,
    proc_exit(code) {
      throw new Exit(code);
    },
    fd_prestat_get(fd, at) {
      if (fd !== 3) return ERRNO.badf;
      view().setUint32(at >>> 0, 0, true);
      view().setUint32((at >>> 0) + 4, 1, true);
      return 0;
    },
    fd_prestat_dir_name(fd, at) {
      if (fd !== 3) return ERRNO.badf;
      bytes(at, 1)[0] = 47;
      return 0;
    },
    fd_fdstat_get(fd, at) {
      const one = open.get(fd);
      if (!one) return ERRNO.badf;
      at >>>= 0;
      view().setBigUint64(at, BigInt(one.stream !== undefined ? TYPE.stream : one.folder ? TYPE.folder : TYPE.file), true);
      view().setBigUint64(at + 8, 0x1fffffffn, true);
      view().setBigUint64(at + 16, 0x1fffffffn, true);
      return 0;
    },
    fd_fdstat_set_flags: () => 0,
    fd_filestat_get(fd, at) {
      const one = open.get(fd);
      if (!one) return ERRNO.badf;
      if (one.stream !== undefined) return writeStat(at, "", TYPE.stream);
      return one.folder ? writeStat(at, one.folder, TYPE.folder) : writeStat(at, one.path, TYPE.file);
    },
    path_filestat_get(fd, _flags, path, length, at) {
      const base = open.get(fd);
      if (!base || !base.folder) return ERRNO.badf;
      const found = resolve(base.folder, text(path, length));
      return typeOf(found) ? writeStat(at, found, typeOf(found)) : ERRNO.noent;
    },
    path_open(fd, _dirflags, path, length, flags, _rights, _inherited, _fdflags, at) {
      const base = open.get(fd);
      if (!base || !base.folder) return ERRNO.badf;
      const found = resolve(base.folder, text(path, length));
      const type = typeOf(found);
      if (flags & 0b1101) return ERRNO.rofs; // create, exclusive, truncate
      if (!type) return ERRNO.noent;
      if (flags & 2 && type !== TYPE.folder) return ERRNO.notdir;
      open.set(nextFd, type === TYPE.folder ? { folder: found } : { path: found, file: files.get(found), position: 0 });
      view().setUint32(at >>> 0, nextFd++, true);
      return 0;
    },
    fd_close(fd) {
      return open.delete(fd) ? 0 : ERRNO.badf;
    },
    fd_read(fd, iovs, count, total) {
      const one = open.get(fd);
      if (!one) return ERRNO.badf;
      if (one.folder) return ERRNO.isdir;
      if (!one.file) {
        view().setUint32(total >>> 0, 0, true);
        return 0;
      }
      const wrong = read(one.file, one.position, iovs, count, total);
      if (!wrong) one.position += view().getUint32(total >>> 0, true);
      return wrong;
    },
    fd_pread(fd, iovs, count, offset, total) {
      const one = open.get(fd);
      return one && one.file ? read(one.file, Number(offset), iovs, count, total) : ERRNO.badf;
    },
    fd_seek(fd, offset, whence, at) {
      const one = open.get(fd);
      if (!one) return ERRNO.badf;
      if (!one.file) return ERRNO.spipe;
      const position = Number(offset) + [0, one.position, one.file.size][whence];
      if (!(position >= 0)) return ERRNO.inval;
      one.position = position;
      view().setBigUint64(at >>> 0, BigInt(position), true);
      return 0;
    },
    fd_write(fd, iovs, count, total) {
      const one = open.get(fd);
      if (!one || !one.left) return one ? ERRNO.rofs : ERRNO.badf;
      let done = 0;
      for (let i = 0; i < count; i++) {
        const at = view().getUint32((iovs >>> 0) + 8 * i, true);
        const length = view().getUint32((iovs >>> 0) + 8 * i + 4, true);
        for (const byte of bytes(at, length)) one.left.push(byte);
        done += length;
      }
      flush(one);
      view().setUint32(total >>> 0, done, true);
      return 0;
    },
    fd_readdir(fd, buffer, size, cookie, used) {
      const one = open.get(fd);
      if (!one || !one.folder) return ERRNO.badf;
      const entries = [...folders.get(one.folder)];
      const out = bytes(buffer, size);
      let at = 0;
      for (let i = Number(cookie); i < entries.length && at < size; i++) {
        const name = new TextEncoder().encode(entries[i][0]);
        const entry = new Uint8Array(24 + name.length);
        const v = new DataView(entry.buffer);
        v.setBigUint64(0, BigInt(i + 1), true);
        v.setBigUint64(8, BigInt(number(resolve(one.folder, entries[i][0]))), true);
        v.setUint32(16, name.length, true);
        v.setUint8(20, entries[i][1]);
        entry.set(name, 24);
        const part = entry.subarray(0, Math.min(entry.length, size - at));
        out.set(part, at);
        at += part.length;
      }
      view().setUint32(used >>> 0, at, true);
      return 0;
    },
  };
  // Whatever else the C library knows of is not possible here, and it says so.
  const imports = {
    wasi_snapshot_preview1: new Proxy(system, {
      get: (known, name) => known[name] || (() => ERRNO.nosys),
    }),
  };
  const run = (instance) => {
    memory = instance.exports.memory;
    try {
      instance.exports._start();
      return 0;
    } catch (error) {
      if (error instanceof Exit) return error.code;
      throw error;
    } finally {
      for (const one of open.values())
        if (one.left && one.left.length) write(one.stream, new TextDecoder().decode(new Uint8Array(one.left)));
    }
  };
  return { imports, run };
}
