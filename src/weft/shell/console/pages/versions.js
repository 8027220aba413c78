"use strict";
// The versions of one entry of the store, out of the lake: #store?path=home.kitchen.temp

function showVersions(told) {
  const paths = (told.tables.find(([title]) => title === "Entries") || [0, 0, []])[2].map(([path]) => path);
  if (!$("path")) layVersions();
  if ($("paths").children.length !== paths.length) $("paths").replaceChildren(...paths.map((path) => el("option", { value: path })));
}

function layVersions() {
  const path = el("input", { type: "text", id: "path", value: wantedHere().get("path") || "", placeholder: "home.kitchen.temp", ariaLabel: "Path", spellcheck: false });
  path.setAttribute("list", "paths");
  const form = el("form", { className: "ask" }, el("label", {}, "versions of ", path), el("datalist", { id: "paths" }), el("button", { type: "submit" }, "Show"));
  form.addEventListener("submit", (event) => { event.preventDefault(); noteHere(new URLSearchParams(path.value.trim() ? { path: path.value.trim() } : {})); askVersions(); });
  $("extra").replaceChildren(el("section", {}, el("h2", {}, "An entry as it was"), form, el("div", { id: "versions", role: "region", ariaLabel: "Versions" })));
  askVersions();
}

async function askVersions() {
  const path = wantedHere().get("path"), place = $("versions");
  if (!path) return place.replaceChildren();
  place.replaceChildren(el("p", { className: "note", role: "status" }, "asking the lake …"));
  const told = await fetch(`versions.json?${new URLSearchParams({ path })}`).then((answer) => answer.json()).catch(() => ({ rows: [], error: "the node does not answer", mend: "" }));
  if (path !== wantedHere().get("path")) return;
  if (told.error) return place.replaceChildren(el("p", { role: "alert" }, `✖ ${told.error}${told.mend ? ` → ${told.mend}` : ""}`));
  place.replaceChildren(section([`Versions of ${path}`, ["value", "from", "to", "who", "had seen", ""], told.rows.map(versionRow), 0, "weft store history PATH; weft store get PATH --at INSTANT"], ""));
}

function versionRow(row) {
  const time = (ns) => ns === null ? "now" : moment(ns / 1e6);
  const value = row.deleted ? "(deleted)" : "value" in row ? JSON.stringify(row.value) : "(too large for the lake)";
  const seen = (row.chain || []).slice(1).map(([node, tick]) => `${node}:${tick}`).join(" ← ");
  const isLost = row.to !== null && row.to <= row.from;
  return [value, time(row.from), time(row.to), `${row.node}:${row.tick}${row.by ? ` by ${row.by}` : ""}`, seen, isLost ? "▲ never stood" : row.to === null && !row.deleted ? "✔ stands" : ""];
}
