// The page: collects files, runs the verifier in a worker, shows what it says.
"use strict";

const $ = (id) => document.getElementById(id);
// files: { path, file }; chosen: the folder of one of several models, null: none was chosen.
const given = { receipts: new Map(), files: [], unread: [], chosen: null };
let worker = null;
let results = 0;

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
function size(bytes) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; bytes >= 1000 && unit + 1 < units.length; unit++) bytes /= 1000;
  return `${unit ? bytes.toFixed(1) : bytes} ${units[unit]}`;
}

// --- what is given --------------------------------------------------------------------------------
const MODEL_JSON = /(^|\/)(config|genai_config|generation_config|tokenizer|tokenizer_config|special_tokens_map|vocab|added_tokens|preprocessor_config|[^/]*\.index)\.json$/;
const LARGEST_RECEIPT = 256 << 20;

async function isReceipt(path, file) {
  if (!/\.json$/i.test(path) || MODEL_JSON.test(path) || file.size > LARGEST_RECEIPT) return false;
  const text = await file.text().catch(() => "");
  return /"schema"\s*:\s*"invar-/.test(text) || !path.includes("/"); // a file alone: the verifier says what it is
}

async function add(entries) {
  for (const { path, file } of entries) {
    if (await isReceipt(path, file)) given.receipts.set(path, file);
    else {
      given.files = given.files.filter((one) => one.path !== path);
      given.files.push({ path, file });
    }
  }
  changed();
}
function changed() {
  show();
  if (ready() && !worker) start();
}

// The folders of models: those that have a file of settings and lie in no other such folder.
function modelFolders() {
  const settings = given.files.filter(({ path }) => /(^|\/)(config|genai_config)\.json$/.test(path));
  const all = new Set(settings.map(({ path }) => path.slice(0, path.lastIndexOf("/") + 1)));
  return [...all].filter((one) => ![...all].some((other) => other !== one && one.startsWith(other))).sort();
}
// The one model, or the chosen one; null: there is none, or it is to be chosen. Its files keep their
// places in its folder; what lies in no folder of a model, such as a plan, belongs to it, too.
function model() {
  const folders = modelFolders();
  const root = folders.length === 1 ? folders[0] : folders.find((one) => one === given.chosen);
  if (root === undefined) return null;
  const name = root.split("/").filter(Boolean).pop() || "model";
  const files = new Map();
  for (const one of given.files) {
    const base = one.path.split("/").pop();
    if (one.path.startsWith(root)) files.set(one.path.slice(root.length), one.file);
    else if (!files.has(base) && !folders.some((folder) => one.path.startsWith(folder))) files.set(base, one.file);
  }
  const plans = [...files.keys()].filter((path) => path.endsWith(".invar"));
  const weights = [...files].filter(([path]) => /\.(safetensors|onnx|data)$/.test(path));
  return { name, files, weights, plan: plans[0] || "plan.invar", plans };
}
// A row with a button for each of several models.
function choiceOf(folders) {
  const choice = element("li", { class: "need" }, "Which model is it?");
  const buttons = element("span", { class: "note choice" });
  for (const folder of folders) {
    const chosen = folder === given.chosen;
    const button = element("button", { type: "button", "aria-pressed": chosen }, folder.replace(/\/$/, ""));
    button.onclick = () => {
      given.chosen = folder;
      changed();
    };
    buttons.append(button);
  }
  choice.append(buttons);
  if (given.chosen) choice.className = "have";
  return choice;
}
function ready() {
  const found = model();
  return given.receipts.size > 0 && found !== null && found.weights.length > 0 && found.plans.length === 1;
}

const HOW_TO_MAKE_A_PLAN =
  "the compiled model: invar run --model-name FOLDER --prompt-text x --max-new-tokens 1 --task-dir PLAN makes it in the folder PLAN";
