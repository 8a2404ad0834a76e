"use strict";
// The choice on the landing page: its form, its answer, and what is pasted.

const byId = (id) => document.getElementById(id);
const BLANK = { torch: null, exact: null, build: null, cuda: null, python: null, os: "linux", machine: null, libc: null, driver: null, gpus: null };
const FIELDS = [["torch", "torch"], ["cuda", "CUDA"], ["python", "Python"]];
const FEW = 6; // projects that stand side by side
const state = { project: null, version: null, rows: [], environment: { ...BLANK }, turn: 0 };

function radio(name, value, words) {
  const input = make("input", { type: "radio", name, value });
  return make("label", { className: "pill" }, input, make("span", {}, words, make("span", { className: "hidden", textContent: "" })));
}

function fieldset(name, title, values, words) {
  const pills = make("div", { className: "pills" }, ...values.map((value) => radio(name, value, words(value))));
  return make("fieldset", { className: "field" }, make("legend", { textContent: title }), pills);
}

// Projects and releases, once.
function drawReleases() {
  const box = byId("releases");
  const names = wheelmill.projects.map((one) => one.name);
  if (names.length > FEW) {
    const select = make("select", { id: "project", name: "project" }, ...names.map((one) => make("option", { value: one, textContent: one })));
    box.before(make("div", { className: "field" }, make("label", { className: "legend", htmlFor: "project", textContent: "Project" }), select));
  } else if (names.length > 1) box.before(fieldset("project", "Project", names, (name) => name));
  box.append(make("label", { className: "legend", htmlFor: "release", textContent: "Release" }), make("select", { id: "release", name: "release" }));
}

// What the rows of the chosen release can serve.
function drawFields() {
  const names = [...new Set(state.rows.flatMap((row) => row.environments))].map(splitEnvironment);
  const newest = (a, b) => natural(b, a);
  const options = {
    torch: [...new Set(names.map((one) => one.torch))].sort(newest),
    cuda: [...new Set(names.map((one) => one.cuda))].sort((a, b) => (a === "cpu") - (b === "cpu") || newest(a, b)),
    python: [...new Set(state.rows.flatMap((row) => row.pythons))].sort((a, b) => a.endsWith("t") - b.endsWith("t") || natural(a, b)),
  };
  const words = { torch: (one) => one, cuda: (one) => cudaWords(one).replace("CUDA ", ""), python: (one) => one };
  byId("fields").replaceChildren(...FIELDS.map(([name, title]) => fieldset(name, title, options[name], words[name])));
}

function drawGpus() {
  const options = [...wheelmill.known.gpus].reverse().map((gpu) => make("option", { value: gpu.sm, textContent: `${capability(gpu.sm)}: ${gpu.name}` }));
  const other = make("option", { value: "report", textContent: "As the pasted report says", hidden: true, disabled: true });
  byId("gpu").append(make("option", { value: "", textContent: "Any, or I do not know" }), other, ...options);
}

// The newest environment that has a wheel, in a Python that it was measured with.
function startingPoint(rows) {
  const every = rows.filter((row) => row.yanked === null).flatMap((row) => row.environments.map((name) => ({ row, ...splitEnvironment(name), name })));
  every.sort((a, b) => natural(b.torch, a.torch) || (a.cuda === "cpu") - (b.cuda === "cpu") || natural(b.cuda, a.cuda));
  for (const { row, torch, cuda, name } of every) {
    const measured = row.passed.filter((one) => one[0] === name).map((one) => one[1]);
    const pythons = (measured.length ? measured : row.pythons).filter((one) => row.pythons.includes(one)).sort(natural);
    if (pythons.length) return { torch, cuda, python: pythons.includes("3.12") ? "3.12" : pythons.at(-1) };
  }
  return {};
}

