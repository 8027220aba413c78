"use strict";
// One page of tables, whatever they are about; asked for anew every two seconds while it is looked at.

const EVERY_MS = 2000;
const LONG = /\S{24}/, SHORT = /^(\d{4}-\d\d-\d\d \d\d:\d\d|[✔◆▲✖] .{1,16}$)/;
let shown = "", told = null;

async function ask() {
  const page = here() || "configuration";
  try {
    const answer = await fetch(`tables.json?of=${encodeURIComponent(page)}`);
    if (!answer.ok) throw new Error("no such page");
    const text = await answer.text();
    say($("link"), "● live");
    $("link").className = "pill good";
    if (text !== shown) { shown = text; told = JSON.parse(text); show(); }
  } catch (error) {
    say($("link"), error.message === "no such page" ? "✖ there is no such page" : "✖ the node does not answer");
    $("link").className = "pill bad";
  }
  document.body.classList.toggle("old", $("link").className.endsWith("bad"));
}

function show() {
  const wanted = $("search").value.trim().toLowerCase();
  document.title = `${told.page} · Weft`;
  say($("fleet"), `Weft · ${told.name}`);
  const made = told.tables.map((table) => section(table, wanted));
  if (!made.length) made.push(el("p", { className: "note" }, `${told.name} does not take part in that: its file has no table for it.`));
  if (told.level !== "root") made.push(el("p", { className: "note" }, `This is what ${told.name}, a ${told.level}, knows.`));
  $("tables").replaceChildren(...made);
  if (told.page === "configuration") showWrites(told);
  else if (told.page === "lake" && told.level === "root") showAsk();
  else if (told.page === "documents" && told.tables.length) showDocument();
  else if (told.page === "store" && told.tables.length) showVersions(told);
  else if (told.page === "chains" && told.tables.length) showTraces(told);
  else $("extra").replaceChildren();
}

function section([title, columns, rows, more, hint], wanted) {
  const fitting = rows.filter((row) => !wanted || row.join(" ").toLowerCase().includes(wanted));
  const isNumber = columns.map((_, at) => rows.length > 0 && rows.every((row) => row[at] === null || typeof row[at] === "number"));
  const head = el("tr", {}, ...columns.map((name, at) => el("th", { scope: "col", className: isNumber[at] ? "number" : "" }, name)));
  const body = fitting.map((row) => el("tr", {}, ...row.map((value, at) => el("td", { className: isNumber[at] ? "number" : LONG.test(value) ? "long" : SHORT.test(value) ? "short" : "" }, word(value)))));
  const count = fitting.length === rows.length ? `${rows.length}` : `${fitting.length} of ${rows.length}`;
  const made = el("section", {}, el("h2", {}, `${title} `, el("span", {}, count)));
  if (rows.length) made.append(el("div", { className: "wide", tabIndex: 0 }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...body))));
  else made.append(el("p", { className: "note" }, "none"));
  if (more) made.append(el("p", { className: "note" }, `and ${more} more or further ones that are not shown`));
  if (hint) made.append(el("p", { className: "note" }, `more: ${hint}`));
  return made;
}

function word(value) {
  if (value === null) return "–";
  return typeof value === "number" && Number.isInteger(value) && value < 1e12 ? many(value) : String(value);
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { $("search").value = ""; $("search").blur(); if (told) show(); }
  if (event.key === "/" && !["INPUT", "TEXTAREA"].includes(document.activeElement.tagName)) { event.preventDefault(); $("search").focus(); }
});
$("search").addEventListener("input", () => { if (told) show(); });
addEventListener("hashchange", () => { shown = wroteText = ""; $("extra").replaceChildren(); ask(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });
setInterval(() => { if (!document.hidden) ask(); }, EVERY_MS);
ask();
