"use strict";
// Reads what `python -m torch.utils.collect_env` prints, of any torch. Nothing leaves the page.

// An environment: {torch, exact, build, cuda, python, os, machine, libc, driver, gpus}. What is unknown is null.
//   torch   "2.11"; null where none is installed. `exact` is the whole version.
//   build   what makes that torch another than the released one: "nightly", "source", "vendor" or "conda"
//   cuda    "cu130", "cpu", "rocm" or "xpu"
//   libc    {kind: "glibc" or "musl", version}
//   gpus    [{name, sm}]; sm is null for a model that is not in the table. null where the report does not say.
function readReport(text, facts) {
  const lines = text.replace(/\r/g, "").split("\n").map((line) => line.replace(/^[>\s|]+/, "").trimEnd());
  const get = (name) => {
    const found = lines.find((line) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`));
    return found === undefined ? null : found.slice(name.length + 1).trim();
  };
  if (get("PyTorch version") === null) return null;
  const platform = get("Python platform") ?? "";
  const system = readSystem(get("OS") ?? "", platform);
  // A torch that could not be imported is listed all the same.
  const stated = /^\d/.test(get("PyTorch version")) ? get("PyTorch version") : (listed(lines, /^\[pip3?\] torch==(\S+)/) ?? "");
  const torch = readTorch(stated, get("CUDA used to build PyTorch"), get("ROCM used to build PyTorch"));
  // conda's packages have no local version, and a C++ ABI of their own.
  if (torch.torch !== null && torch.build === null && !stated.includes("+") && byConda(lines)) torch.build = "conda";
  return {
    ...torch,
    python: readPython(get("Python version") ?? ""),
    ...system,
    libc: system.os === "linux" ? readLibc(get("OS") ?? "", get("Libc version"), platform) : null,
    driver: (get("Nvidia driver version") ?? "").match(/^\d+(\.\d+)+/)?.[0] ?? null,
    gpus: readGpus(lines, facts),
  };
}

function listed(lines, pattern) {
  return lines.map((line) => line.match(pattern)).find((match) => match)?.[1] ?? null;
}

function byConda(lines) {
  const row = lines.find((line) => /^\[conda\] (py|lib)?torch\s/.test(line));
  return row !== undefined && !/\bpypi(_0)?\b/.test(row);
}

function readTorch(version, cudaLine, rocmLine) {
  const none = { torch: null, exact: null, build: null, cuda: null };
  const parts = version.match(/^(\d+)\.(\d+)(\.\d+)?(a\d+|b\d+|rc\d+)?(\.dev\d+)?(?:\+(\S+))?/);
  if (!parts) return none;
  const [, major, minor, patch, early, dev, local = ""] = parts;
  let build = null;
  if (/\.nv\d|\.nv$/.test(local)) build = "vendor";
  else if (dev || /^(b|rc)/.test(early ?? "")) build = "nightly";
  else if (early || (local !== "" && !/^(cu\d{3,}|cpu|rocm\d[\d.]*|xpu)$/.test(local))) build = "source";
  const stated = (cudaLine ?? "").match(/^(\d+)\.(\d+)/);
  // What cannot be imported says nothing of its CUDA.
  let cuda = /^none$/i.test(cudaLine ?? "") || local === "cpu" ? "cpu" : null;
  if (/^rocm/.test(local) || /^\d/.test(rocmLine ?? "")) cuda = "rocm";
  else if (stated) cuda = `cu${stated[1]}${stated[2]}`;
  else if (/^cu\d{3,}/.test(local)) cuda = local.match(/^cu\d+/)[0];
  else if (/^xpu/.test(local)) cuda = "xpu";
  return { torch: `${major}.${minor}`, exact: `${major}.${minor}${patch ?? ".0"}`, build, cuda };
}

function readPython(line) {
  const found = line.match(/^(\d+\.\d+)/);
  if (!found) return null;
  if (/pypy/i.test(line)) return `PyPy ${found[1]}`;
  return found[1] + (/free[- ]threading/i.test(line) ? "t" : "");
}

function readSystem(line, platform) {
  const both = `${line} ${platform}`;
  let os = null;
  if (/windows/i.test(both)) os = "windows";
  else if (/mac ?os|darwin/i.test(both)) os = "macos";
  else if (/linux/i.test(platform) || line !== "") os = "linux";
  const machine = both.match(/x86_64|amd64|aarch64|arm64|ppc64le|i[36]86/i)?.[0].toLowerCase() ?? null;
  return { os, machine: { amd64: "x86_64", arm64: "aarch64" }[machine] ?? machine };
}

function readLibc(system, line, platform) {
  const found = `${line ?? ""} ${platform}`.match(/glibc-?(\d+\.\d+)/);
  if (found) return { kind: "glibc", version: found[1] };
  if (/alpine|musl/i.test(`${system} ${line ?? ""} ${platform}`)) return { kind: "musl", version: null };
  return null;
}

function readGpus(lines, facts) {
  const at = lines.findIndex((line) => /^GPU models and configuration:/i.test(line));
  if (at < 0) return null;
  const names = [];
  const first = lines[at].slice(lines[at].indexOf(":") + 1).trim();
  if (/^could not collect/i.test(first)) return null;
  if (/^no cuda|^n\/a/i.test(first)) return [];
  if (first) names.push(first);
  for (let next = at + 1; next < lines.length && /^(GPU \d+:|MIG )/.test(lines[next]); next += 1) names.push(lines[next]);
  const cards = names.filter((name) => !name.startsWith("MIG ")).map((name) => name.replace(/^GPU \d+:\s*/, "").split("(UUID")[0].trim());
  return cards.map((name) => ({ name, sm: capabilityOf(name, facts) }));
}

// The capability of a card by its name: that of the longest model that occurs in it word by word.
function capabilityOf(name, facts) {
  const words = ` ${name.toLowerCase().replace(/[^a-z0-9]+/g, " ").trim()} `;
  let best = { length: 0, sm: null };
  for (const gpu of facts.gpus) {
    for (const model of gpu.models) {
      if (words.includes(` ${model.toLowerCase()} `) && model.length > best.length) best = { length: model.length, sm: gpu.sm };
    }
  }
  return best.sm;
}
