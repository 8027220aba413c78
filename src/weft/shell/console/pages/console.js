"use strict";
// The state as it comes, and the page that shows it. A picture arrives whole first, then what has changed, once a second.

const METERS = [["cpu", "CPU"], ["memory", "memory"], ["disk", "disk"]];
const TROUBLES_SHOWN = 8, SILENCE_MS = 5000;
let head = {}, offset = 0, heard = 0, opened = "", order = "", isOnly = false;
const nodes = new Map(), rows = new Map();

const now = () => Date.now() + offset;
const textOf = (trouble) => trouble[3] ? `${trouble[1]} for ${span(now() - trouble[3])}` : trouble[1];

// Hearing

function take(told) {
  heard = performance.now();
  offset = told.at - Date.now();
  if (told.whole) nodes.clear();
  if (told.head) head = told.head;
  for (const [id, row] of Object.entries(told.nodes || {})) merge(id, row);
  for (const id of told.gone || []) nodes.delete(id);
  show();
  if (told.whole && !opened && nodes.has(location.hash.slice(1))) openMachine(location.hash.slice(1));
}

function merge(id, row) {
  const known = nodes.get(id) || { id, values: {} };
  const { values, ...fields } = row;
  Object.assign(known, fields);
  for (const [name, told] of Object.entries(values || {})) known.values[name] = joined(known.values[name], told);
  known.dirty = true;
  nodes.set(id, known);
}

// Points are [the first slot, a value or null for each slot]; newer ones replace those in the same slots.
function joined(kept, told) {
  const between = kept ? told[0] - kept[0] : 0;
  if (between <= 0 || between > POINTS + kept.length) return told;
  const gap = Array(Math.max(0, between + 1 - kept.length)).fill(null), points = [...kept.slice(1, between + 1), ...gap, ...told.slice(1)];
  const dropped = Math.max(0, points.length - POINTS);
  return [kept[0] + dropped, ...points.slice(dropped)];
}

function follow() {
  for (const event of early) take(JSON.parse(event.data));
  stream.onmessage = (event) => take(JSON.parse(event.data));
  stream.addEventListener("still", () => { heard = performance.now(); });
  setInterval(tick, 1000);
  tick();
}

// The order: a tree in which whoever has the worst trouble in its branch stands first.

function sorted() {
  const below = new Map();
  for (const node of nodes.values()) {
    const parent = nodes.has(node.parent) ? node.parent : "";
    if (below.has(parent)) below.get(parent).push(node);
    else below.set(parent, [node]);
  }
  const worst = (node, depth) => Math.max(node.much, ...(depth > 8 ? [] : (below.get(node.id) || []).map((child) => worst(child, depth + 1))));
  for (const list of below.values()) {
    for (const node of list) node.worst = worst(node, 0);
    list.sort((a, b) => b.worst - a.worst || b.much - a.much || RANKS(a) - RANKS(b) || byName(a.name, b.name));
  }
  const listed = [];
  const descend = (id, depth) => {
    for (const node of below.get(id) || []) {
      node.depth = Math.min(depth, 4);
      listed.push(node);
      if (depth < 32) descend(node.id, depth + 1);
    }
  };
  descend("", 0);
  return listed;
}

const byName = new Intl.Collator("en", { numeric: true }).compare;
const RANKS = (node) => ["root", "collector", "sensor"].indexOf(node.level);

function fits(node) {
  if (isOnly && !node.much) return false;
  const wanted = $("search").value.trim().toLowerCase();
  return !wanted || `${node.name} ${node.level} ${node.group} ${node.endpoint}`.toLowerCase().includes(wanted);
}

// Showing

function show() {
  const listed = sorted();
  say($("fleet"), `Weft · ${head.fleet}`);
  say($("open"), head.open ? `Open fabric: without keys, whoever reaches ${head.open} can pose as any node and change everything` : "");
  $("open").hidden = !head.open;
  document.title = `${listed.some((node) => node.much > 2) ? "✖ " : ""}${head.fleet} · Weft`;
  showVerdict(listed);
  showNumbers(listed);
  showTroubles(listed);
  showRows(listed);
  showElsewhere();
  if (opened) showMachine();
}

