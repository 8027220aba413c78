"use strict";
// The lake, asked: questions that have a name, and any in SQL, now or as it was; numbers over time are drawn.

const ASKED = [["missing", "What is missing"], ["recent", "Now"], ["hourly", "By the hour"], ["alerts", "Alerts"], ["quarantine", "Refused rows"], ["runs", "Runs of the driver"]];

function showAsk() {
  if ($("sql")) return;
  const query = el("textarea", { id: "sql", rows: 3, spellcheck: false, ariaLabel: "SQL", placeholder: "SELECT node, hour, mean, p95 FROM hourly WHERE metric = 'cpu'" });
  const then = el("input", { type: "text", id: "as-of", size: 12, placeholder: "now", ariaLabel: "as of" });
  const found = el("div", { id: "found", role: "region", ariaLabel: "Answer" });
  const named = ASKED.map(([name, word]) => {
    const button = el("button", { type: "button" }, word);
    button.addEventListener("click", () => answer(word, fetch(`lake.json?ask=${name}`).then((told) => told.json()).catch(() => ({ error: "the node does not answer", mend: "" }))));
    return button;
  });
  const form = el("form", { className: "ask" }, query, el("label", {}, "as of ", then), el("button", { type: "submit" }, "Ask"));
  form.addEventListener("submit", (event) => { event.preventDefault(); if (query.value.trim()) answer("Answer", post("sql.json", { query: query.value, as_of: then.value.trim() })); });
  query.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit(); });
  $("extra").replaceChildren(el("section", {}, el("h2", {}, "Ask the lake"), el("div", { className: "asks", role: "group", ariaLabel: "Questions" }, ...named), form, found));
  named[0].click();

  async function answer(title, asking) {
    found.setAttribute("aria-busy", "true");
    found.replaceChildren(el("p", { className: "note", role: "status" }, "asking …"));
    const told = await asking;
    found.removeAttribute("aria-busy");
    if (told.query) query.value = told.query;
    found.replaceChildren(...(told.error ? [el("p", { role: "alert" }, `✖ ${told.error}${told.mend ? ` → ${told.mend}` : ""}`)] : answered(title, told.rows)));
  }
}

function answered(title, rows) {
  if (!rows.length) return [el("p", { className: "verdict", role: "status" }, title === ASKED[0][1] ? "✔ Nothing is missing: every number of every machine is in the tables or explained" : "no rows")];
  const columns = Object.keys(rows[0]);
  return [...drawnRows(columns, rows), section([title, columns, rows.map((row) => columns.map((name) => plain(row[name]))), 0, ""], "")];
}

// Ranges of numbers as a sentence, whatever else has parts as JSON.
function plain(value) {
  if (!Array.isArray(value) || !value.every((each) => each && "first" in each && "last" in each)) return value !== null && typeof value === "object" ? JSON.stringify(value) : value;
  return value.map(({ first, last, why }) => (first === last ? many(first) : `${many(first)} to ${many(last)}`) + (why ? `: ${why}` : "")).join("; ");
}

// Rows with an instant and a number are a plot: the first column of each kind, a line for each node.
function drawnRows(columns, rows) {
  const at = columns.find((name) => rows.every((row) => typeof row[name] === "string" && /^\d{4}-\d\d-\d\d[T ]\d\d:/.test(row[name])));
  const value = columns.find((name) => rows.every((row) => typeof row[name] === "number"));
  if (!at || !value || rows.length < 3) return [];
  const instant = (row) => Date.parse(row[at].includes("Z") || row[at].includes("+") ? row[at] : `${row[at].replace(" ", "T")}Z`);
  const groups = Map.groupBy ? Map.groupBy(rows, (row) => row.node || value) : new Map([[value, rows]]);
  const all = rows.map(instant), from = Math.min(...all), to = Math.max(...all);
  if (!(to > from)) return [];
  return [el("div", { className: "plots" }, ...[...groups].slice(0, 8).map(([name, some]) => {
    const windows = some.map((row) => [instant(row), row[value], row[value], row[value], row[value]]).sort((a, b) => a[0] - b[0]);
    const gap = Math.max(1, (to - from) / Math.max(1, windows.length)), ordered = windows.map((each) => each[1]).sort((a, b) => a - b);
    return plot(name === value ? value : `${name}: ${value}`, { from, to: to + gap, width: gap }, { windows, p95: ordered[Math.ceil(.95 * ordered.length) - 1], max: ordered.at(-1) }, "");
  }))];
}