function row(have, text, note) {
  const notes = note ? [element("span", { class: "note" }, note)] : [];
  return element("li", { class: have ? "have" : "need" }, text, ...notes);
}
function receiptRow() {
  if (!given.receipts.size) return row(false, "A receipt is missing", "receipt.json, which invar run writes");
  return row(true, `Receipt: ${[...given.receipts.keys()].join(", ")}`);
}
function modelRow(found) {
  if (!found) return row(false, "The model is missing", "the folder of the checkpoint, with config.json in it");
  if (!found.weights.length)
    return row(false, `The weights of ${found.name} are missing`, "the .safetensors files of the checkpoint");
  const bytes = found.weights.reduce((n, [, file]) => n + file.size, 0);
  return row(true, `Model: ${found.name}, ${found.weights.length} files of weights, ${size(bytes)}`);
}
function planRow(found) {
  const plans = found ? found.plans : [];
  if (plans.length === 1) return row(true, `Plan: ${plans[0]}`);
  if (!plans.length) return row(false, "plan.invar is missing", HOW_TO_MAKE_A_PLAN);
  return row(false, `More than one plan: ${plans.join(", ")}`, "start over, and give one");
}
function show() {
  const found = model();
  const folders = modelFolders();
  const rows = [];
  if (given.receipts.size || given.files.length) {
    rows.push(receiptRow());
    if (folders.length > 1) rows.push(choiceOf(folders));
    if (folders.length < 2 || found) rows.push(modelRow(found), planRow(found));
  }
  for (const name of given.unread) rows.push(row(false, `${name} cannot be read`, "choose it with a button instead"));
  $("given").replaceChildren(...rows);
  $("start").disabled = !ready() || worker !== null;
  $("reset").hidden = !rows.length;
}

function fromInput(input) {
  const entries = [...input.files].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
  input.value = "";
  return add(entries);
}

// Everything below a dropped file or folder.
async function below(handle, path, entries) {
  if (handle.kind === "file") entries.push({ path, file: await handle.getFile() });
  else for await (const [name, child] of handle.entries()) await below(child, `${path}/${name}`, entries);
}
async function belowEntry(entry, path, entries) {
  if (entry.isFile) {
    entries.push({ path, file: await new Promise((good, bad) => entry.file(good, bad)) });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((good, bad) => reader.readEntries(good, bad));
    if (!some.length) return;
    for (const child of some) await belowEntry(child, `${path}/${child.name}`, entries);
  }
}
async function fromDrop(transfer) {
  // All at once: the items are gone behind the first await.
  const items = [...transfer.items].filter((item) => item.kind === "file");
  const found = items.map((item) => {
    const entry = item.webkitGetAsEntry && item.webkitGetAsEntry();
    return {
      name: entry ? entry.name : "a file",
      file: item.getAsFile(),
      entry,
      handle: item.getAsFileSystemHandle ? item.getAsFileSystemHandle().catch(() => null) : null,
    };
  });
  const entries = [];
  for (const { name, file, entry, handle } of found) {
    try {
      const known = await handle;
      if (known) await below(known, known.name, entries);
      else if (entry) await belowEntry(entry, entry.name, entries);
      else entries.push({ path: file.name, file });
    } catch {
      given.unread.push(name);
    }
  }
  await add(entries);
}