function showVerdict(listed) {
  const bad = listed.filter((node) => node.much > 2), odd = listed.filter((node) => node.much === 2);
  const homeless = head.homeless || [];
  let much = bad.length ? 3 : odd.length || homeless.length ? 2 : 0, text = `✔ All ${listed.length} machines are well`;
  if (listed.length === 1) text = "✔ The one machine known here is well";
  if (bad.length) text = `✖ ${bad.length} of ${listed.length} machines in trouble: ${names(bad)}`;
  else if (odd.length) text = `▲ ${odd.length} of ${listed.length} machines worse than they should be: ${names(odd)}`;
  else if (homeless.length) text = `▲ No group wants ${homeless.join(", ")}`;
  $("verdict").dataset.much = much;
  say($("verdict"), text);
}

const ofSilence = ([, said]) => said.startsWith("silent");
const isSilent = (node) => node.troubles.some(ofSilence);
const names = (list) => list.slice(0, 3).map((node) => node.name).join(", ") + (list.length > 3 ? ` and ${list.length - 3} more` : "");

function showNumbers(listed) {
  let [expected, received, lost] = [0, 0, 0], late = null, gap = 0, worst = null;
  for (const node of listed) {
    if (node.counts[0] - node.counts[1] > gap) { worst = node; gap = node.counts[0] - node.counts[1]; }
    expected += node.counts[0]; received += node.counts[1]; lost += node.counts[2];
    if (node.newest && (!late || node.newest < late.newest)) late = node;
  }
  const missing = expected - received, silent = listed.filter(isSilent);
  say($("expected"), many(expected));
  say($("received"), many(received));
  say($("missing"), many(missing));
  say($("expected-note"), `samples since ${clock(head.begun)}`);
  say($("received-note"), expected ? `${(100 * received / expected).toFixed(missing ? 2 : 0)} %` : "");
  say($("missing-note"), lost ? `✖ ${many(lost)} lost for good: ${worst.name}` : missing ? `on their way: ${worst.name}` : silent.length ? `none known; silent: ${names(silent)}` : "✔ none");
  $("missing").parentElement.classList.toggle("bad", lost > 0);
  say($("oldest"), late ? span(now() - late.newest) : "–");
  say($("oldest-note"), late ? `${late.name}: its newest sample` : "");
  $("oldest").parentElement.classList.toggle("bad", Boolean(late) && late.much > 2);
}

function showTroubles(listed) {
  const all = listed.flatMap((node) => node.troubles.map((trouble) => ({ node, trouble }))).sort((a, b) => b.trouble[0] - a.trouble[0] || ofSilence(b.trouble) - ofSilence(a.trouble));
  $("wrong").hidden = !all.length;
  const shown = all.slice(0, TROUBLES_SHOWN), list = $("troubles");
  while (list.children.length > shown.length) list.lastChild.remove();
  while (list.children.length < shown.length) list.append(el("li", {}, troubleButton()));
  shown.forEach(({ node, trouble }, at) => {
    const button = list.children[at].firstChild, [sign, name, text, todo] = button.children;
    button.dataset.much = sign.dataset.much = trouble[0];
    button.dataset.node = node.id;
    say(sign, SIGNS[trouble[0]]);
    say(name, node.name);
    say(text, textOf(trouble));
    say(todo, trouble[2] ? `→ ${trouble[2]}` : "");
  });
  $("more").hidden = all.length <= TROUBLES_SHOWN;
  say($("more"), `and ${all.length - TROUBLES_SHOWN} more: press t`);
}

function troubleButton() {
  const made = el("button", { type: "button" }, el("span", { className: "sign" }), el("b"), el("span"), el("span", { className: "do" }));
  made.addEventListener("click", () => openMachine(made.dataset.node));
  return made;
}

const looked = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const row = rows.get(entry.target.dataset.node);
    if (row) row.isSeen = entry.isIntersecting;
    if (row && row.isSeen) draw(nodes.get(entry.target.dataset.node), row);
  }
}, { rootMargin: "300px" });

// In a large fleet most of a branch is well: the first few are shown, the others are one row, until it is opened.

const FOLDED_FROM = 60, WELL_SHOWN = 3;
const unfolded = new Set(), folds = new Map();