async function takeRelease(project, version) {
  const turn = ++state.turn;
  Object.assign(state, { project, version });
  const releases = wheelmill.project(project).versions.map((one) => make("option", { value: one, textContent: one }));
  byId("release").replaceChildren(...releases);
  byId("release").value = version;
  if (byId("project")) byId("project").value = project;
  check("project", project);
  let data;
  try {
    data = await wheelmill.load(project, version);
  } catch (error) {
    say("bad", error.message, make("p", { textContent: "The index may be being written, or the file was not copied: try again." }));
    return;
  }
  if (turn !== state.turn) return;
  state.rows = data.wheels;
  drawFields();
  if (!hasWheel(state.rows, state.environment, wheelmill.known) && state.environment.source !== "chosen") {
    Object.assign(state.environment, startingPoint(state.rows));
  }
  update();
}

function check(name, value) {
  for (const input of document.querySelectorAll(`input[name="${name}"]`)) input.checked = input.value === value;
}

// Shows the environment in the form, marks what has no wheel, and answers.
function update() {
  const e = state.environment;
  for (const [name] of FIELDS) {
    check(name, e[name]);
    for (const input of document.querySelectorAll(`input[name="${name}"]`)) {
      const there = hasWheel(state.rows, changed(e, name, input.value), wheelmill.known);
      input.parentElement.classList.toggle("none", !there);
      input.nextElementSibling.lastElementChild.textContent = there ? "" : " (no wheel)";
    }
  }
  drawGpu(e);
  answer();
}

function drawGpu(e) {
  const select = byId("gpu");
  const own = e.gpus !== null && !(e.gpus.length === 1 && e.gpus[0].name === null);
  const option = select.querySelector('option[value="report"]');
  option.hidden = option.disabled = !own;
  select.value = own ? "report" : (e.gpus?.[0].sm ?? "");
}

function changed(e, name, value) {
  if (name === "gpu") return { ...e, gpus: value === "" ? null : [{ name: null, sm: value }] };
  return { ...e, [name]: value, ...(name === "torch" ? { exact: null, build: null } : {}) };
}

function say(kind, verdict, ...details) {
  byId("answer").className = `answer ${kind}`;
  byId("verdict").textContent = verdict;
  byId("details").replaceChildren(...details);
}

function answer() {
  if (state.environment.torch === null && state.environment.source !== "chosen") {
    const why = "Each was withdrawn, or was not measured to work anywhere.";
    say("bad", `No wheel of ${state.project} ${state.version} is offered`, make("p", { textContent: why }), make("p", {}, releaseLink()));
    return;
  }
  const result = choose(state.rows, state.environment, wheelmill.known);
  if (result.wheel) sayWheel(result);
  else sayNone(result);
}

function sayWheel({ wheel, notes }) {
  const { torch, cuda, python } = state.environment;
  // Left alone, pip takes a newer release from PyPI, be it sources, or a wheel of the page without code for this GPU.
  const boxes = installCommands(`${state.project}==${wheel.release}`, `${cuda}-torch${torch}`).map(([label, text]) => commandBox(label, text));
  const link = make("a", { href: `wheels/${encodeURIComponent(wheel.file)}.html`, textContent: wheel.file, className: "file" });
  say(
    "good",
    `${state.project} ${wheel.release} for ${environmentWords(`${cuda}-torch${torch}`)}, Python ${python}`,
    ...boxes,
    ...(notes.length ? [list(notes)] : []),
    make("p", {}, link, ` ${sizeWords(wheel.size)}`),
    make("p", {}, releaseLink()),
  );
}

function releaseLink() {
  const name = encodeURIComponent(`${state.project}-${state.version}`);
  return make("a", { href: `releases/${name}.html`, textContent: `All environments and wheels of ${state.project} ${state.version}` });
}

function sayNone({ problem, refused, nearest }) {
  const { torch, cuda, python } = state.environment;
  const here = torch === null ? "that environment" : `torch ${torch}, ${cudaWords(cuda ?? "unknown CUDA")}, Python ${python ?? "unknown"}`;
  const parts = [];
  if (problem) parts.push(make("p", { textContent: problem }));
  if (!problem && refused.length) parts.push(make("p", { textContent: "The nearest wheels, and why not:" }), reasons(refused));
  if (nearest.length) parts.push(make("p", { textContent: "These would have one:" }), choices(nearest));
  const older = make("div", {});
  say("bad", `No wheel of ${state.project} ${state.version} for ${here}`, ...parts, older, make("p", {}, releaseLink()));
  elsewhere(older);
}

