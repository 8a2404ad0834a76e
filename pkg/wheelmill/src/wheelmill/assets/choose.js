"use strict";
// Which wheel of a release is right for an environment (see collect.js), and if none, why and what is nearest.
// Pure: it reads rows of data/*.js and the tables of assets/cards.js, and no page.

// {wheel, notes, problem, refused, nearest}. `wheel` is null where none fits: then `problem` is what no wheel
// of the release can help, if there is such a thing, `refused` each wheel with its reasons, the nearest first, and
// `nearest` the environments that have a wheel and differ least, one for each way of differing.
function choose(rows, environment, facts) {
  const problem = problemOf(environment, facts);
  const judged = rows.map((row) => ({ row, reasons: reasonsOf(row, environment, facts) }));
  const fit = judged.filter((one) => one.reasons.length === 0).map((one) => one.row).sort(byVersion);
  if (problem === null && fit.length > 0) {
    return { wheel: fit[0], notes: notesOf(fit[0], environment, facts), problem, refused: [], nearest: [] };
  }
  const far = (one) => [rowDistance(one.row, environment), one.reasons.length];
  const refused = judged
    .filter((one) => one.reasons.length > 0)
    .map((one) => ({ ...one, far: far(one) }))
    .sort((a, b) => a.far[0] - b.far[0] || a.far[1] - b.far[1]);
  return { wheel: null, notes: [], problem, refused, nearest: nearestTo(rows, environment, facts) };
}

// How far a wheel's nearest environment is; that of a wheel that was measured nowhere is read off its version.
function rowDistance(row, e) {
  if (row.environments.length > 0) {
    return Math.min(...row.environments.map((name) => distance(splitEnvironment(name), e)));
  }
  return row.release.endsWith(`+${e.cuda}.torch${e.torch}`) || row.release.endsWith(`+${e.cuda}`) ? 0 : Infinity;
}

// What it costs somebody to go from one torch and CUDA to another: a torch minor, a CUDA of the same major, a major.
function distance({ torch, cuda }, e) {
  const minor = (one) => one.split(".").reduce((sum, part) => sum * 100 + Number(part), 0);
  const number = (one) => Number(one.slice(2)) || 0;
  let cost = 0;
  if (e.torch === null) cost -= minor(torch) / 100;
  else if (torch !== e.torch) cost += 2 + Math.abs(minor(torch) - minor(e.torch)) / 100 + (minor(torch) < minor(e.torch) ? 0.005 : 0);
  if (e.cuda === null) cost -= number(cuda) / 10000;
  else if (cuda !== e.cuda) {
    const major = (one) => one.slice(0, -1);
    cost += cuda === "cpu" ? 6 : major(cuda) === major(e.cuda) ? 2 : 3;
    cost += Math.abs(number(cuda) - number(e.cuda)) / 10000;
  }
  return cost;
}

// Whether the release has a wheel for an environment.
function hasWheel(rows, environment, facts) {
  return problemOf(environment, facts) === null && rows.some((row) => reasonsOf(row, environment, facts).length === 0);
}

// The newest version first, as pip takes them. Within a release only the local part differs.
function byVersion(a, b) {
  const parts = (row) => (row.release.split("+")[1] ?? "").split(/[._-]/).filter((part) => part !== "");
  const [mine, other] = [parts(a), parts(b)];
  for (let at = 0; at < Math.max(mine.length, other.length); at += 1) {
    if (mine[at] === undefined || other[at] === undefined) return mine[at] === undefined ? 1 : -1;
    const numbers = [/^\d+$/.test(mine[at]), /^\d+$/.test(other[at])];
    if (numbers[0] !== numbers[1]) return numbers[0] ? -1 : 1;
    const order = numbers[0] ? Number(other[at]) - Number(mine[at]) : natural(other[at], mine[at]);
    if (order !== 0) return order;
  }
  return natural(b.file, a.file);
}

