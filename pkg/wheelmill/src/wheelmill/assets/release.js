"use strict";
// What changed against the release before, from the rows of both.

const section = document.getElementById("changes-section");
const { project, version } = section.dataset;

// What two releases have in common of a wheel: the local part, Python and ABI tags, and the machine.
function slot(row) {
  const local = row.release.split("+")[1] ?? "";
  const tags = row.file.replace(/\.whl$/, "").split("-").slice(-3);
  return [local, tags[0], tags[1], ...row.platforms.map((one) => one[2])].join(" ");
}

function sets(before, after) {
  return { added: after.filter((one) => !before.includes(one)), dropped: before.filter((one) => !after.includes(one)) };
}

function targetsOf(row, at) {
  return [...new Set((row.code ?? []).flatMap((one) => one[at]))].sort(natural).map(capability);
}

function difference(before, after) {
  const { added, dropped } = sets(before, after);
  return [...added.map((one) => `+ ${one}`), ...dropped.map((one) => `− ${one}`)].join(", ");
}

function served(rows) {
  return [...new Set(rows.filter((row) => row.yanked === null).flatMap((row) => row.environments))];
}

function table(label, heads, rows) {
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col", textContent: text })));
  const body = rows.map(([first, ...rest]) => make("tr", {}, make("th", { scope: "row", className: "name", textContent: first }), ...rest.map((text) => make("td", { textContent: text }))));
  const made = make("table", { className: "tight" }, make("thead", {}, head), make("tbody", {}, ...body));
  return make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": label }, made);
}

function percent(before, after) {
  const change = (100 * (after - before)) / before;
  return `${change >= 0 ? "+" : "−"}${Math.abs(change).toFixed(Math.abs(change) < 10 ? 1 : 0)} %`;
}

function wheelRows(before, after) {
  const found = [];
  for (const row of after) {
    const old = before.find((one) => slot(one) === slot(row));
    if (!old) continue;
    const sass = difference(targetsOf(old, 0), targetsOf(row, 0)) || "same";
    const ptx = difference(targetsOf(old, 1), targetsOf(row, 1)) || "same";
    const requires = difference(old.requires, row.requires) || "same";
    const grown = Math.abs(row.size - old.size) >= 0.01 * old.size;
    if (!grown && sass === "same" && ptx === "same" && requires === "same") continue;
    found.push([shortName(row), `${sizeWords(old.size)} → ${sizeWords(row.size)} (${percent(old.size, row.size)})`, sass, ptx, requires]);
  }
  return found;
}

function timeRows(before, after) {
  const found = [];
  for (const row of after) {
    const old = before.find((one) => slot(one) === slot(row));
    for (const [card, operator, sample, now] of row.times) {
      const then = old?.times.find((one) => one[0] === card && one[1] === operator && one[2] === sample)?.[3];
      if (then === undefined) continue;
      if (Math.abs(now - then) <= 0.05 * then) continue;
      const word = now < then ? ", faster" : ", slower";
      found.push([operator, sample, card, shortName(row), `${then} → ${now} ms`, percent(then, now) + word]);
    }
  }
  return found;
}

function sentence(lead, names) {
  return make("li", {}, `${lead}: ${names.length ? names.join("; ") : "none"}.`);
}

function compare(previous, current) {
  const environments = sets(served(previous.wheels), served(current.wheels));
  const slots = sets(previous.wheels.map(slot), current.wheels.map(slot));
  const files = (rows, keys) => rows.filter((row) => keys.includes(slot(row))).map(shortName);
  const words = (names) => names.sort(natural).reverse().map(environmentWords);
  const parts = [
    make("p", {}, "Against ", make("a", { href: `${encodeURIComponent(`${project}-${previous.version}`)}.html`, textContent: `${project} ${previous.version}` }), ":"),
    make("ul", {},
      sentence("Environments added", words(environments.added)),
      sentence("Environments dropped", words(environments.dropped)),
      sentence("Wheels added", files(current.wheels, slots.added)),
      sentence("Wheels dropped", files(previous.wheels, slots.dropped))),
  ];
  const wheels = wheelRows(previous.wheels, current.wheels);
  parts.push(make("h3", { textContent: "Wheels of both" }));
  if (wheels.length) parts.push(table("Wheels of both releases", ["Wheel", "Size", "SASS", "PTX", "Requirements"], wheels));
  parts.push(make("p", { className: "quiet", textContent: wheels.length ? "The others have the same targets and requirements, and a size within 1 %." : "All have the same targets and requirements, and a size within 1 %." }));
  const times = timeRows(previous.wheels, current.wheels);
  parts.push(make("h3", { textContent: "Times" }));
  if (times.length) parts.push(table("Times of both releases", ["Operator", "Sample", "Card", "Wheel", "Median", "Change"], times));
  parts.push(make("p", { className: "quiet", textContent: times.length ? "Others were not measured in both, or are within 5 %." : "None was measured in both that differs by more than 5 %." }));
  return parts;
}

async function showChanges() {
  const body = document.getElementById("changes-body");
  // It is written after this page, so the page does not name it.
  await wheelmill.run("data/site.js");
  const versions = wheelmill.project(project)?.versions ?? [];
  const before = versions[versions.indexOf(version) + 1];
  if (!versions.includes(version)) {
    body.replaceChildren(make("p", { textContent: "The list of releases cannot be loaded, or lacks this one: nothing can be said of what changed." }));
    return;
  }
  if (before === undefined) {
    body.replaceChildren(make("p", { textContent: "It is the first release in this index." }));
    return;
  }
  try {
    const [previous, current] = [await wheelmill.load(project, before), await wheelmill.load(project, version)];
    body.replaceChildren(...compare(previous, current));
  } catch (error) {
    body.replaceChildren(make("p", { textContent: `${error.message} Nothing can be said of what changed.` }));
  }
}

showChanges();
