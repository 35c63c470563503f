// Keeps the page as it would be after a reload. Without this script, a reload does the same.
"use strict";

const main = document.getElementById("main");
const said = document.getElementById("live");
const known = new Map();
let wanted = false, busy = false;

const parts = (page) => new Map([...page.querySelectorAll("[data-part]")].map((e) => [e.id, e]));
for (const [id, part] of parts(document)) known.set(id, part.outerHTML);

function say(text) {
  if (said.textContent !== text) said.textContent = text;
}

// What a person opened stays open, and what has the focus keeps it.
function exchange(old, fresh) {
  const focus = old.contains(document.activeElement) ? document.activeElement : null;
  const href = focus && focus.getAttribute("href"), id = focus && focus.id;
  for (const each of old.querySelectorAll("details[id]")) {
    const same = fresh.querySelector("#" + CSS.escape(each.id));
    if (same) same.open = each.open;
  }
  old.replaceWith(fresh);
  fresh.classList.add("changed");
  const again = focus && ((id && document.getElementById(id)) ||
    (href && [...fresh.querySelectorAll("a")].find((a) => a.getAttribute("href") === href)));
  if (again) again.focus({ preventScroll: true });
}

function show(page) {
  const now = parts(document), next = parts(page);
  if ([...now.keys()].join() !== [...next.keys()].join()) {
    main.replaceChildren(...page.getElementById("main").children);
  }
  for (const [id, fresh] of next) {
    const html = fresh.outerHTML;
    const old = document.getElementById(id);
    if (known.get(id) !== html && old && old !== fresh) exchange(old, fresh);
    known.set(id, html);
  }
  document.title = page.title;
  ago();
}

async function refresh() {
  if (busy) return;
  busy = true;
  while (wanted) {
    wanted = false;
    try {
      const answer = await fetch(location.href, { redirect: "error" });
      if (answer.ok) show(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch {
      say("Not connected; trying again.");
    }
    await new Promise((done) => setTimeout(done, 1000));
  }
  busy = false;
}

function want() {
  wanted = true;
  refresh();
}

// How long ago a time was; the whole time stays as its title.
function ago() {
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const at = Date.parse(time.dateTime), seconds = Math.round((Date.now() - at) / 1000);
    const size = Math.abs(seconds);
    const [unit, length] = size < 90 ? ["s", 1] : size < 5400 ? ["min", 60] : size < 129600 ? ["h", 3600] : ["d", 86400];
    time.title = time.title || time.textContent;
    const span = Math.round(size / length) + " " + unit;
    const text = seconds < 0 ? "in " + span : span + " ago";
    if (time.textContent !== text) time.textContent = text;
  }
}

const source = new EventSource("/api/events?after=" + main.dataset.seq);
source.onopen = () => { say("Live"); want(); };
source.onerror = () => say("Not connected; trying again.");
source.addEventListener("recorded", (event) => {
  const issue = main.dataset.issue;
  if (!issue || JSON.parse(event.data).issue === issue) want();
});
setInterval(ago, 5000);
setInterval(() => { if (!document.hidden) want(); }, 30000);
ago();