// What makes every wheel wrong.
function problemOf(e, facts) {
  if (e.torch === null) return "No torch is installed there. Install it first; the wheel must match it.";
  if (e.build === "nightly") return `torch ${e.exact} there is a nightly or a pre-release: no wheel was measured with it.`;
  if (e.build === "source") return `torch ${e.exact} there was built from source: no wheel was measured with it.`;
  if (e.build === "conda") return `torch ${e.exact} there is conda's build: no wheel was measured with it.`;
  if (e.build === "vendor") return `torch ${e.exact} there is a vendor's own build: no wheel was measured with it.`;
  if (e.cuda === "rocm") return "torch there is built for ROCm: the wheels are for CUDA or the CPU.";
  if (e.cuda === "xpu") return "torch there is built for Intel GPUs: the wheels are for CUDA or the CPU.";
  if (e.cuda === null) return `Which CUDA torch ${e.exact ?? e.torch} there is for is not known: choose it.`;
  if (e.python === null) return "Which Python is installed there is not known: choose it.";
  // A torch that was read rather than chosen is there, wherever it came from.
  const pythons = facts.pythons[e.torch];
  if (!e.exact && pythons && !pythons.includes(e.python)) return `torch ${e.torch} has no release for Python ${e.python}.`;
  const driver = facts.drivers[e.cuda];
  if (e.driver !== null && driver !== undefined && parseInt(e.driver, 10) < driver) {
    return `${cudaWords(e.cuda)} needs driver ${driver} or newer, and driver ${e.driver} is installed there.`;
  }
  const unknown = onGpu(e).find((gpu) => gpu.sm === null);
  if (unknown) return `The compute capability of ${unknown.name} is not known here: choose it under GPU.`;
  return null;
}

function onGpu(e) {
  return /^cu\d/.test(e.cuda ?? "") ? (e.gpus ?? []) : [];
}

// Why a wheel is not for an environment; empty where it was measured to work there.
function reasonsOf(row, e, facts) {
  const reasons = [];
  const add = (kind, text) => reasons.push({ kind, text });
  if (row.yanked !== null) add("yanked", row.yanked ? `it was withdrawn: ${row.yanked}` : "it was withdrawn");
  const platform = platformReason(row, e);
  if (platform) add("platform", platform);
  const name = `${e.cuda}-torch${e.torch}`;
  if (!row.environments.includes(name)) {
    const error = row.errors.find((one) => one[0] === name);
    if (error) add("measured", `it was tried with ${environmentWords(name)}, and failed: ${error[1]}`);
    else if (row.environments.length === 0) add("measured", "it was not measured to work anywhere");
    else add("measured", `it was not measured to work with ${environmentWords(name)}, but with ${served(row)}`);
  }
  if (!row.pythons.includes(e.python)) add("python", `it is not for Python ${e.python}`);
  else if (row.failed.some((one) => one[0] === name && one[1] === e.python)) add("failed", `it failed there with Python ${e.python}`);
  if (e.exact && row.environments.includes(name) && !satisfies(e.exact, row.torch)) {
    add("torch", `it requires torch ${row.torch}, and ${e.exact} is installed: pip would replace it`);
  }
  for (const gpu of row.environments.includes(name) ? onGpu(e).filter((one) => one.sm !== null) : []) {
    const found = runsOn(row, gpu, e.driver, facts);
    if (found.how === null) add("gpu", found.reason);
  }
  return reasons;
}

// "torch 2.11, CUDA 13.0", or how many such.
function served(row) {
  if (row.environments.length === 1) return environmentWords(row.environments[0]);
  const torches = [...new Set(row.environments.map((name) => splitEnvironment(name).torch))].sort(natural);
  const cudas = [...new Set(row.environments.map((name) => cudaWords(splitEnvironment(name).cuda)))].sort(natural);
  return `torch ${torches.length > 1 ? `${torches[0]} to ${torches.at(-1)}` : torches[0]}, ${cudas.join(", ")}`;
}

