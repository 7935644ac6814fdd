// Keeps a page up to date: the server says that something has changed, and what the page marks as live is fetched again.
// Without script the page can be read as it was when it was loaded.

const SHORTEST = 1000; // milliseconds between two fetches, however much happens
const live = () => document.querySelectorAll("[data-live]");

let wanted = false;
let fetching = false;
let last = 0;

async function refresh() {
  if (fetching || document.hidden) { wanted = true; return; }
  const wait = last + SHORTEST - Date.now();
  if (wait > 0) { wanted = true; setTimeout(again, wait); return; }
  fetching = true;
  wanted = false;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "error" });
    if (answer.ok) replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch {
    // The server is away; the stream says when it is back.
  } finally {
    last = Date.now();
    fetching = false;
    if (wanted) again();
  }
}

function again() {
  if (wanted) { wanted = false; refresh(); }
}

// Only what has changed is put in place, and nothing in which somebody is at work.
function replace(page) {
  for (const old of live()) {
    const fresh = page.getElementById(old.id);
    if (!fresh || old.contains(document.activeElement) && document.activeElement !== document.body) continue;
    if (old.querySelector("input:checked")) continue;
    if (old.innerHTML === fresh.innerHTML) continue;
    const atEnd = old.scrollHeight - old.scrollTop - old.clientHeight < 40;
    old.replaceChildren(...fresh.childNodes);
    if (old.dataset.live === "log" && atEnd) old.scrollTop = old.scrollHeight;
  }
}

function listen() {
  const address = document.querySelector("main [data-follow]")?.dataset.follow ?? "/live";
  const stream = new EventSource(address);
  for (const kind of ["change", "skipped", "job"]) stream.addEventListener(kind, refresh);
  stream.addEventListener("open", () => { if (last) refresh(); });
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) again(); });
document.addEventListener("change", (event) => {
  if (event.target.matches("select[data-submit]")) event.target.form.requestSubmit();
  if (event.target.matches("input[data-all]")) {
    for (const box of document.querySelectorAll(`input[name="${CSS.escape(event.target.dataset.all)}"]`)) box.checked = event.target.checked;
  }
});
if (live().length) listen();
// What no event tells of, such as new lines of a log, is looked for while it may come.
const tick = document.querySelector("main [data-tick]");
if (tick) setInterval(() => { if (document.querySelector("main [data-tick]")) refresh(); }, 1000 * tick.dataset.tick);