function list(words) {
  return make("ul", {}, ...words.map((text) => make("li", { textContent: text })));
}

// The nearest wheels with their reasons; those of one cause are told once.
function reasons(refused) {
  const seen = new Map();
  for (const { row, reasons: found } of refused) {
    const text = found.map((one) => one.text).join("; ");
    if (!seen.has(text)) seen.set(text, []);
    seen.get(text).push(row);
  }
  const items = [...seen].slice(0, 3).map(([text, rows]) => {
    const link = make("a", { href: `wheels/${encodeURIComponent(rows[0].file)}.html`, textContent: shortName(rows[0]), title: rows[0].file });
    const more = rows.length > 1 ? ` and ${rows.length - 1} more` : "";
    return make("li", {}, link, `${more}: ${text}.`);
  });
  return make("ul", {}, ...items);
}

function choices(nearest) {
  // Of the same release, but another torch than the one that is there.
  const whose = state.environment.build === null ? "" : "PyTorch's own ";
  const buttons = nearest.map((one) => {
    const button = make("button", { type: "button", textContent: `${whose}${environmentWords(`${one.cuda}-torch${one.torch}`)}, Python ${one.python}` });
    button.addEventListener("click", () => {
      const { torch, cuda, python } = one;
      state.environment = { ...state.environment, torch, cuda, python, exact: null, build: null };
      update();
      byId("verdict").focus();
    });
    return make("li", {}, button);
  });
  return make("ul", { className: "choices" }, ...buttons);
}

// The newest other release that has a wheel, where this one has none.
async function elsewhere(box) {
  const { project, version, environment, turn } = state;
  for (const other of wheelmill.project(project).versions.filter((one) => one !== version).slice(0, 12)) {
    const data = await wheelmill.load(project, other).catch(() => null);
    if (turn !== state.turn || environment !== state.environment) return;
    if (data && hasWheel(data.wheels, environment, wheelmill.known)) {
      const button = make("button", { type: "button", textContent: `Take ${project} ${other}` });
      button.addEventListener("click", () => takeRelease(project, other));
      box.append(make("p", {}, `Release ${other} has a wheel for it. `, button));
      return;
    }
  }
}

function readPasted() {
  const text = byId("report").value;
  const reading = byId("reading");
  if (text.trim() === "") return reading.replaceChildren();
  const found = readReport(text, wheelmill.known);
  if (found === null) {
    return reading.replaceChildren(make("p", { textContent: "This is not what collect_env prints: a line that begins with “PyTorch version:” is missing." }));
  }
  state.environment = { ...found, source: "chosen" };
  const cards = found.gpus === null ? "GPU not told" : found.gpus.map((one) => `${one.name} (${one.sm ? capability(one.sm) : "unknown capability"})`).join(", ") || "no GPU";
  const libc = found.libc ? `${found.libc.kind} ${found.libc.version ?? ""}`.trim() : null;
  const words = [`torch ${found.exact ?? "none"}`, cudaWords(found.cuda ?? "CUDA not told"), `Python ${found.python ?? "not told"}`, libc, found.driver ? `driver ${found.driver}` : null, cards];
  reading.replaceChildren(make("p", {}, `Read: ${words.filter((one) => one).join("; ")}.`));
  update();
}

function start() {
  const first = wheelmill.projects[0];
  if (!first) return;
  byId("chooser").hidden = false;
  drawReleases();
  drawGpus();
  byId("verdict").tabIndex = -1;
  byId("form").addEventListener("submit", (event) => event.preventDefault());
  byId("form").addEventListener("change", ({ target }) => {
    if (target.name === "project") takeRelease(target.value, wheelmill.project(target.value).newest);
    else if (target.name === "release") takeRelease(state.project, target.value);
    else if (target.name) {
      state.environment = { ...changed(state.environment, target.name, target.value), source: "chosen" };
      update();
    }
  });
  byId("report").addEventListener("input", readPasted);
  takeRelease(first.name, first.newest);
}

start();