function folded(listed) {
  if (listed.length < FOLDED_FROM || $("search").value.trim() || isOnly) return [listed.filter(fits), new Map()];
  const well = new Map(), shown = [], after = new Map();
  const hasChildren = new Set(listed.map((node) => node.parent));
  for (const node of listed) {
    const count = well.get(node.parent) || 0, last = shown.at(-1);
    if (node.much || hasChildren.has(node.id) || unfolded.has(node.parent)) { shown.push(node); continue; }
    well.set(node.parent, count + 1);
    if (count < WELL_SHOWN) shown.push(node);
    else after.set(node.parent, { last: count === WELL_SHOWN ? last : after.get(node.parent).last, count: count + 1 - WELL_SHOWN, depth: node.depth });
  }
  return [shown, new Map([...after].map(([parent, fold]) => [fold.last.id, { parent, ...fold }]))];
}

function foldRow({ parent, count, depth }) {
  if (!folds.has(parent)) {
    const button = el("button", { type: "button" });
    button.addEventListener("click", () => { unfolded.add(parent); order = ""; show(); });
    folds.set(parent, el("div", { className: "row fold", role: "row" }, el("span", { className: "who", role: "rowheader" }, button)));
  }
  const row = folds.get(parent);
  row.className = `row fold d${depth}`;
  say(row.firstChild.firstChild, `✔ ${count} more, all well`);
  return row;
}

function showRows(listed) {
  const [shown, foldedAfter] = folded(listed), tree = $("tree"), hidden = [...foldedAfter.values()].reduce((sum, each) => sum + each.count, 0);
  say($("count"), shown.length + hidden === listed.length ? `${listed.length}` : `${shown.length} of ${listed.length}`);
  $("none").hidden = shown.length > 0;
  for (const [id, row] of rows) if (!nodes.has(id)) { looked.unobserve(row.at); row.at.remove(); rows.delete(id); }
  for (const node of shown) if (!rows.has(node.id)) rows.set(node.id, made(node));
  for (const fold of foldedAfter.values()) foldRow(fold);
  const wanted = shown.map((node) => node.id + (foldedAfter.has(node.id) ? "+" : "")).join();
  if (wanted !== order) {
    order = wanted;
    const focused = document.activeElement;
    tree.replaceChildren(tree.firstElementChild, ...shown.flatMap((node) => foldedAfter.has(node.id) ? [rows.get(node.id).at, foldRow(foldedAfter.get(node.id))] : [rows.get(node.id).at]));
    if (focused !== document.activeElement && tree.contains(focused)) focused.focus({ preventScroll: true });
  }
  for (const node of shown) {
    const row = rows.get(node.id);
    if (row.isSeen && (node.dirty || node.much)) draw(node, row);
  }
}

function made(node) {
  const sign = el("span", { className: "sign" }), name = el("b"), small = el("small"), meters = {};
  const at = el("div", { className: "row machine", tabIndex: 0, role: "row", data: { node: node.id } },
    el("span", { className: "who", role: "rowheader" }, sign, name, small));
  for (const [key, word] of METERS) {
    const value = el("span"), drawn = svg("spark", POINTS, 24, word);
    meters[key] = { value, path: shape(drawn, "path", {}), drawn };
    at.append(el("span", { className: "meter", role: "gridcell", data: { name: word } }, drawn, value));
  }
  const strip = svg("strip", CELLS, 22, "received"), kinds = {};
  for (const kind of Object.keys(KINDS)) kinds[kind] = shape(strip, "path", { class: KINDS[kind][0] });
  strip.addEventListener("click", (event) => {
    event.stopPropagation();
    const box = strip.getBoundingClientRect(), newest = Math.floor(now() / CELL_MS);
    openMachine(node.id, newest - CELLS + 1 + Math.floor(CELLS * (event.clientX - box.left) / box.width));
  });
  const cell = el("span", { role: "gridcell" });
  cell.append(strip);
  at.append(cell);
  at.addEventListener("click", () => openMachine(node.id));
  at.addEventListener("keydown", (event) => { if (event.key === "Enter") openMachine(node.id); });
  looked.observe(at);
  return { at, sign, name, small, meters, strip, kinds, isSeen: true };
}

