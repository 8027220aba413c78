"use strict";
// A document as it was: a slider over its entries, what stood there, who entered what around it, and what is in conflict.

const REST_MS = 200;
const STAMPS = / (source|timestamp|sequence|by|crc32|eid|key|sig|prev)="[^"]*"/g;
const paper = { told: null, text: "", lines: [], asked: 0, timer: 0 };

function showDocument() {
  if (!$("paper")) layDocument();
  turnTo(wantedHere());
}

function layDocument() {
  const slider = el("input", { type: "range", id: "place", min: 1, max: 1, value: 1, ariaLabel: "After which entry" });
  const then = el("input", { type: "datetime-local", id: "instant", step: 1, ariaLabel: "As of" }), session = el("select", { id: "session", ariaLabel: "Session" });
  slider.addEventListener("input", () => turnSoon({ place: slider.value }));
  then.addEventListener("change", () => { if (then.value) turnSoon({ at: Date.parse(then.value) / 1000 }); });
  session.addEventListener("change", () => turnTo(new URLSearchParams({ session: session.value })));
  $("extra").replaceChildren(el("section", {}, el("h2", {}, "The document as it was"),
    el("label", { className: "slider" }, "first entry", slider, "now"),
    el("div", { className: "ask" }, session, el("label", {}, "as of ", then)),
    el("p", { id: "said", role: "status" }), el("pre", { id: "paper", className: "paper", tabIndex: 0, ariaLabel: "The document" }), el("p", { id: "paper-note", className: "note" })),
  el("div", { id: "quarrels" }), el("div", { id: "entered" }));
  Object.assign(paper, { told: null, text: "", lines: [] });
}

function turnSoon(where) {
  const wanted = new URLSearchParams(where);
  if (paper.told) wanted.set("session", paper.told.session);
  clearTimeout(paper.timer);
  paper.timer = setTimeout(() => turnTo(wanted), REST_MS);
}

// Whoever moves on meanwhile gets only the last answer.
async function turnTo(wanted) {
  const number = ++paper.asked, told = await fetchTold(`document.json?${wanted}`);
  if (number !== paper.asked || !$("paper")) return;
  if (told.error) return refuseDocument(told);
  paper.told = told;
  const isNewest = told.place === told.total, here = told.entries.find((each) => each.place === told.place);
  const address = new URLSearchParams(told.sessions.length > 1 ? { session: told.session } : {});
  if (!isNewest) address.set("until", here.until);
  noteHere(address);
  showPlace(told, here, isNewest);
  showQuarrels(told);
  showEntered();
  const text = `${told.session} ${told.check} ${here ? here.until : ""}`;
  if (text === paper.text) return;
  $("paper").setAttribute("aria-busy", "true");
  const found = await fetchTold(`text.json?${address.has("session") ? address : new URLSearchParams([...address, ["session", told.session]])}`);
  if (number !== paper.asked || !$("paper")) return;
  $("paper").removeAttribute("aria-busy");
  if (found.error) return refuseDocument(found);
  paper.text = text;
  showLines(found, told);
}

const fetchTold = (path) => fetch(path).then((answer) => answer.json()).catch(() => ({ error: "away", text: "the node does not answer" }));

function refuseDocument(told) {
  $("paper").removeAttribute("aria-busy");
  $("paper").replaceChildren();
  Object.assign(paper, { text: "", lines: [] });
  say($("said"), `✖ ${told.text || told.error}${told.mend ? ` → ${told.mend}` : ""}`);
}

function showPlace(told, here, isNewest) {
  const slider = $("place"), session = $("session"), then = $("instant");
  slider.max = Math.max(1, told.total);
  if (document.activeElement !== slider || isNewest) slider.value = told.place;
  session.hidden = told.sessions.length < 2;
  if (session.children.length !== told.sessions.length) session.replaceChildren(...told.sessions.map((name) => el("option", { value: name }, name)));
  session.value = told.session;
  if (!here) return say($("said"), "Nothing has been entered yet");
  if (document.activeElement !== then) then.value = new Date(here.at - new Date(here.at).getTimezoneOffset() * 60e3).toISOString().slice(0, 19);
  const words = `${isNewest ? "As it is, after" : "After"} entry ${many(told.place)} of ${many(told.total)}, ${moment(here.at)}${here.by ? `, by ${here.by}` : ""}: ${here.verb} ${here.reference}`;
  slider.setAttribute("aria-valuetext", words);
  say($("said"), words);
}

