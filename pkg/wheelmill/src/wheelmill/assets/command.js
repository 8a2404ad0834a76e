"use strict";
// The commands that install a wheel, made with this site's own address, and the buttons that copy them.

// A word as a POSIX shell reads it back.
function shellWord(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

// The address of a file of this index, as the browser sees it.
function siteAddress(path) {
  return new URL(wheelmill.root + path, location.href.split(/[?#]/)[0]).href;
}

function installCommands(requirement, environment) {
  const page = shellWord(siteAddress(`${environment}.html`));
  const word = shellWord(requirement);
  return [
    ["pip", `pip install ${word} --find-links ${page}`],
    ["uv", `uv pip install ${word} --find-links ${page}`],
  ];
}

function commandBox(label, command) {
  // A narrow page breaks the line between words, not within an option.
  const words = command.split(" ").flatMap((word) => [" ", make("span", { className: "word", textContent: word })]);
  const code = make("code", {}, ...words.slice(1));
  const button = make("button", { type: "button", className: "copy", textContent: "Copy", "aria-label": `Copy the ${label} command` });
  button.addEventListener("click", () => copyFrom(code, button));
  const box = make("pre", { tabIndex: 0, "aria-label": `${label} command`, role: "region" }, code);
  return make("div", { className: "command" }, make("span", { className: "tool", textContent: label }), box, button);
}

// Browsers offer the clipboard to secure pages alone; elsewhere the old way does.
async function copyFrom(code, button) {
  let copied = false;
  try {
    await navigator.clipboard.writeText(code.textContent);
    copied = true;
  } catch {
    getSelection().selectAllChildren(code);
    copied = document.execCommand("copy");
  }
  button.textContent = copied ? "Copied" : "Press Ctrl+C";
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}
