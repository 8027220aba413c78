// The board of the hall.
const COLUMNS = 14; // jams of the score sheet that fit

function showTeam(board, side) {
  const team = board.teams[side];
  const root = $(side);
  const part = (name) => root.getElementsByClassName(name)[0];
  say(part("name"), team.name);
  const score = part("score");
  const text = String(team.score);
  if (score.textContent !== text) {
    const isFirst = !score.dataset.shown;
    score.dataset.shown = "yes";
    say(score, text);
    score.className = `score${["", " long", " longer"][Math.min(2, Math.max(0, text.length - 2))]}`;
    if (!isFirst) { void score.offsetWidth; score.classList.add("up"); }
  }
  say(part("plus"), board.shown && team.jam.trips ? `+${team.jam.points}` : "");
  say(part("jammer"), team.jam.jammer ? person(board, side, team.jam.jammer) : "");
  root.classList.toggle("lead", team.jam.lead && !team.jam.lost);
  root.classList.toggle("lost", team.jam.lost);
  part("star").hidden = board.phase !== "jam" && !team.jam.lead;
  const used = 3 - team.timeouts;
  part("timeouts").replaceChildren(...[0, 1, 2].map((i) => el("i", { className: i < used ? "used" : "" })));
  const seated = (board.skaters[side] || []).filter((skater) => skater.box);
  part("box").replaceChildren(
    ...seated.map((skater) => el("li", {}, skater.number || skater.name, el("b", { data: { side, key: skater.number || skater.name } }))),
  );
}

// Names are long, halls are large: what does not fit is set smaller, down to a third.
function fit(node) {
  node.style.fontSize = "";
  node.style.textOverflow = "clip"; // else the text is measured as it is cut
  const style = getComputedStyle(node);
  const room = node.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - 2; // widths are rounded
  const text = document.createRange();
  text.selectNodeContents(node);
  const full = parseFloat(style.fontSize);
  for (let size = full * 0.95; size > full / 3 && text.getBoundingClientRect().width > room; size *= 0.95) node.style.fontSize = `${size}px`;
  node.style.textOverflow = "";
}
const fitAll = () => { for (const node of document.querySelectorAll(".name, .jammer, #phase, #next")) fit(node); };
addEventListener("resize", fitAll);

function showSheet(board) {
  const rows = board.rows.filter((row) => row.begin !== null || row.home.trips || row.away.trips).slice(-COLUMNS);
  const [head, home, away] = $("sheet").rows;
  const empty = () => Array.from({ length: COLUMNS - rows.length }, () => el("td", {}, "\u00a0"));
  const isHere = (row) => board.shown && row.period === board.shown[0] && row.jam === board.shown[1];
  head.replaceChildren(el("th", {}, "jam"), ...rows.map((row) => el("td", { className: isHere(row) ? "here" : "" }, `${row.period}·${row.jam}`)), ...empty());
  for (const [line, side] of [[home, "home"], [away, "away"]]) {
    const cells = rows.map((row) => {
      const lead = row[side].lead ? " led" : "";
      return el("td", { className: `${row[side].points ? "" : "zero"}${lead}${isHere(row) ? " here" : ""}` }, row[side].trips ? String(row[side].points) : "–", row[side].lead ? "★" : "");
    });
    line.replaceChildren(el("th", {}, board.teams[side].name), ...cells, ...empty());
  }
}

function showPeers() {
  const active = (state.peers || []).filter(isActive);
  const others = (state.peers || []).length - active.length;
  const who = active.length ? `connected: ${active.map(peerName).join(", ")}` : "nobody else is connected";
  const waiting = (state.parked || []).length;
  const told = [
    who,
    others ? `${others} not reached` : "",
    waiting ? `${waiting === 1 ? "1 entry waits" : `${waiting} entries wait`} for what was not heard yet` : "",
    state.catching_up ? "catching up" : "",
  ];
  say("peers", told.filter(Boolean).join(" · "));
  const open = (state.conflicts || []).length;
  $("worries").hidden = !open;
  say("worries", open === 1 ? "1 conflict" : `${open} conflicts`);
}

function show() {
  const board = state.board;
  say("title", (board && board.title) || state.session || "");
  showPeers();
  document.body.className = board ? `phase-${board.phase}` : "";
  $("none").hidden = Boolean(board) || state.is_away;
  document.getElementsByTagName("main")[0].hidden = !board;
  if (!board) return;
  document.title = `${board.teams.home.score} : ${board.teams.away.score} · ${state.session}`;
  paint(board);
  for (const side of SIDES) showTeam(board, side);
  say("period", board.phase === "final" ? "final" : `period ${board.period.number}`);
  const next = board.jams.upcoming;
  const caller = board.timeout && board.teams[board.timeout.team];
  say("phase", board.phase === "jam" ? `Jam ${board.shown[1]}` : board.phase === "timeout" && caller ? "Time-out" : phaseName(board));
  const coming = next && board.phase !== "over" ? `next: jam ${next[1]}${next[0] === board.period.number ? "" : ` of period ${next[0]}`}` : "";
  say("next", board.phase === "timeout" && caller ? caller.name : coming);
  $("period-clock").classList.toggle("stands", board.period.clock.zero === null);
  showSheet(board);
  tick(); // clocks take their room first
  fitAll();
}

function tick() {
  showConnection("link", isHeard());
  const board = state && state.board;
  if (!board) return;
  say("period-clock", face(board.period.clock));
  say("phase-clock", face(board.clock));
  for (const shown of document.querySelectorAll(".box b")) {
    const skater = (board.skaters[shown.dataset.side] || []).find((one) => (one.number || one.name) === shown.dataset.key);
    if (skater && skater.box) say(shown, face(skater.box));
  }
}

let isHeard = () => true;
isHeard = follow(show, "/events?view=hall");
setInterval(tick, 100);