// Lines that the text before did not have are marked with +, the places of open conflicts with ▲.
function showLines(found, told) {
  const before = new Set(paper.lines), disputed = placesOf(found.lines, told.conflicts.filter((each) => each.open).map((each) => each.slot));
  $("paper").replaceChildren(...found.lines.filter((line, at) => line || at < found.lines.length - 1).map((line, at) => {
    const sign = disputed.has(at) ? "▲" : before.size && !before.has(line) ? "+" : " ";
    return el("span", { className: { "▲": "disputed", "+": "fresh", " ": "" }[sign] }, `${sign} ${line.replaceAll(/ eid="[^"]*"/g, "")}\n`);
  }));
  paper.lines = found.lines;
  say($("paper-note"), `${found.more ? `and ${many(found.more)} lines that are not shown; ` : ""}+ is not in the text that was shown before, ▲ is in conflict; more: weft doc show --at INSTANT`);
}

// The lines of slots: `eid:X`, or a path such as /period[1]/jam[#2]: the value of a key, or which one of its name.
function placesOf(lines, slots) {
  const found = new Set(), way = [], counts = [];
  lines.forEach((line, at) => {
    const depth = line.search(/\S/) / 2, tag = (line.match(/^ *<([^\s/>]+)/) || [])[1];
    if (!tag) return;
    counts.length = depth + 1;
    counts[depth] = counts[depth] || new Map();
    counts[depth].set(tag, (counts[depth].get(tag) || 0) + 1);
    way.length = depth;
    way[depth] = { tag, nth: `#${counts[depth].get(tag)}`, line };
    for (const slot of slots) {
      const steps = slot.startsWith("/") ? slot.slice(1).split("/") : [];
      const fits = steps.length === depth && steps.every((step, deep) => isStep(step, way[deep + 1]));
      if (slot.startsWith("eid:") ? line.includes(` eid="${slot.slice(4)}"`) : fits) found.add(at);
    }
  });
  return found;
}

function isStep(step, { tag, nth, line }) {
  const [name, key] = step.replace("]", "").split("[");
  return name === tag && (key === nth || line.includes(`="${key}"`));
}

function showQuarrels(told) {
  if (!told.conflicts.length) return $("quarrels").replaceChildren();
  const side = ({ entry: [source, number], by, value }) => {
    const go = el("button", { type: "button" }, `“${value}”${by ? ` by ${by}` : ""}`);
    go.addEventListener("click", () => turnSoon({ until: `${source}:${number}` }));
    return go;
  };
  const open = told.conflicts.filter((each) => each.open).length;
  $("quarrels").replaceChildren(el("section", {}, el("h2", {}, "Conflicts ", el("span", {}, `${open} open, ${told.conflicts.length + told.more} in all`)),
    el("ul", { className: "diff" }, ...told.conflicts.map((each) => el("li", { data: { conflict: each.id } },
      el("b", {}, `${each.open ? "▲ open" : "✔ decided"}: ${each.kind} at ${each.where || each.slot} ${each.attr}`),
      el("span", { className: "asks" }, side(each.first), " against ", side(each.second))))),
    el("p", { className: "note" }, "more: weft doc conflicts; weft doc resolve ID --first")));
}

function showEntered() {
  if (!paper.told || !$("entered")) return;
  const { entries, place, total } = paper.told;
  const rows = entries.map((each) => [each.place, each.place === place ? "→" : "", moment(each.at), each.by, `${each.verb} ${each.reference}`, each.in_conflict ? `▲ ${each.outcome}` : each.outcome, each.body.replaceAll(STAMPS, "")]).reverse();
  $("entered").replaceChildren(section(["Entered around it", ["entry", "", "at", "who", "what", "outcome", "as it was said"], rows, total - entries.length, "weft doc log"], $("search").value.trim().toLowerCase()));
}
