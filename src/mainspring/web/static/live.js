// Keeps a page up to date: the server says that something has changed, and what the page marks as live is fetched again.
// Without script the page can be read as it was when it was loaded.

const SHORTEST = 1000; // milliseconds between two fetches, however much happens
const PATIENCE = 30000; // for an answer, and no more than that for a server that has taken the question and hangs
const PAUSE = 5; // seconds before a server that has not answered, or refused its stream, is asked again
const SCROLLED = ".scroll, pre[tabindex]";
const team = document.body.dataset.team; // what the page shows stays that team's, whatever is chosen in another window
const live = () => document.querySelectorAll("[data-live]");

let wanted = false;
let fetching = false;
let last = 0;
let missed = []; // parts of which there was news while somebody was at work in them
let leave; // the stream

async function refresh() {
  if (fetching || document.hidden) { wanted = true; return; }
  const wait = last + SHORTEST - Date.now();
  if (wait > 0) { wanted = true; setTimeout(again, wait); return; }
  fetching = true;
  wanted = false;
  try {
    const answer = await fetch(location.href, {
      headers: { Accept: "text/html", "Mainspring-Team": team }, redirect: "manual", signal: AbortSignal.timeout(PATIENCE),
    });
    if (answer.ok) replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
    stand(standing(answer));
  } catch {
    stand("away");
  } finally {
    last = Date.now();
    fetching = false;
    if (wanted) again();
  }
}

function again() {
  if (wanted) { wanted = false; refresh(); }
}

// Who is not let in any more is led to the log-in.
function standing(answer) {
  if (answer.ok) return "";
  if (answer.type === "opaqueredirect") return "out";
  return answer.status < 500 ? "refused" : "away";
}

// Says since when the page is not up to date, and why; nothing while it is.
function stand(how) {
  const begins = !isStale();
  const now = new Date();
  for (const one of document.querySelectorAll("[data-standing]")) {
    const time = one.querySelector("time");
    if (time && begins) {
      time.dateTime = now.toISOString();
      time.textContent = now.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    }
    one.hidden = one.dataset.standing !== how;
  }
}

function isStale() {
  return document.querySelector("[data-standing]:not([hidden])") !== null;
}

// Only what has changed is put in place, and nothing in which somebody is at work.
function replace(page) {
  missed = [];
  for (const old of live()) {
    const fresh = page.getElementById(old.id);
    if (!fresh || looks(old) === looks(fresh)) continue;
    if (isUsed(old)) { missed.push(old); continue; }
    const atEnd = old.scrollHeight - old.scrollTop - old.clientHeight < 40;
    const places = [...old.querySelectorAll(SCROLLED)].map((one) => [one.scrollLeft, one.scrollTop, one === document.activeElement]);
    const opened = [...old.querySelectorAll("details")].map((one) => one.open);
    old.replaceChildren(...fresh.childNodes);
    old.querySelectorAll("details").forEach((one, index) => { one.open ||= opened[index] ?? false; });
    if (old.dataset.live === "log" && atEnd) old.scrollTop = old.scrollHeight;
    old.querySelectorAll(SCROLLED).forEach((one, index) => putBack(one, ...places[index] ?? [0, 0, false]));
  }
}

// What somebody has opened is no news.
function looks(part) {
  const copy = part.cloneNode(true);
  for (const one of copy.querySelectorAll("details")) one.open = false;
  return copy.innerHTML;
}

// Somebody is on a link or in a field, has changed one, or has marked words. Who has only scrolled is put back where he was.
function isUsed(part) {
  const at = document.activeElement;
  if (at !== part && part.contains(at) && !at.matches(SCROLLED)) return true;
  const marked = document.getSelection();
  if (marked.type === "Range" && marked.containsNode(part, true)) return true;
  return [...part.querySelectorAll("input, textarea, select")].some(isChanged);
}

function isChanged(field) {
  if (field.matches("select")) return field.value !== (field.querySelector("[selected]") ?? field.options[0])?.value;
  return field.checked !== field.defaultChecked || field.value !== field.defaultValue;
}

function putBack(part, left, top, focused) {
  part.scrollTo(left, top);
  if (focused) part.focus({ preventScroll: true });
}

// A window at which nobody looks needs no stream, and of those that show the same one listens for all: a browser has but
// six connections for a host, and a stream takes one. Who logs in as somebody else is told nothing of what the other sees.
function listen() {
  if (document.hidden || !live().length) return;
  const path = document.querySelector("main [data-follow]")?.dataset.follow ?? "/live";
  const address = `${path}?team=${encodeURIComponent(team)}`;
  if (!navigator.locks) { leave = follow(address, refresh); return; } // as without TLS from another machine
  const name = `${address} ${document.querySelector("input[name=proof]").value}`;
  const others = new BroadcastChannel(name);
  const left = new AbortController();
  others.onmessage = refresh;
  leave = () => { left.abort(); others.close(); };
  // Whoever comes later has heard nothing of what happened since his page was made.
  navigator.locks.query().then(({ held }) => { if (held.some((lock) => lock.name === name)) refresh(); });
  navigator.locks.request(name, { signal: left.signal }, () => new Promise((release) => {
    const stop = follow(address, () => { others.postMessage("news"); refresh(); });
    leave = () => { stop(); others.close(); release(); };
  })).catch(() => {}); // he has left before his turn came
}

// Calls *tell* whenever there may be news, until what it returns is called.
function follow(address, tell) {
  let open = false;
  let stream;
  let pause;
  function begin() {
    stream = new EventSource(address);
    // What happened between the making of the page, or the break, and the first of these events has been told to nobody.
    for (const kind of ["listening", "change", "skipped", "job"]) stream.addEventListener(kind, tell);
    stream.addEventListener("open", () => { open = true; });
    // A stream that broke is opened again by the browser, one that was refused is not. When that fails, the page is asked
    // for, whose answer tells what is wrong.
    stream.addEventListener("error", () => {
      if (!open) tell();
      open = false;
      if (stream.readyState === EventSource.CLOSED) pause = setTimeout(begin, PAUSE * 1000);
    });
  }
  begin();
  return () => { clearTimeout(pause); stream.close(); };
}

document.addEventListener("visibilitychange", () => {
  leave?.();
  leave = undefined;
  listen();
});
document.addEventListener("change", (event) => {
  if (event.target.matches("select[data-submit]")) event.target.form.requestSubmit();
  if (event.target.matches("input[data-all]")) {
    for (const box of document.querySelectorAll(`input[name="${CSS.escape(event.target.dataset.all)}"]`)) box.checked = event.target.checked;
  }
});
listen();
// On a phone the pages are in one line, of which the one that is shown may be beyond the edge.
document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
// What no event tells of, such as new lines of a log, is looked for while it may come; so is a server that was away, and
// what there was no time to show.
let looked = Date.now();
setInterval(() => {
  if (missed.some((part) => !isUsed(part)) && !isStale()) { refresh(); return; }
  const tick = isStale() ? PAUSE : document.querySelector("main [data-tick]")?.dataset.tick;
  if (!tick || Date.now() - looked < 1000 * tick) return;
  looked = Date.now();
  refresh();
}, 1000);