function draw(node, row) {
  if (!node) return;
  const newest = Math.floor(now() / POINT_MS), trouble = node.troubles[0];
  node.dirty = false;
  row.at.dataset.much = row.sign.dataset.much = node.much;
  row.at.className = `row machine d${node.depth}${isSilent(node) ? " silent" : ""}`;
  row.at.setAttribute("aria-level", node.depth + 1);
  row.at.setAttribute("aria-label", `${node.name}, ${WORDS[node.much]}${trouble ? `: ${trouble[1]}` : ""}`);
  say(row.sign, SIGNS[node.much]);
  say(row.name, node.name);
  say(row.small, trouble && node.much > 1 ? textOf(trouble) : [node.level || "machine", node.busiest && `${node.busiest[0]} ${Math.round(node.busiest[1])} %`, node.group].filter(Boolean).join(" · "));
  for (const [key] of METERS) {
    const points = node.values[key] || [], meter = row.meters[key];
    const word = points.length ? `${points.at(-1)} %` : "–";
    say(meter.value, word);
    meter.drawn.setAttribute("aria-label", `${key} ${word}`);
    meter.path.setAttribute("d", line(points, newest, 24));
  }
  if (row.drawn === node.strip) return;
  row.drawn = node.strip;
  for (const kind of Object.keys(KINDS)) row.kinds[kind].setAttribute("d", pieces(node.strip, kind));
  const count = (kind) => node.strip.split(kind).length - 1;
  row.strip.setAttribute("aria-label", `of ten minutes: ${count("o")} pieces came, ${count("-")} did not, ${count("x")} with losses`);
}

function showElsewhere() {
  const box = $("elsewhere");
  box.hidden = head.level === "root";
  if (box.hidden) return;
  const text = `This is ${head.name}, a ${head.level}: it knows itself and what passes here.`;
  if (box.dataset.text === text + head.root) return;
  box.dataset.text = text + head.root;
  box.replaceChildren(text + (head.root ? " The whole fleet: " : " No root is known here."), ...(head.root ? [el("a", { href: head.root }, "the root's console")] : []));
}

// One machine

async function openMachine(id, cell) {
  opened = id;
  $("cells").replaceChildren();
  $("plots").replaceChildren();
  history.replaceState(null, "", `#${id}`);
  showMachine();
  showSpans();
  askHistory();
  if (!$("machine").open) $("machine").showModal();
  const node = nodes.get(id), newest = Math.floor(now() / CELL_MS);
  const asked = cell !== undefined ? [cell] : [...node.strip].flatMap((kind, at) => "-x".includes(kind) ? [newest - CELLS + 1 + at] : []).slice(-12);
  if (cell === undefined && !asked.length) $("cells").append(el("li", {}, "Every ten seconds of the last ten minutes brought samples, and none is lost."));
  for (const each of asked) {
    const answer = await fetch(`cell?node=${id}&cell=${each}`);
    const told = answer.ok ? await answer.json() : null;
    if (opened !== id) return;
    $("cells").append(el("li", {}, told ? cellText(told) : "Nothing of it has come here."));
  }
}

function cellText(told) {
  const when = `${clock(told.at)} to ${clock(told.at + CELL_MS)}: `;
  const parts = [];
  if (told.received) parts.push(`${many(told.received)} samples came, numbers ${many(told.first)} to ${many(told.last)}`);
  for (const each of told.why) parts.push(`numbers ${many(each.first)} to ${many(each.last)} are lost: ${each.why}`);
  if (!told.received && !told.lost) parts.push(told.newest < told.at ? "nothing has come since then" : "nothing came of it: the machine did not measure, or was away");
  return when + parts.join("; ");
}

