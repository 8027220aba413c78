"use strict";
// The configuration as it was: a slider over its writes, the differences to now, and the way back.

let wroteText = "", outcome = "";

const before = (value) => value === "" ? "absent" : value;

// What is different between just after write number `then` and now, by key, from writes that are newest first.
function differences(writes, then) {
  const found = new Map();
  for (const [number, , , key, was, is] of writes) {
    if (number <= then) break;
    found.set(key, { key, was, is: found.has(key) ? found.get(key).is : is });
  }
  return [...found.values()].filter((each) => each.was !== each.is).sort((a, b) => a.key.localeCompare(b.key));
}

function showWrites(told) {
  const table = told.tables.find(([title]) => title === "Writes"), text = JSON.stringify(table || "");
  if (text === wroteText) return;
  wroteText = text;
  $("extra").replaceChildren();
  if (!table || table[2].length < 2) return;
  const writes = table[2], numbers = writes.map(([number]) => number);
  const slider = el("input", { type: "range", id: "then", min: 1, max: numbers.length - 1, value: 1, ariaLabel: "How many writes ago" });
  const says = el("p", { role: "status" }), list = el("ul", { className: "diff" }), back = el("button", { type: "button" }), note = el("p", { className: "note", role: "status" }, outcome);
  const show = () => {
    const number = numbers[slider.value], [, at, by] = writes[slider.value], found = differences(writes, number);
    say(says, `After write ${number} (${at} UTC${by ? `, ${by}` : ""}): ${found.length} ${found.length === 1 ? "key was" : "keys were"} otherwise than now`);
    slider.setAttribute("aria-valuetext", `write ${number}`);
    list.replaceChildren(...found.map(({ key, was, is }) => el("li", {}, el("b", {}, key), el("del", {}, `− ${before(was)}`), el("ins", {}, `+ ${before(is)}`))));
    say(back, `Make it so again: roll back to ${number}`);
    back.disabled = !found.length;
  };
  slider.addEventListener("input", show);
  back.addEventListener("click", () => confirmed(numbers[slider.value], list.children.length, note));
  $("extra").append(el("section", {}, el("h2", {}, "As it was"), el("label", { className: "slider" }, "now", slider, `${numbers.length - 1} writes ago`), says, list, back, note));
  show();
}

function confirmed(number, count, note) {
  const why = el("input", { type: "text", maxLength: 40, placeholder: "why (stands beside the change)", ariaLabel: "why" });
  const go = el("button", { type: "submit" }, `Change ${count} ${count === 1 ? "key" : "keys"} on all machines`), no = el("button", { type: "button" }, "No");
  const form = el("form", {}, why, go, no), asked = el("dialog", { ariaLabel: "Roll back" }, el("h2", {}, `Roll back to ${number}?`), form);
  no.addEventListener("click", () => asked.close());
  asked.addEventListener("close", () => asked.remove());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true;
    const by = `${who || "console"}${why.value ? `: ${why.value}` : ""}`, told = await post("/order", { order: "rollback", number, subtree: "", who: by.slice(0, 64) });
    outcome = told.error ? `✖ ${told.error}${told.mend ? ` → ${told.mend}` : ""}` : `✔ ${told.count} ${told.count === 1 ? "key" : "keys"} changed; it is write ${told.number}${(told.dead || []).map((alert) => ` · ✖ can never fire now: ${alert}`).join("")}`;
    say(document.querySelector("#extra .note") || note, outcome);
    asked.close();
  });
  document.body.append(asked);
  asked.showModal();
}
