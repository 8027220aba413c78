"use strict";
// A plot of windows: the mean as a line, from the least to the greatest as a band, with axes and what is under the pointer.

const WIDE = 600, TALL = 120;
const UNITS = { net: "B/s" };

// 1,234,567 with "B/s" is 1.2 MB/s; shares have one digit.
function amount(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit !== "B/s") return `${value < 10 ? Math.round(value * 10) / 10 : Math.round(value)} ${unit}`;
  const step = value < 1e3 ? 0 : Math.min(4, Math.floor(Math.log10(value) / 3)), shown = value / 1e3 ** step;
  return `${shown < 10 && step ? shown.toFixed(1) : Math.round(shown)} ${["", "k", "M", "G", "T"][step]}${unit}`;
}

// The end of the axis: 100 for shares, else the next of 1, 2, 5 and their tens.
function topOf(windows, unit) {
  if (unit === "%") return 100;
  const most = Math.max(1, ...windows.map((each) => each[3])), ten = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].find((each) => each * ten >= most) * ten;
}

// Marks of the axis of time, at round instants of this browser's zone.
function marks(from, to) {
  const steps = [60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, 3600e3, 7200e3, 10800e3, 21600e3, 43200e3, 86400e3, 172800e3, 432000e3, 1209600e3, 2592000e3, 5184000e3];
  const step = steps.find((each) => (to - from) / each <= 6) || steps.at(-1), zone = new Date(from).getTimezoneOffset() * 60e3, found = [];
  for (let at = Math.ceil((from - zone) / step) * step + zone; at <= to; at += step) found.push(at);
  return found;
}

function when(at, long) {
  const date = new Date(at), day = date.toLocaleDateString("en", { day: "numeric", month: "short" });
  return long >= 2 * 86400e3 ? day : date.toLocaleTimeString([], { hour12: false, hour: "2-digit", minute: "2-digit" });
}

// One figure; `told` has from, to, width; `metric` has windows, p95, max.
function plot(word, told, metric, unit) {
  const windows = metric.windows, top = topOf(windows, unit), long = told.to - told.from;
  const x = (at) => WIDE * (at - told.from) / long, y = (value) => TALL - (TALL - 2) * Math.min(1, Math.max(0, value / top)) - 1;
  const spoken = windows.length ? `${word}: now ${amount(windows.at(-1)[1], unit)}, 95 % of the time at most ${amount(metric.p95, unit)}, greatest ${amount(metric.max, unit)}` : `${word}: nothing`;
  const drawn = svg("plot", WIDE, TALL, spoken);
  for (const part of [.25, .5, .75]) shape(drawn, "line", { x1: 0, x2: WIDE, y1: y(part * top), y2: y(part * top) });
  let band = "", path = "", before = -Infinity, back = [];
  const close = () => { if (back.length) band += `${back.reverse().join("")}Z`; back = []; };
  for (const [at, mean, low, high] of windows) {
    const place = Math.max(0, x(at + told.width / 2)).toFixed(1), isNew = at - before > Math.max(2.5 * told.width, 60e3);
    if (isNew) close();
    band += `${isNew ? "M" : "L"}${place} ${y(high).toFixed(1)}`;
    back.push(`L${place} ${y(low).toFixed(1)}`);
    path += `${isNew ? "M" : "L"}${place} ${y(mean).toFixed(1)}${isNew ? "h.5" : ""}`;
    before = at;
  }
  close();
  shape(drawn, "path", { class: "band", d: band });
  shape(drawn, "path", { d: path });
  if (metric.p95 !== null && windows.length) shape(drawn, "line", { class: "p95", x1: 0, x2: WIDE, y1: y(metric.p95), y2: y(metric.p95) });
  const cursor = shape(drawn, "line", { class: "cursor", x1: -9, x2: -9, y1: 0, y2: TALL });
  const isOld = windows.length && told.to - windows.at(-1)[0] > Math.max(3 * told.width, 20e3); // a silent machine has no now
  const calm = windows.length ? `${isOld ? "last" : "now"} ${amount(windows.at(-1)[1], unit)} · p95 ${amount(metric.p95, unit)} · max ${amount(metric.max, unit)}` : "nothing measured";
  const says = el("span", {}, calm), times = el("div", { className: "times", ariaHidden: "true" });
  for (const at of marks(told.from, told.to)) {
    const mark = el("span", {}, when(at, long));
    mark.style.left = `${100 * x(at) / WIDE}%`;
    times.append(mark);
  }
  drawn.addEventListener("pointermove", (event) => {
    const box = drawn.getBoundingClientRect(), at = told.from + long * (event.clientX - box.left) / box.width;
    const near = windows.reduce((best, each) => Math.abs(each[0] + told.width / 2 - at) < Math.abs(best[0] + told.width / 2 - at) ? each : best, windows[0]);
    if (!near) return;
    cursor.setAttribute("x1", x(near[0] + told.width / 2));
    cursor.setAttribute("x2", x(near[0] + told.width / 2));
    say(says, `${long > 86400e3 ? `${when(near[0], long)} ` : ""}${clock(near[0])}: ${amount(near[1], unit)}${near[2] === near[3] ? "" : ` (${amount(near[2], unit)} to ${amount(near[3], unit)})`}`);
  });
  drawn.addEventListener("pointerleave", () => { say(says, calm); cursor.setAttribute("x1", -9); cursor.setAttribute("x2", -9); });
  const axis = el("div", { className: "axis-y", ariaHidden: "true" }, el("span", {}, amount(top, unit)), el("span", {}, amount(top / 2, unit)), el("span", {}, "0"));
  return el("figure", {}, el("figcaption", {}, el("b", {}, word), says), el("div", { className: "drawing" }, axis, drawn, times));
}
