'use strict';
// Everything that comes from the server is shown as text, never as HTML.
const $ = (id) => document.getElementById(id);
const SETTINGS = ['temperature', 'top_p', 'top_k', 'seed', 'max_tokens'];
let messages = [];  // of the conversation
let running = null;  // the AbortController of the answer that comes

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

async function ask(path, body) {
  const headers = {};
  if (body !== undefined) headers['content-type'] = 'application/json';
  if ($('key').value) headers.authorization = `Bearer ${$('key').value}`;
  const signal = running ? running.signal : undefined;
  const response = await fetch(path, {method: body === undefined ? 'GET' : 'POST', headers, body, signal});
  if (response.ok) return response;
  let message = `status ${response.status}`;
  try { message = (await response.json()).error.message; } catch { /* no JSON: the status says it */ }
  throw new Error(message);
}

function settings() {
  const chosen = {};
  for (const name of SETTINGS) if ($(name).value !== '') chosen[name] = Number($(name).value);
  return chosen;
}

function showSettings() {
  const text = Object.entries(settings()).map(([name, value]) => `${name} ${value}`).join(', ');
  $('summary').textContent = text || 'as the model says';
}

async function showModels() {
  try {
    const {data} = await (await ask('/v1/models')).json();
    const models = data.filter((model) => model.kind === 'language');
    $('model').replaceChildren(...models.map((model) => {
      const option = element('option', '', model.id);
      option.title = `program ${model.program}, weights ${model.weights}`;
      return option;
    }));
  } catch (error) {
    $('talk').append(element('p', 'bad', error.message));
  }
}

// The objects of a stream's events.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    held += value;
    for (let end; (end = held.indexOf('\n\n')) >= 0; held = held.slice(end + 2)) {
      const line = held.slice(0, end);
      if (!line.startsWith('data: ') || line === 'data: [DONE]') continue;
      const event = JSON.parse(line.slice(6));
      if (event.error) throw new Error(event.error.message);
      yield event;
    }
  }
}

function card(role) {
  const article = element('article', role);
  const parts = {article, thought: element('div', 'thought'), text: element('div', 'text'), foot: element('footer')};
  article.append(parts.thought, parts.text, parts.foot);
  $('talk').append(article);
  return parts;
}

// The receipt as a file: a link alone would not send the key.
async function save(id) {
  const receipt = await (await ask(`/v1/receipts/${id}`)).blob();
  const link = element('a');
  link.href = URL.createObjectURL(receipt), link.download = `${id}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

async function verify(id, button, verdict) {
  button.disabled = true;
  verdict.className = '';
  verdict.textContent = 'computing again ...';
  try {
    const receipt = await (await ask(`/v1/receipts/${id}`)).text();
    const found = await (await ask('/v1/receipts/verify', receipt)).json();
    verdict.className = found.ok ? 'good' : 'bad';
    verdict.textContent = found.verdict;
  } catch (error) {
    verdict.className = 'bad';
    verdict.textContent = error.message;
  }
  button.disabled = false;
}

function showProof(foot, model, invar, usage, reason) {
  const [id] = invar.receipts;
  const link = element('a', 'receipt', `receipt ${id.slice(0, 12)}...`);
  link.href = `/v1/receipts/${id}`, link.title = id;
  link.addEventListener('click', (event) => { event.preventDefault(); save(id).catch((e) => { verdict.textContent = e.message; }); });
  const button = element('button', 'verify', 'Verify');
  button.type = 'button';
  const verdict = element('span', '');
  verdict.dataset.verdict = '', verdict.setAttribute('role', 'status');
  button.addEventListener('click', () => verify(id, button, verdict));
  const held = Object.entries(invar.sampling).filter(([, v]) => v !== null && typeof v !== 'object');
  const sampling = element('span', 'held', held.map(([name, value]) => `${name} ${value}`).join(', '));
  const count = `${model}, ${usage.prompt_tokens} + ${usage.completion_tokens} tokens, ${reason}`;
  foot.append(element('span', '', count), sampling, link, button, verdict);
}

async function answer(prompt) {
  const chat = $('mode').value === 'chat', model = $('model').value;
  const body = {model, stream: true, stream_options: {include_usage: true}, ...settings()};
  if (chat) {
    const system = $('system').value.trim();
    body.messages = system ? [{role: 'system', content: system}, ...messages] : messages;
  } else {
    body.prompt = prompt, body.max_tokens ||= 128;  // the protocol's 16 are few to read
  }
  const parts = card('assistant'), said = {role: 'assistant', content: ''};
  let usage, invar, reason;
  try {
    const response = await ask(chat ? '/v1/chat/completions' : '/v1/completions', JSON.stringify(body));
    for await (const event of events(response)) {
      usage = event.usage || usage, invar = event.invar || invar;
      const [choice] = event.choices;
      if (!choice) continue;
      const delta = chat ? choice.delta : {content: choice.text};
      said.content += delta.content || '', reason = choice.finish_reason || reason;
      parts.text.textContent = said.content;
      if (delta.reasoning_content) parts.thought.textContent += delta.reasoning_content;
      for (const call of delta.tool_calls || [])
        parts.text.after(element('pre', '', `${call.function.name}(${call.function.arguments})`));
      $('talk').scrollTop = $('talk').scrollHeight;
    }
    if (chat) messages.push(said);
    showProof(parts.foot, model, invar, usage, reason);
  } catch (error) {
    const left = error.name === 'AbortError';
    parts.foot.append(element('span', 'bad', left ? 'stopped: without a receipt' : error.message));
    if (chat) messages.pop();  // the question may be asked again
  }
  $('talk').scrollTop = $('talk').scrollHeight;
}

async function send() {
  const prompt = $('input').value;
  if (!prompt.trim() || running) return;
  $('input').value = '';
  card('user').text.textContent = prompt;
  messages.push({role: 'user', content: prompt});
  running = new AbortController();
  $('send').hidden = true, $('stop').hidden = false;
  await answer(prompt);
  running = null;
  $('send').hidden = false, $('stop').hidden = true;
  $('input').focus();
}

function forget() {
  if (running) running.abort();
  messages = [];
  $('talk').replaceChildren();
  $('input').focus();
}

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  $('theme').textContent = dark ? 'Light' : 'Dark';
  $('theme').setAttribute('aria-pressed', String(dark));
}

$('form').addEventListener('submit', (event) => { event.preventDefault(); send(); });
$('input').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && running) running.abort();
  if (event.altKey && event.key.toLowerCase() === 'n') event.preventDefault(), forget();
});
$('stop').addEventListener('click', () => running && running.abort());
$('fresh').addEventListener('click', forget);
$('theme').addEventListener('click', () => setTheme(document.documentElement.dataset.theme !== 'dark'));
$('settings').addEventListener('input', showSettings);
$('key').addEventListener('change', () => { $('talk').replaceChildren(); showModels(); });
setTheme(matchMedia('(prefers-color-scheme: dark)').matches);
showSettings();
showModels();
