// The operators' page: what is tapped here becomes an entry of this node, and is said to everybody.
const CODES = {
  B: "back block", H: "high block", L: "low block", E: "elbows", F: "forearms", T: "head", M: "multi-player", O: "out of bounds",
  D: "direction", P: "out of play", X: "cutting", S: "skating out", I: "procedure", N: "insubordination", Z: "delay", G: "misconduct",
};
const POSITIONS = { jammer: "Jammer", pivot: "Pivot", blocker: "Blocker" };
const FLAGS = { lead: ["Lead", "lead"], lost: ["Lost", "lost"], call: ["Called", "called"], starpass: ["Star pass", "starpass"] };
const AGAIN_MS = 1500;

let pinned = null; // the jam that entries go to, where somebody chose one
let mode = "lineup";
const undone = []; // how to take back what was done on this page, newest last
const queue = []; // not yet answered, oldest first
let isSending = false;

// What an operator is.
const stored = (name) => { try { return localStorage.getItem(`weft.${name}`) || ""; } catch { return ""; } };
const store = (name, value) => { try { localStorage.setItem(`weft.${name}`, value); } catch { /* it is asked again */ } };
const given = document.querySelector("meta[name=token]").content;
const told = new URLSearchParams(location.hash.slice(1)); // a link may say who and with which token: /entry#token=…&by=…
for (const name of ["token", "by"]) if (told.get(name)) store(name, told.get(name));
if (told.get("token")) history.replaceState(null, "", location.pathname);
const token = () => given || stored("token");

// Entering: one after the other, each under a key of its own, so that a repetition enters nothing twice.
function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 15) | 64;
  bytes[8] = (bytes[8] & 63) | 128;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

function enter(what, entry, back) {
  queue.push({ what, entry, back, key: uuid() });
  send();
}

async function send() {
  if (isSending || !queue.length) return;
  isSending = true;
  const one = queue[0];
  let answer = null;
  let body = {};
  try {
    answer = await fetch("/ops", {
      method: "POST",
      headers: { "Content-Type": "application/json", "Idempotency-Key": one.key, Authorization: `Bearer ${token()}` },
      body: JSON.stringify({ by: stored("by").slice(0, 64), ...one.entry }),
    });
    body = await answer.json();
  } catch { /* the board is not reached: the same again */ }
  isSending = false;
  if (!answer || answer.status === 503 || answer.status === 429) {
    showUnsent();
    setTimeout(send, AGAIN_MS);
    return;
  }
  if (answer.status === 401) {
    askWho(true);
    showUnsent();
    return;
  }
  queue.shift();
  showUnsent();
  settled(one, answer.status, body);
  send();
}

function settled(one, status, body) {
  if (status !== 201) return toast(`${one.what}: ${body.text || body.error || status}`, "bad");
  if (one.back) { undone.push(one); $("undo").disabled = false; }
  if (body.hidden_by)
    return toast(`${one.what}: a later entry stands above it`, "", "Write above it", () => enter(one.what, { ...one.entry, force: true }, one.back));
  if (body.outcome && body.outcome !== "applied") return toast(`${one.what}: ${outcomeText(body.outcome)}`, "bad");
  return toast(one.what, "good");
}

function outcomeText(outcome) {
  if (outcome === "parked") return "waits for what it refers to";
  return String(outcome).replace("inert:", "without effect: ");
}

function showUnsent() {
  $("unsent").hidden = !queue.length;
  say("unsent", queue.length === 1 ? "1 entry not sent yet" : `${queue.length} entries not sent yet`);
}

let toastTimer = 0;
function toast(text, mood = "", action = "", act = null) {
  const [shown, button] = $("toast").children;
  say(shown, text);
  $("toast").className = mood;
  button.hidden = !action;
  button.textContent = action;
  button.onclick = () => { $("toast").hidden = true; act(); };
  $("toast").hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { $("toast").hidden = true; }, action ? 12000 : 2600);
}

