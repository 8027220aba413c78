"use strict";
// What both pages share: the state as it comes, session time, clocks.

const $ = (id) => document.getElementById(id);
const SIDES = ["home", "away"];
const SILENCE_MS = 25000; // the board says every 10 s that it is there

let state = null;
let zeroMs = 0; // where performance.now() stood when session time was 0

function el(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === "data") Object.assign(made.dataset, value);
    else if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function say(id, text) {
  const found = typeof id === "string" ? $(id) : id;
  if (found.textContent !== text) found.textContent = text;
}

const sessionTime = () => (performance.now() - zeroMs) / 1000;

function take(told) {
  state = told;
  if (told.time !== null && told.time !== undefined) zeroMs = performance.now() - (told.time + (told.age || 0)) * 1000;
}

// Clocks: `zero` is the instant at which one shows 0; null: it stands.
function reading(clock) {
  if (!clock) return null;
  if (clock.zero === null) return clock.seconds;
  const left = clock.zero - sessionTime();
  return Math.max(0, clock.counts === "down" ? left : -left);
}

function face(clock) {
  const value = reading(clock);
  if (value === null) return "";
  const whole = clock.counts === "down" ? Math.ceil(value - 0.02) : Math.floor(value);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

const PHASES = {
  before: "Before the start", jam: "Jam", lineup: "Line-up", timeout: "Time-out",
  over: "Period time is up", halftime: "Half-time", final: "Final score",
};

function phaseName(board) {
  if (board.phase === "timeout" && board.timeout && board.teams[board.timeout.team])
    return `Time-out ${board.teams[board.timeout.team].name}`;
  if (board.phase === "timeout") return "Official time-out";
  return PHASES[board.phase] || board.phase;
}

// Colours: a team's own where it names one that a browser knows.
function paint(board) {
  for (const side of SIDES) {
    const colour = board.teams[side].color;
    if (!colour || !CSS.supports("color", colour)) continue;
    const style = document.documentElement.style;
    if (style.getPropertyValue(`--${side}`) === colour) continue;
    style.setProperty(`--${side}`, colour);
    style.setProperty(`--${side}-ink`, isLight(colour) ? "#0a0c12" : "#ffffff");
  }
}

function isLight(colour) {
  const probe = el("span");
  probe.style.color = colour;
  document.body.append(probe);
  const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g).map(Number);
  probe.remove();
  return 0.299 * r + 0.587 * g + 0.114 * b > 140;
}

function person(board, side, key) {
  const found = (board.skaters[side] || []).find((skater) => skater.number === key || skater.name === key);
  return found && found.name && found.number ? `${found.number} ${found.name}` : key;
}

const isActive = (peer) => String(peer.state).toUpperCase() === "ACTIVE";
const peerName = (peer) => peer.name || peer.endpoint || String(peer.uuid).slice(0, 8);
const spanOf = (seconds) => (seconds < 120 ? `${Math.floor(seconds)} s` : `${Math.floor(seconds / 60)} min`);

// Who is connected, in one line (JAM-021).
function connection(isHeard) {
  if (!isHeard) return ["bad", "no word from the board"];
  if (!state || state.is_away) return ["bad", "the node is away"];
  const active = (state.peers || []).filter(isActive);
  if (!active.length) {
    const since = state.alone_since;
    return ["warn", since === null || since === undefined ? "alone" : `alone for ${spanOf(Math.max(0, sessionTime() - since))}`];
  }
  const silent = active.filter((peer) => peer.silent_since);
  if (silent.length === active.length) {
    const longest = Math.max(...silent.map((peer) => sessionTime() - peer.silent_since));
    return ["warn", `nothing heard for ${spanOf(longest)}`];
  }
  return ["good", active.length === 1 ? `with ${peerName(active[0])}` : `with ${active.length} others`];
}

function showConnection(id, isHeard) {
  const [mood, text] = connection(isHeard);
  const pill = $(id);
  if (pill.dataset.mood !== mood) { pill.dataset.mood = mood; pill.className = `pill ${mood}`; }
  say(pill, text);
}

// The stream of states; comes again by itself, and is begun anew when nothing is heard at all.
function follow(show, path) {
  let heardMs = performance.now();
  let isOpen = false;
  let source = null;
  const hear = () => { heardMs = performance.now(); isOpen = true; };
  const open = () => {
    if (source) source.close();
    source = new EventSource(path);
    source.onopen = hear;
    source.addEventListener("still", hear);
    source.onmessage = (event) => { hear(); take(JSON.parse(event.data)); show(); };
    source.onerror = () => { isOpen = false; if (source.readyState === EventSource.CLOSED) setTimeout(open, 1000); };
  };
  setInterval(() => {
    if (performance.now() - heardMs > SILENCE_MS) { isOpen = false; heardMs = performance.now(); open(); }
  }, 1000);
  open();
  return () => isOpen;
}
