// Hierarchies as files: what is chosen is sent as text, what is exported is saved by the browser.
"use strict";

const LARGEST = 8 << 20; // bytes: as JSON it must fit into a request

let chosen = "";

export function attach(root, studio) {
  const panel = root.querySelector("#panel"), narrow = matchMedia("(max-width: 62rem)").matches;
  if (panel && narrow && location.hash !== chosen && location.hash.includes("node=")) panel.scrollIntoView({block: "nearest"});
  chosen = location.hash;
  for (const field of root.querySelectorAll("[data-import]")) field.onchange = async () => {
    const file = field.files[0];
    if (!file) return;
    if (file.size > LARGEST) { studio.complain("at most 8 MB can be imported; choose a smaller file"); return; }
    try {
      const text = new TextDecoder("utf-8", {fatal: true}).decode(await file.arrayBuffer());
      await studio.act("import", {column: field.dataset.import, text});
    } catch { studio.complain("the file is not valid UTF-8; save it as UTF-8 text"); }
    field.value = "";
  };
  for (const button of root.querySelectorAll("[data-export]")) button.onclick = async () => {
    const told = await studio.act("export", {column: button.dataset.export});
    if (!told) return;
    const link = document.createElement("a"), address = URL.createObjectURL(new Blob([told.text], {type: "text/csv"}));
    link.href = address;
    link.download = told.name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    studio.say("Exported.");
  };
}