// XML: attributes are escaped, names are ours.
const escaped = (text) => String(text).replace(/[&<>"\t\r\n]/g, (mark) => `&#${mark.charCodeAt(0)};`);
function xml(tag, attributes) {
  const told = Object.entries(attributes).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return `<${tag}${told.map(([name, value]) => ` ${name}="${escaped(value)}"`).join("")}/>`;
}

function addEvent(what, place, tag, attributes) {
  const eid = uuid();
  enter(what, { verb: "add", reference: reference(place), xml: xml(tag, { eid, ...attributes, timestamp: stamp() }) }, removal(eid));
}

const removal = (eid) => ({ verb: "remove", reference: { eid } });
const reference = ([period, jam]) => ({ period, jam });
const stamp = () => sessionTime().toFixed(3);
const setting = (place, attributes) => ({ verb: "set", reference: reference(place), attributes });

// Which jam an entry is for: what is skated, else what was (points, penalties) or what comes (line-up).
function placeFor(kind) {
  if (pinned) return pinned;
  const jams = state.board.jams;
  if (jams.active) return jams.active;
  if (kind === "lineup") return jams.upcoming || jams.completed || [1, 1];
  return jams.completed || jams.upcoming || [1, 1];
}
const jamName = ([period, jam]) => `period ${period} jam ${jam}`;
const rowAt = (place) => state.board.rows.find((row) => row.period === place[0] && row.jam === place[1]);

function beyond(place) { // JAM-006
  const { active, upcoming, completed } = state.board.jams;
  const most = upcoming || (active && [active[0], active[1] + 1]) || completed || [1, 1];
  return place[0] > most[0] || (place[0] === most[0] && place[1] > most[1] + (upcoming ? 1 : 0));
}

function surely(place, act) {
  if (!beyond(place)) return act();
  return ask(`${jamName(place)} is far ahead of the bout. Enter it there?`, [["Yes", "", act], ["No", "", () => { pinned = null; show(); }]]);
}

function ask(text, choices) {
  const dialog = $("ask");
  say(dialog.children[0], text);
  dialog.children[1].replaceChildren(...choices.map(([name, small, act]) =>
    el("button", { onclick: () => { dialog.close(); act(); } }, el("b", {}, name), small ? el("small", {}, small) : null)));
  if (!dialog.open) dialog.showModal();
}
$("ask").addEventListener("click", (event) => { if (event.target === $("ask")) $("ask").close(); });

function askWho(isRefused = false) {
  $("by").value = stored("by");
  $("token").value = "";
  $("token-row").querySelector("p").textContent = isRefused && token() ? "That token was wrong. The board's token" : "The board's token";
  $("token-row").hidden = Boolean(given) && !isRefused;
  if (!$("who").open) $("who").showModal();
}
$("who").addEventListener("close", () => {
  store("by", $("by").value.trim());
  if ($("token").value) store("token", $("token").value.trim());
  showPeople();
  send();
});

// The jam.
$("main").onclick = () => {
  const { jams } = state.board;
  if (jams.active) {
    const row = rowAt(jams.active);
    const duration = Math.max(0, sessionTime() - row.begin).toFixed(1);
    enter(`${jamName(jams.active)} ended`, setting(jams.active, { duration }), setting(jams.active, { duration: "" }));
  } else {
    const place = jams.upcoming || (jams.completed && [jams.completed[0], jams.completed[1] + 1]) || [1, 1];
    const begin = () => {
      endTimeout();
      pinned = null;
      enter(`${jamName(place)} begins`, setting(place, { timestamp: stamp() }), setting(place, { timestamp: "" }));
    };
    if (jams.upcoming) begin();
    else ask("The bout is complete. An overtime jam?", [["Yes", jamName(place), begin], ["No", "", () => {}]]);
  }
};

for (const button of document.querySelectorAll("[data-timeout]")) button.onclick = () => {
  const eid = uuid();
  const team = button.dataset.timeout;
  enter("time-out", { verb: "add", reference: { period: state.board.period.number }, xml: xml("timeout", { eid, team, timestamp: stamp() }) }, removal(eid));
};

function endTimeout() {
  const open = state.board.timeout;
  if (!open || !open.eid) return;
  const duration = Math.max(0, sessionTime() - Number(open.begin)).toFixed(1);
  const set = (value) => ({ verb: "set", reference: { eid: open.eid }, attributes: { duration: value } });
  enter("time-out ended", set(duration), set(""));
}
$("end-timeout").onclick = endTimeout;

$("close-period").onclick = () => {
  const [period, jam] = state.board.jams.completed;
  const row = rowAt([period, jam]);
  const set = (end) => ({ verb: "set", reference: { period }, attributes: { end } });
  enter(`period ${period} closed`, set((row.begin + row.duration - 0.001).toFixed(3)), set("")); // not rounded beyond the jam
};

function step(by) {
  const [period, jam] = placeFor("points");
  const next = jam + by;
  if (next < 1) pinned = period > 1 ? [period - 1, Math.max(1, ...state.board.rows.filter((row) => row.period === period - 1).map((row) => row.jam))] : [1, 1];
  else pinned = [period, next];
  show();
}
$("earlier").onclick = () => step(-1);
$("later").onclick = () => step(1);
$("target").onclick = () => { pinned = null; show(); };
$("undo").onclick = () => {
  const last = undone.pop();
  $("undo").disabled = !undone.length;
  if (last) enter(`taken back: ${last.what}`, last.back, null);
};

// A team.
function makeTeam(side) {
  const root = document.querySelector(`.team[data-side=${side}]`);
  const flags = Object.entries(FLAGS).map(([tag, [name]]) =>
    el("button", { className: tag, data: { tag }, onclick: () => flag(side, tag) }, name));
  const points = [0, 1, 2, 3, 4].map((value) => el("button", { onclick: () => score(side, value) }, value ? `+${value}` : "0"));
  const form = el("form", { className: "adding", onsubmit: (event) => { event.preventDefault(); addSkater(side, form); } },
    el("input", { placeholder: "No.", maxLength: 16, ariaLabel: "number" }), el("input", { placeholder: "skater's name", maxLength: 64, ariaLabel: "name" }), el("button", {}, "Add"));
  root.replaceChildren(el("div", { className: "flags" }, ...flags), el("div", { className: "points" }, ...points),
    el("div", { className: "trips" }), el("div", { className: "skaters" }), form);
}

function flag(side, tag) {
  const place = placeFor("points");
  const row = rowAt(place);
  const found = row && row[side].eids[tag];
  const name = `${FLAGS[tag][0]} ${state.board.teams[side].name}`;
  if (found) enter(`not ${name}`, removal(found), null);
  else surely(place, () => addEvent(name, place, tag, { team: side, person: row ? row[side].jammer : "" }));
}

function score(side, points) {
  const place = placeFor("points");
  const row = rowAt(place);
  surely(place, () => addEvent(`${state.board.teams[side].name} +${points}`, place, "pass", { team: side, person: row ? row[side].jammer : "", points }));
}

function addSkater(side, form) {
  const [number, name] = form.querySelectorAll("input");
  if (!number.value.trim() && !name.value.trim()) return;
  const eid = uuid();
  const told = { eid, number: number.value.trim(), name: name.value.trim() };
  enter(`${told.number} ${told.name} skates`, { verb: "add", reference: { team: side }, xml: xml("person", told) }, removal(eid));
  number.value = name.value = "";
  number.focus();
}

const keyOf = (skater) => skater.number || skater.name;
function tapped(side, skater) {
  const key = keyOf(skater);
  const team = state.board.teams[side].name;
  const place = placeFor(mode);
  if (mode === "penalty") {
    const give = (code) => () => surely(place, () => addEvent(`${team} ${key}: ${CODES[code]}`, place, "penalty", { team: side, person: key, code }));
    return ask(`${team} ${key}: which penalty? (${jamName(place)})`, Object.entries(CODES).map(([code, name]) => [code, name, give(code)]));
  }
  if (mode === "box") {
    const tag = skater.box ? "exitbox" : "enterbox";
    return addEvent(`${team} ${key} ${skater.box ? "leaves the box" : "sits in the box"}`, place, tag, { team: side, person: key });
  }
  const row = rowAt(place);
  const standing = row && row[side].lineup.find((one) => one.person === key);
  if (standing) return enter(`${team} ${key} is not lined up`, removal(standing.eid), null);
  const as = (position) => () => surely(place, () => addEvent(`${team} ${key}: ${position}`, place, "lineup", { team: side, person: key, position }));
  return ask(`${team} ${key} in ${jamName(place)}`, Object.entries(POSITIONS).map(([position, name]) => [name, "", as(position)]));
}

function showTeam(side) {
  const board = state.board;
  const root = document.querySelector(`.team[data-side=${side}]`);
  const [flags, , trips, skaters] = root.children;
  const place = placeFor("points");
  const row = rowAt(place);
  const half = row ? row[side] : null;
  for (const button of flags.children) button.classList.toggle("on", Boolean(half && half[FLAGS[button.dataset.tag][1]]));
  const made = half ? half.passes : [];
  trips.replaceChildren(made.length ? "trips:" : "no trip in this jam yet",
    ...made.map((one) => el("button", { title: "take this trip back", onclick: () => enter(`trip of ${one.points} taken back`, removal(one.eid), null) }, `+${one.points}`)));
  const lineup = (rowAt(placeFor(mode)) || { [side]: { lineup: [] } })[side].lineup;
  skaters.replaceChildren(...(board.skaters[side] || []).map((skater) => {
    const standing = lineup.find((one) => one.person === keyOf(skater));
    const marks = skater.penalties.map((penalty) => penalty.code || "•").join("");
    const classes = [standing ? standing.position || "blocker" : "", skater.out ? "out" : "", skater.box ? "seated" : ""];
    return el("button", { className: classes.join(" "), onclick: () => tapped(side, skater) },
      el("b", {}, keyOf(skater)), el("small", {}, standing ? POSITIONS[standing.position] || "Blocker" : skater.number ? skater.name : ""),
      skater.box ? el("span", { className: "marks", data: { side, key: keyOf(skater) } }, face(skater.box)) : marks || skater.out ? el("span", { className: "marks" }, marks + (skater.out ? ` ${skater.out}` : "")) : null);
  }));
}

// Panels.
function list(id, items, none) {
  $(id).getElementsByClassName("list")[0].replaceChildren(...(items.length ? items : [el("span", { className: "none" }, none)]));
}

const shortened = (text) => String(text).replace(/([0-9a-f]{8})-[0-9a-f-]{27}/g, "$1…");
const shortName = (source) => {
  if (state.node && state.node.uuid === source) return "here";
  const peer = (state.peers || []).find((one) => one.uuid === source);
  return (state.names || {})[source] || (peer ? peerName(peer) : String(source).slice(0, 8));
};

// What can be tapped for each kind; of two equal ones, which is kept.
const DECISIONS = {
  "set-set": [["first"], ["second"]],
  "duplicate-key": [["first", "keep this one"], ["second", "keep this one"], ["seen", "keep both"]],
  single: [["first", "keep this one"], ["second", "keep this one"], ["seen", "keep both"]],
  "lost-edit": [["seen", "it stays removed"]],
};
const KINDS = {
  "set-set": "two people wrote different values", "duplicate-key": "two people made one with the same number",
  single: "there may be only one, and two people made one", "lost-edit": "one removed what another was editing",
};

function showConflicts() {
  const open = state.conflicts || [];
  $("conflicts").classList.toggle("open", open.length > 0);
  list("conflicts", open.map((conflict) => {
    const choice = ([side, name]) => {
      const [source, sequence, value] = conflict[side] || [];
      const what = (conflict.shown || [])[side === "second" ? 1 : 0];
      const who = source ? `${what ? `${what} · ` : ""}${shortName(source)} · entry ${sequence}` : "";
      return el("button", { onclick: () => enter("conflict resolved", { verb: "resolve", conflict: conflict.id, side }, null) },
        el("b", {}, name || value || "(empty)"), who ? el("br") : null, el("small", {}, who));
    };
    return el("div", { className: "item" }, `${conflict.attr} of ${conflict.where || shortened(conflict.slot)} `, el("small", {}, KINDS[conflict.kind] || conflict.kind),
      el("div", { className: "sides" }, ...(DECISIONS[conflict.kind] || DECISIONS["set-set"]).map(choice)));
  }), "none");
}

function showPeople() {
  if (!state) return;
  const peers = (state.peers || []).map((peer) => el("div", { className: `peer ${isActive(peer) ? "active" : ""}` }, peerName(peer), el("small", { className: "none" }, peer.silent_since ? "nothing heard" : String(peer.state).toLowerCase())));
  const me = el("button", { onclick: () => askWho() }, `entering as ${stored("by") || "…"}`);
  list("people", [...(peers.length ? peers : [el("span", { className: "none" }, "nobody else is connected")]), me], "");
}

function showRecent() {
  const rows = [...(state.recent || [])].reverse().map((row) => {
    const isInert = row.outcome !== "applied";
    const eids = row.verb === "add" && !isInert ? addedIn(row.body) : [];
    const text = `${row.verb} ${shortened(row.reference)}`;
    const more = `${row.by || shortName(row.source)}${isInert ? ` · ${outcomeText(row.outcome)}` : ""}`;
    return el("div", { className: "item" }, el("span", { className: isInert ? "inert" : "" }, text, " ", el("small", {}, summary(row.body)), el("br"), el("small", {}, more)),
      eids.length ? el("button", { onclick: () => eids.forEach((eid) => enter("taken back", removal(eid), null)) }, "take back") : null);
  });
  list("recent", rows, "nothing yet");
}

function parsed(body) {
  const root = new DOMParser().parseFromString(body, "text/xml").documentElement;
  return root && !root.getElementsByTagName("parsererror").length ? root : null;
}
const addedIn = (body) => { const root = parsed(body); return root ? [...root.children].map((child) => child.getAttribute("eid")).filter(Boolean) : []; };
function summary(body) {
  const root = parsed(body);
  if (!root) return "";
  const own = [...root.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data.trim()).join("");
  return [...root.children].map((child) => {
    if (child.tagName === "attribute") {
      const name = child.getAttribute("name");
      return name ? `${name} = ${child.textContent}` : `${child.textContent} = ${own}`;
    }
    const told = [...child.attributes].filter((one) => !["eid", "timestamp"].includes(one.name)).map((one) => `${one.name} ${one.value}`);
    return [child.tagName, ...told, child.textContent].filter(Boolean).join(" ");
  }).join("; ") || own;
}

function showChat() {
  list("chat", (state.chats || []).map((one) => el("div", {}, el("small", { className: "none" }, `${shortName(one.peer)}: `), one.text)), "nothing said yet");
}
document.querySelector("#chat form").onsubmit = (event) => {
  event.preventDefault();
  const input = event.target.querySelector("input");
  if (input.value.trim()) enter("said", { verb: "chat", text: `${stored("by") ? `${stored("by")}: ` : ""}${input.value.trim()}` }, null);
  input.value = "";
};

// All of it.
function show() {
  if (!state) return;
  showConflicts();
  list("parked", (state.parked || []).map((one) => el("div", {}, `${one.verb} ${shortened(one.reference)} `, el("small", { className: "none" }, shortName(one.source || "")))), "none");
  showPeople();
  showRecent();
  showChat();
  if (state.board) showBoard(state.board);
  tick();
}

function showBoard(board) {
  paint(board);
  document.title = `${board.teams.home.score} : ${board.teams.away.score} · entry`;
  for (const side of SIDES) {
    const tally = document.querySelector(`.tally[data-side=${side}]`);
    say(tally.children[0], String(board.teams[side].score));
    say(tally.children[1], board.teams[side].name);
    for (const name of document.getElementsByClassName(`${side}-name`)) say(name, board.teams[side].name);
    showTeam(side);
  }
  const { active, upcoming, completed } = board.jams;
  const main = $("main");
  main.classList.toggle("ends", Boolean(active));
  say(main, active ? `End jam ${active[1]}` : upcoming ? `Start jam ${upcoming[1]}${upcoming[0] !== (completed || [1])[0] ? ` of period ${upcoming[0]}` : ""}` : "Overtime jam");
  document.querySelector(".jam .timeouts").hidden = board.phase === "timeout" || board.phase === "jam" || board.phase === "final";
  $("end-timeout").hidden = board.phase !== "timeout";
  $("close-period").hidden = board.phase !== "over";
  say("close-period", `Close period ${board.period.number}`);
  const place = placeFor("points");
  $("target").parentElement.classList.toggle("pinned", Boolean(pinned));
  say("target", `P${place[0]} · Jam ${place[1]}\n${pinned ? "chosen; tap: follow" : active ? "being skated" : completed ? "just completed" : "upcoming"}`);
  for (const button of $("modes").children) button.classList.toggle("on", button.dataset.mode === mode);
  say("where", `P${board.period.number}${board.shown ? ` J${board.shown[1]}` : ""}`);
}

for (const button of $("modes").children) button.onclick = () => { mode = button.dataset.mode; show(); };

function tick() {
  showConnection("link", isHeard());
  const board = state && state.board;
  if (!board) return;
  say("period-clock", face(board.period.clock));
  say("phase", `${face(board.clock)} ${phaseName(board)}`.trim());
  for (const shown of document.querySelectorAll(".marks[data-key]")) {
    const skater = (board.skaters[shown.dataset.side] || []).find((one) => keyOf(one) === shown.dataset.key);
    if (skater && skater.box) say(shown, face(skater.box));
  }
}

SIDES.forEach(makeTeam);
let isHeard = () => true;
isHeard = follow(show, "/events");
setInterval(tick, 100);
if (!stored("by") || !token()) askWho();
