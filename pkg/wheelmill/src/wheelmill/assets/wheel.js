"use strict";
// Fills in the commands of a wheel's page: this site's address is known only here.

// The release's page is written after this one, so the link to it is made when both are there.
const release = document.getElementById("release");
const name = `${encodeURIComponent(release.dataset.name)}.html`;
release.replaceChildren(make("a", { href: `${wheelmill.root}releases/${name}`, textContent: release.textContent }));

const commands = document.getElementById("commands");

function showCommands() {
  const environment = document.getElementById("environment").value;
  const boxes = installCommands(commands.dataset.requirement, environment).map(([label, text]) => commandBox(label, text));
  document.getElementById("boxes").replaceChildren(...boxes);
}

if (commands) {
  document.getElementById("environment").addEventListener("change", showCommands);
  showCommands();
}