// --- verification ---------------------------------------------------------------------------------
const PHASES = { hash: "Hashing weights", load: "Loading weights", recompute: "Computing the answer again" };
let compiled = null;
async function compile() {
  const packed = Uint8Array.from(atob($("module").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
}

async function start() {
  const found = model();
  $("results").replaceChildren();
  results = 0;
  $("work").hidden = false;
  $("progress").removeAttribute("value");
  $("phase").textContent = "Preparing";
  const began = performance.now();
  const url = URL.createObjectURL(new Blob([$("worker").textContent], { type: "text/javascript" }));
  const mine = (worker = new Worker(url));
  show();
  const root = found.name;
  const files = [...found.files].map(([path, file]) => ({ path: `/${root}/${path}`, file }));
  // Under their whole paths: two folders may each have a turn-1.json.
  for (const [path, file] of given.receipts) files.push({ path: `/${path}`, file });
  files.push({ path: "/known-plans", file: new Blob([$("known").textContent]) });
  const receipts = [...given.receipts.keys()];
  mine.onmessage = ({ data }) => {
    if (mine !== worker) return;
    if (data.read !== undefined && $("progress").hasAttribute("data-reading")) {
      $("progress").value = (data.read % data.total) / data.total; // weights are read twice
      $("phase").textContent = `${$("phase").dataset.what}: ${size(data.read)} read`;
    }
    if (data.line) line(data.line);
    if (data.crash) refuse(data.crash + (data.said ? `: ${data.said}` : ""));
    if (data.crash || data.exit !== undefined) {
      if (!results) refuse(`the verifier ended with exit code ${data.exit} and no verdict`);
      end();
      document.body.dataset.memory = data.memory || 0; // bytes, for tests
      document.body.dataset.seconds = ((performance.now() - began) / 1000).toFixed(2);
    }
  };
  mine.onerror = (event) => {
    refuse(`the verifier could not start: ${event.message || "this browser stopped it"}`);
    end();
  };
  try {
    compiled = compiled || compile();
    const module = await compiled;
    if (mine === worker) mine.postMessage({ module, files, args: [root, `${root}/${found.plan}`, ...receipts] });
  } catch (error) {
    compiled = null;
    refuse(`this browser cannot run the verifier: ${error.message}`);
    end();
  }
}
function end() {
  if (worker) worker.terminate();
  worker = null;
  $("work").hidden = true;
  show();
  $("start").textContent = "Verify again";
}

function line(data) {
  if (data.verdict) return result(data);
  if (!data.phase) return;
  const what = PHASES[data.phase] || data.phase;
  const steps = data.total ? `: ${data.done} of ${data.total} tokens` : "";
  $("phase").textContent = data.finished ? `${what}: ${data.finished}` : what + steps;
  $("phase").dataset.what = what;
  $("progress").toggleAttribute("data-reading", data.phase === "hash" || data.phase === "load");
  if (data.total) $("progress").value = data.done / data.total;
  else $("progress").removeAttribute("value");
}

function refuse(message) {
  result({ ok: false, verdict: "REFUSED", receipt: "", error: message });
}
function result(v) {
  results++;
  const row = (...cells) => element("tr", {}, ...cells);
  const byGivenPlan = v.verdict.endsWith(" BY A GIVEN PLAN");
  const card = element("article", { class: `card ${v.ok && !byGivenPlan ? "good" : v.ok || v.error ? "warn" : "bad"}` });
  card.dataset.verdict = v.verdict;
  card.append(element("h2", {}, v.receipt ? `${v.verdict} – ${v.receipt}` : v.verdict));
  if (v.error) card.append(element("p", {}, v.error));
  const about = Object.entries(v.about || {});
  if (about.length)
    card.append(element("dl", { class: "says" }, ...about.flatMap(([what, text]) => [element("dt", {}, what), element("dd", {}, text)])));
  if (v.findings && v.findings.length) {
    const head = element("thead", {}, row(...["Field", "The receipt says", "This machine computes, or requires"].map((text) => element("th", { scope: "col" }, text))));
    const body = element("tbody", {}, ...v.findings.map((f) => row(element("th", { scope: "row" }, f.field), element("td", {}, f.found), element("td", {}, f.expected))));
    card.append(element("table", {}, head, body));
  }
  if (v.ok && byGivenPlan)
    card.append(element("p", { class: "caution" }, "The plan decides what is computed, and this one was given: trust the verdict if you made the plan yourself."));
  if (v.ok) {
    const compared = [...Object.entries(v.compared), ["receipt", v.receipt_hash]];
    card.append(element("table", {}, element("tbody", {}, ...compared.map(([what, how]) => row(element("th", { scope: "row" }, what), element("td", {}, how))))));
  }
  if (v.report) card.append(element("details", {}, element("summary", {}, "As invar verify prints it"), element("pre", {}, v.report)));
  $("results").append(card);
}

// --- controls -------------------------------------------------------------------------------------
$("files").onchange = (event) => fromInput(event.target);
$("folder").onchange = (event) => fromInput(event.target);
$("start").onclick = start;
$("cancel").onclick = () => {
  end();
  refuse("cancelled");
};
$("reset").onclick = () => {
  end();
  given.receipts.clear();
  given.files = [];
  given.unread = [];
  given.chosen = null;
  $("results").replaceChildren();
  $("start").textContent = "Verify";
  show();
};
for (const type of ["dragenter", "dragover"])
  document.addEventListener(type, (event) => {
    event.preventDefault();
    $("drop").classList.add("over");
  });
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) $("drop").classList.remove("over");
});
document.addEventListener("drop", (event) => {
  event.preventDefault();
  $("drop").classList.remove("over");
  fromDrop(event.dataTransfer);
});
