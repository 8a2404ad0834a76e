"use strict";
// Fills in the commands of a wheel's page: this site's address is known only here.

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