function platformReason(row, e) {
  const known = { linux: "Linux", windows: "Windows", macos: "macOS" };
  if (row.platforms.length === 0) return "its file name cannot be read";
  if (row.platforms.some(([kind]) => kind === "any")) return null;
  if (e.os !== null && e.os !== "linux") return `it is for Linux, and this is ${known[e.os] ?? e.os}`;
  const here = row.platforms.filter(([kind, , machine]) => kind !== "other" && (e.machine === null || machine === e.machine));
  if (here.length === 0) return `it is not for ${e.machine ?? "Linux"}`;
  if (e.libc === null) return null;
  const same = here.filter(([kind]) => kind === e.libc.kind);
  if (same.length === 0) return e.libc.kind === "musl" ? "it needs glibc, and this system has musl" : "it needs musl, and this system has glibc";
  if (e.libc.version === null || same.some(([, version]) => version === null || natural(version, e.libc.version) <= 0)) return null;
  return `it needs glibc ${same.map(([, version]) => version).sort(natural)[0]}, and this system has ${e.libc.version}`;
}

// Whether a version satisfies every clause of a range such as ">=2.10,<3". What cannot be read is not satisfied.
function satisfies(version, range) {
  const numbers = (text) => text.split(".").map(Number);
  const compare = (a, b) => {
    for (let at = 0; at < Math.max(a.length, b.length); at += 1) {
      const order = (a[at] ?? 0) - (b[at] ?? 0);
      if (order !== 0) return order;
    }
    return 0;
  };
  return range.split(",").filter((clause) => clause.trim() !== "").every((clause) => {
    const parts = clause.trim().match(/^(===|==|!=|~=|>=|<=|>|<)\s*v?(\d+(?:\.\d+)*)(\.\*)?(?:\+\S*)?$/);
    if (!parts) return false;
    const [, operator, text, star] = parts;
    const [have, want] = [numbers(version), numbers(text)];
    const starts = want.every((part, at) => (have[at] ?? 0) === part);
    const order = compare(have, want);
    switch (operator) {
      case "===":
      case "==": return star ? starts : order === 0;
      case "!=": return !(star ? starts : order === 0);
      case ">=": return order >= 0;
      case "<=": return order <= 0;
      case ">": return order > 0;
      case "<": return order < 0;
      default: return order >= 0 && want.slice(0, -1).every((part, at) => (have[at] ?? 0) === part);
    }
  });
}

// {how, reason}: "sass", "ptx", or null with the reason. Every library of the wheel must have code for the card.
function runsOn(row, gpu, driver, facts) {
  const card = gpu.name ? `${gpu.name} (${capability(gpu.sm)})` : `compute capability ${capability(gpu.sm)}`;
  if (row.code === null) return { how: null, reason: `it was not audited, so nothing tells whether it runs on ${card}` };
  let how = "sass";
  for (const [sass, ptx, isa] of row.code) {
    if (sass.some((target) => sassRuns(target, gpu.sm, facts))) continue;
    const list = sass.length ? `its SASS is for ${sass.map(capability).join(", ")}` : "it has no SASS";
    if (!ptx.some((target) => ptxCompiles(target, gpu.sm))) return { how: null, reason: `it has no code for ${card}: ${list}${ptx.length ? `, its PTX for ${ptx.map(capability).join(", ")} and newer` : ", and it has no PTX"}` };
    const needed = facts.ptx[isa ?? ""];
    if (driver !== null && needed === undefined) return { how: null, reason: `it has only PTX for ${card}, and whether driver ${driver} compiles it is not known` };
    if (driver !== null && parseInt(driver, 10) < needed) return { how: null, reason: `it has only PTX for ${card}, which needs driver ${needed} or newer; ${driver} is installed` };
    how = "ptx";
  }
  return { how, reason: null };
}

function split(target) {
  const [, number, suffix] = target.match(/^(\d+)([af]?)$/);
  return { major: Math.floor(Number(number) / 10), minor: Number(number) % 10, number, suffix };
}

// SASS runs on its own capability and later minors of that major; `a` on its own alone, and systems on a chip apart.
function sassRuns(target, sm, facts) {
  const [code, card] = [split(target), split(sm)];
  if (code.number === card.number) return true;
  if (code.suffix === "a" || facts.tegra.includes(code.number) || facts.tegra.includes(card.number)) return false;
  return code.major === card.major && code.minor <= card.minor;
}

