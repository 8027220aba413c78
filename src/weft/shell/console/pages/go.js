"use strict";
// From page to page: links in the head, and `g` with the letter that is underlined.

const PLACES = [["machines", "m", ""], ["configuration", "c"], ["alerts", "a"], ["catalog", "g"], ["store", "s"], ["documents", "d"], ["chains", "h"], ["lake", "l"], ["node", "n"]];
let isGoing = false;

const placeOf = ([name, , address]) => address === undefined ? `page.html#${name}` : "./";
const here = () => location.pathname.endsWith("page.html") ? location.hash.slice(1).split("?")[0] : "machines";

// What of a page is looked at stands behind its name: #documents?session=friday&until=…
const wantedHere = () => new URLSearchParams(location.hash.split("?")[1] || "");
function noteHere(wanted) {
  const said = wanted.toString();
  history.replaceState(null, "", `#${here()}${said ? `?${said}` : ""}`);
}

function showPlaces() {
  $("pages").replaceChildren(...PLACES.map((place) => {
    const [name, letter] = place, at = name.indexOf(letter);
    const link = el("a", { href: placeOf(place) }, name.slice(0, at), el("u", {}, letter), name.slice(at + 1));
    if (here() === name) link.setAttribute("aria-current", "page");
    return link;
  }));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || ["INPUT", "TEXTAREA"].includes(document.activeElement.tagName) || document.querySelector("dialog[open]")) return;
  const place = isGoing && PLACES.find(([, letter]) => letter === event.key);
  isGoing = event.key === "g" && !isGoing;
  if (place) { event.preventDefault(); event.stopImmediatePropagation(); location.href = placeOf(place); }
});
addEventListener("hashchange", showPlaces);
showPlaces();
