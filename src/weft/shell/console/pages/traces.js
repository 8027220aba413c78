"use strict";
// What each link of a chain does to the next message of a type: #chains?type=demo.report. The last traces of this tab are kept.
// The way of one record from its origin to the lake: #chains?record=s1:1234

const TRACED = "weft-traced", TRACES_KEPT = 50, TRACE_MS = 20000;

function showTraces(told) {
  if (!$("traces")) layTraces();
  const types = [...new Set((told.tables.find(([title]) => title === "Chains") || [0, 0, []])[2].map((row) => row[1]))];
  if ($("types").children.length !== types.length) $("types").replaceChildren(...types.map((type) => el("option", { value: type })));
  showTraced();
}

function layTraces() {
  const type = el("input", { type: "text", id: "type", value: wantedHere().get("type") || "", placeholder: "demo.report or demo.*", ariaLabel: "Type", spellcheck: false, maxLength: 64 });
  const count = el("input", { type: "number", id: "count", min: 1, max: TRACES_KEPT, value: 1, ariaLabel: "How many" }), go = el("button", { type: "submit" }, "Trace");
  type.setAttribute("list", "types");
  const form = el("form", { className: "ask" }, el("label", {}, "the next ", count), el("label", {}, " messages of ", type), el("datalist", { id: "types" }), go);
  form.addEventListener("submit", (event) => { event.preventDefault(); if (type.value.trim()) trace(type.value.trim(), Math.min(TRACES_KEPT, Math.max(1, Number(count.value) || 1)), go); });
  $("extra").replaceChildren(el("section", {}, el("h2", {}, "Follow messages"), form, el("p", { id: "trace-note", className: "note", role: "status" }), el("div", { id: "traces" })));
  const record = el("input", { type: "text", id: "record", value: wantedHere().get("record") || "", placeholder: "s1:1234", ariaLabel: "Origin and number of a record", spellcheck: false, maxLength: 150 });
  const where = el("form", { className: "ask" }, el("label", {}, "where is record ", record), el("button", { type: "submit" }, "Follow"));
  where.addEventListener("submit", (event) => { event.preventDefault(); noteHere(new URLSearchParams(record.value.trim() ? { record: record.value.trim() } : {})); askRoad(); });
  $("extra").append(el("section", {}, el("h2", {}, "Its way to the lake"), where, el("div", { id: "road", role: "region", ariaLabel: "Way" })));
  askRoad();
}

// ORIGIN:NUMBER, or ORIGIN:ERA:NUMBER as messages are listed above.
async function askRoad() {
  const record = wantedHere().get("record"), place = $("road");
  if (!record) return place.replaceChildren();
  const parts = record.split(":"), number = parts.pop(), origin = parts.length > 1 && /^[0-9a-f]{32}$/.test(parts[0]) ? parts[0] : parts.join(":");
  place.replaceChildren(el("p", { className: "note", role: "status" }, "asking the nodes …"));
  const told = await fetch(`road.json?${new URLSearchParams({ origin, number })}`).then((answer) => answer.json()).catch(() => ({ rows: [], error: `${record} names no record, or the node does not answer`, mend: "ORIGIN:NUMBER" }));
  if (record !== wantedHere().get("record")) return;
  if (told.error) return place.replaceChildren(el("p", { role: "alert" }, `✖ ${told.error}${told.mend ? ` → ${told.mend}` : ""}`));
  place.replaceChildren(...told.rows.map((road) => section([`${road.stream} ${road.sequence} of ${road.name || road.origin}: ${road.state}`, ["what", "at", "where", ""],
    road.steps.map(({ what, at, node, text }) => [what, at ? moment(at / 1e6) : "", node, text]), 0, "weft trace ORIGIN NUMBER"], "")));
}

async function trace(type, count, go) {
  noteHere(new URLSearchParams({ type }));
  go.disabled = true;
  say($("trace-note"), `waiting up to ${TRACE_MS / 1000} s for ${type} …`);
  const told = await post("/order", { order: "trace", type, direction: "", count, span_ms: TRACE_MS });
  go.disabled = false;
  const note = $("trace-note");
  if (!note) return;
  if (told.error) return say(note, `✖ ${told.error}${told.mend ? ` → ${told.mend}` : ""}`);
  if (told.is_busy) return say(note, "▲ another trace runs at this node → again in a moment");
  say(note, told.messages.length ? `✔ ${told.messages.length} traced` : `▲ no message of ${type} came; samples, logs and events, which go by batches, are not traced`);
  sessionStorage.setItem(TRACED, JSON.stringify([...told.messages.reverse().map((message) => ({ ...message, seen: Date.now() })), ...traced()].slice(0, TRACES_KEPT)));
  showTraced();
}

const traced = () => JSON.parse(sessionStorage.getItem(TRACED) || "[]");

function showTraced() {
  const rows = traced().map((message) => [new Date(message.seen).toLocaleTimeString([], { hour12: false }), message.direction, message.type, message.mid.join(":"), message.bytes,
    message.steps.map(({ link, verdict, us }) => `${link}: ${verdict}${us ? ` after ${many(us)} µs` : ""}`).join(" → ") || "no link", message.end === "bottom" ? "✔ through" : message.end, message.us]);
  $("traces").replaceChildren(section(["Last traced", ["at", "way", "type", "message", "bytes", "links, from top to bottom", "end", "µs"], rows, 0, "weft chain trace TYPE; weft trace ORIGIN NUMBER: its way to the lake"], $("search").value.trim().toLowerCase()));
}
