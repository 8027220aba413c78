"use strict";
// Who may change something from here: a token of `weft console login`, kept as long as this tab is open.

const LOGIN = "weft-login";
let who = "";

if (location.hash.startsWith("#login=")) {
  sessionStorage.setItem(LOGIN, location.hash.slice("#login=".length));
  history.replaceState(null, "", location.pathname);
}

const bearer = () => sessionStorage.getItem(LOGIN) ? { authorization: `Bearer ${sessionStorage.getItem(LOGIN)}` } : {};

// Say something to the node; what it answers, or why it does not.
async function post(path, said) {
  try {
    const answer = await fetch(path, { method: "POST", headers: { "content-type": "application/json", ...bearer() }, body: JSON.stringify(said) });
    const told = await answer.json();
    if (answer.status === 401 || answer.status === 403) return { ...told, error: "this needs a login", mend: "weft console login, on the node's machine; then open the address that it prints" };
    return answer.ok ? told : { ...told, error: told.text || "refused", mend: told.mend || "" };
  } catch { return { error: "the node does not answer", mend: "" }; }
}

async function showWho() {
  if (!sessionStorage.getItem(LOGIN)) return;
  const answer = await fetch("me", { headers: bearer() }).then((found) => found.json()).catch(() => ({}));
  who = answer.who || "";
  if (!who) sessionStorage.removeItem(LOGIN);
  say($("who"), who ? `as ${who}` : "login is over");
}

showWho();
