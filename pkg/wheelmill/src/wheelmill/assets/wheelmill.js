"use strict";
// The data that pages share. Files in data/ hand theirs in as scripts, for fetch() does not work from file://.

const wheelmill = {
  projects: [],
  known: null,
  releases: new Map(),
  root: document.documentElement.dataset.root,

  facts(value) {
    this.known = value;
  },

  site(value) {
    this.projects = value.projects;
  },

  release(value) {
    this.releases.set(`${value.project} ${value.version}`, value);
  },

  project(name) {
    return this.projects.find((one) => one.name === name);
  },

  // A release's data, fetched once. Rejects where its file cannot be had.
  async load(project, version) {
    const key = `${project} ${version}`;
    if (!this.releases.has(key)) await this.run(`data/${encodeURIComponent(`${project}-${version}`)}.js`);
    if (!this.releases.has(key)) throw new Error(`The data of ${project} ${version} cannot be loaded.`);
    return this.releases.get(key);
  },

  // Runs a file of the index, if it can be had.
  run(path) {
    return new Promise((resolve) => {
      const script = document.createElement("script");
      script.src = this.root + path;
      script.onload = script.onerror = resolve;
      document.head.append(script);
    });
  },
};

// An element with properties and children. Text is only ever text: nothing of a record becomes markup.
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

// Compares words in which numbers count as numbers: 2.9 before 2.11.
function natural(a, b) {
  return a.localeCompare(b, "en", { numeric: true });
}

function cudaWords(tag) {
  if (tag === "cpu") return "CPU";
  return /^cu\d{2,}$/.test(tag) ? `CUDA ${tag.slice(2, -1)}.${tag.slice(-1)}` : tag;
}

function splitEnvironment(name) {
  const at = name.indexOf("-torch");
  return { cuda: name.slice(0, at), torch: name.slice(at + 6) };
}

function environmentWords(name) {
  const { cuda, torch } = splitEnvironment(name);
  return `torch ${torch}, ${cudaWords(cuda)}`;
}

// 9.0a for 90a.
function capability(target) {
  return target.replace(/^(\d+)(\d)([af]?)$/, "$1.$2$3");
}

function sizeWords(bytes) {
  let unit = 0;
  let amount = bytes;
  while (amount >= 1000 && unit < 3) [amount, unit] = [amount / 1000, unit + 1];
  return `${amount.toFixed(amount >= 100 || unit === 0 ? 0 : 1)} ${["B", "kB", "MB", "GB"][unit]}`;
}

// `cu130 py3-none`: what tells a wheel from others of its release.
function shortName(row) {
  const parts = row.file.match(/^[^-]+-[^-+]+(?:\+([^-]+))?(?:-\d[^-]*)?-([^-]+-[^-]+)-[^-]+\.whl$/);
  return parts ? `${parts[1] ?? ""} ${parts[2]}`.trim() : row.file;
}