// PTX compiles for its own capability and every later one; `a` for its own alone, `f` for its family.
function ptxCompiles(target, sm) {
  const [code, card] = [split(target), split(sm)];
  if (code.suffix === "a") return code.number === card.number;
  if (code.suffix === "f") return code.major === card.major && code.minor <= card.minor;
  return Number(code.number) <= Number(card.number);
}

// What somebody should know who installs that wheel there.
function notesOf(row, e, facts) {
  const notes = [];
  const name = `${e.cuda}-torch${e.torch}`;
  const passed = row.passed.filter((one) => one[0] === name).map((one) => one[1]).sort(natural);
  if (passed.length > 0 && !passed.includes(e.python)) {
    notes.push(`Measured there with Python ${passed.join(", ")}; Python ${e.python} is what its tags and Requires-Python admit.`);
  }
  if (!e.exact && /(^|,)===?[\d.]+(\+|,|$)/.test(row.torch)) notes.push(`It requires torch ${row.torch} exactly: pip replaces any other.`);
  if (e.cuda === "cpu") return notes;
  const gpus = onGpu(e);
  const viaPtx = gpus.filter((gpu) => runsOn(row, gpu, e.driver, facts).how === "ptx");
  if (viaPtx.length > 0) {
    const needed = [...new Set(row.code.map((one) => facts.ptx[one[2] ?? ""]).filter((one) => one !== undefined))];
    const driver = e.driver === null && needed.length > 0 ? ` It needs driver ${Math.max(...needed)} or newer.` : "";
    const cards = [...new Set(viaPtx.map((gpu) => capability(gpu.sm)))].join(", ");
    notes.push(`Its code for ${cards} is PTX: the driver compiles it at first use, which takes a while once.${driver}`);
  }
  if (gpus.length === 0 && row.code && row.code.length > 0) {
    const all = (at) => [...new Set(row.code.flatMap((one) => one[at]))].sort(natural).map(capability).join(", ");
    const lead = e.gpus === null || e.gpus === undefined ? "Choose a GPU to check it against the wheel's code" : "No GPU was seen there. The wheel's code";
    notes.push(`${lead}: SASS ${all(0) || "none"}; PTX ${all(1) || "none"}.`);
  }
  return notes;
}

// Environments that have a wheel: of each set of things to change the nearest, and at most three. The GPU, the driver and the
// system stay as they are; where torch is not for NVIDIA's GPUs, only the CPU's wheels come in question.
function nearestTo(rows, e, facts) {
  const cpu = e.cuda === "rocm" || e.cuda === "xpu";
  const found = new Map();
  if (onGpu(e).some((gpu) => gpu.sm === null)) return [];
  for (const row of rows) {
    for (const name of row.environments) {
      const { cuda, torch } = splitEnvironment(name);
      if (cpu && cuda !== "cpu") continue;
      const python = row.pythons.includes(e.python) ? e.python : nearPython(row.pythons, e.python);
      const other = { ...e, torch, cuda, python, exact: null, build: null };
      if (python === null || problemOf(other, facts) !== null || reasonsOf(row, other, facts).length > 0) continue;
      const cost = distance({ torch, cuda }, e) + (python === e.python ? 0 : 4 + pythonsApart(python, e.python) / 10);
      const changes = [torch !== e.torch, cuda !== e.cuda, python !== e.python].join();
      if (!found.has(changes) || found.get(changes).cost > cost) found.set(changes, { cost, cuda, torch, python, file: row.file });
    }
  }
  return [...found.values()].sort((a, b) => a.cost - b.cost).slice(0, 3);
}

function nearPython(pythons, python) {
  const plain = pythons.filter((one) => !one.endsWith("t"));
  return plain.sort((a, b) => pythonsApart(a, python) - pythonsApart(b, python))[0] ?? null;
}

function pythonsApart(a, b) {
  const number = (one) => Number((one ?? "3.12").replace("t", "").split(".")[1]);
  return Math.abs(number(a) - number(b));
}