function showMachine() {
  const node = nodes.get(opened);
  if (!node) return;
  say($("machine-name"), `${SIGNS[node.much]} ${node.name}`);
  const runs = node.number === null ? "has not said which configuration it runs" : `runs number ${node.number} of the configuration`;
  const parent = nodes.get(node.parent);
  say($("machine-place"), [node.level, node.group && `group ${node.group}`, node.endpoint, parent && `below ${parent.name}`, runs].filter(Boolean).join(" · "));
  $("machine-troubles").replaceChildren(...node.troubles.map((trouble) => el("li", {}, `${SIGNS[trouble[0]]} ${textOf(trouble)}${trouble[2] ? ` → ${trouble[2]}` : ""}`)));
  const [expected, received, lost] = node.counts;
  say($("machine-counts"), `${many(expected)} expected, ${many(received)} received, ${many(lost)} lost; the newest is ${node.newest ? `${span(now() - node.newest)} old` : "not known"}`);
  say($("machine-busiest"), node.busiest ? `busiest process: ${node.busiest[0]}, ${node.busiest[1]} % of all processors` : "");
}

// Its history: ten minutes are asked for anew while one looks, longer spans more seldom.

const WORDS_OF = { cpu: ["CPU", "%"], memory: ["memory", "%"], disk: ["disk", "%"], net: ["network", "B/s"] };
const SPANS = [["10m", "10 min", 5000], ["1h", "1 hour", 60e3], ["24h", "day", 60e3], ["7d", "week", 300e3], ["30d", "month", 300e3], ["1y", "year", 300e3]];
let reach = "10m", askedAt = 0;

function showSpans() {
  $("spans").replaceChildren(...SPANS.map(([name, word]) => {
    const button = el("button", { type: "button", ariaPressed: String(name === reach) }, word);
    button.addEventListener("click", () => { reach = name; showSpans(); askHistory(); $("spans").querySelector("[aria-pressed=true]").focus(); });
    return button;
  }));
}

async function askHistory() {
  const node = opened, wanted = reach;
  askedAt = performance.now();
  $("plots").setAttribute("aria-busy", "true");
  let told = null;
  try {
    const answer = await fetch(`history.json?node=${node}&span=${wanted}`);
    told = answer.ok ? await answer.json() : { error: answer.status === 404 ? "this machine is not shown any more" : "the node does not answer", mend: "" };
  } catch { told = { error: "the node does not answer", mend: "" }; }
  if (opened !== node || reach !== wanted) return;
  $("plots").removeAttribute("aria-busy");
  say($("plots-note"), told.error ? `From the lake: ${told.error}${told.mend ? ` → ${told.mend}` : ""}` : "");
  if (told.metrics) $("plots").replaceChildren(...Object.entries(WORDS_OF).map(([key, [word, unit]]) => plot(word, told, told.metrics[key], unit)));
}

function askAgain() {
  const every = SPANS.find(([name]) => name === reach)[2];
  if (opened && !document.hidden && performance.now() - askedAt > every && !$("plots").matches(":hover")) askHistory();
}

// Time, keys

function tick() {
  const silence = performance.now() - heard, isOld = silence > SILENCE_MS;
  $("link").className = `pill ${isOld ? "bad" : "good"}`;
  say($("link"), !heard ? "connecting" : isOld ? `✖ no word for ${span(silence)}` : `● live from ${head.name}`);
  document.body.classList.toggle("old", heard > 0 && isOld);
  askAgain();
}

function step(by) {
  const listed = [...document.querySelectorAll(".row.machine")];
  const at = listed.indexOf(document.activeElement);
  const next = listed[Math.min(listed.length - 1, Math.max(0, at + by))];
  if (next) next.focus();
}

function toggleOnly() {
  isOnly = !isOnly;
  $("only").setAttribute("aria-pressed", isOnly);
  show();
}

const KEYS = { "/": () => $("search").focus(), "?": () => $("help").showModal(), t: toggleOnly, j: () => step(1), ArrowDown: () => step(1), k: () => step(-1), ArrowUp: () => step(-1) };

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && document.activeElement === $("search")) { $("search").value = ""; $("search").blur(); show(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || document.activeElement === $("search") || document.querySelector("dialog[open]")) return;
  const found = KEYS[event.key];
  if (found) { event.preventDefault(); found(); }
});
$("search").addEventListener("input", () => show());
$("only").addEventListener("click", toggleOnly);
$("asks").addEventListener("click", () => $("help").showModal());
$("machine").addEventListener("close", () => { opened = ""; history.replaceState(null, "", location.pathname); });
follow();
