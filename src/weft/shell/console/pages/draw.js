"use strict";
// What is drawn, and words for numbers. Nothing here knows the state.

const $ = (id) => document.getElementById(id);
const POINTS = 120, POINT_MS = 5000, CELLS = 60, CELL_MS = 10000;

function el(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === "data") Object.assign(made.dataset, value);
    else if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function svg(kind, width, height, label) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  made.setAttribute("class", kind);
  made.setAttribute("viewBox", `0 0 ${width} ${height}`);
  made.setAttribute("preserveAspectRatio", "none");
  made.setAttribute("role", "img");
  made.setAttribute("aria-label", label);
  return made;
}

function shape(parent, tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  parent.append(made);
  return made;
}

function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// A line through points of five seconds, 0 to 100 %; the pen is lifted where more than a minute is missing.
function line(points, newest, height) {
  let path = "", before = -Infinity;
  for (let at = 1; at < points.length; at += 1) {
    const value = points[at], slot = points[0] + at - 1, x = POINTS - 1 - (newest - slot);
    if (value === null || x < 0) continue;
    const y = (height - 1 - (height - 2) * Math.min(100, Math.max(0, value)) / 100).toFixed(1);
    path += `${slot - before > 12 ? "M" : "L"}${x} ${y}`;
    if (slot - before > 12) path += "h.5";
    before = slot;
  }
  return path;
}

// Pieces of one kind of a strip. Kinds differ in height as well as in colour.
const KINDS = { o: ["whole", 4, 14], "-": ["nothing", 10, 2], x: ["lost", 0, 22] };

function pieces(strip, kind) {
  const [, top, height] = KINDS[kind];
  let path = "";
  for (let at = 0; at < strip.length; at += 1) if (strip[at] === kind) path += `M${at + .08} ${top}h.84v${height}h-.84z`;
  return path;
}

function span(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

const many = (number) => number.toLocaleString("en");
const moment = (at) => new Date(at).toLocaleString("sv");  // 2026-01-31 12:00:00, by the browser's zone
const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour12: false });
const SIGNS = ["✔", "◆", "▲", "✖"], WORDS = ["well", "worth a look", "worse", "trouble"];
