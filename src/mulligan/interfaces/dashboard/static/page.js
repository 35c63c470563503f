// What htmx leaves to a page: open details, times in words, logs that follow their end.
"use strict";

htmx.registerExtension("page", {
  // What a person opened stays open, and a time that is the same keeps its words.
  htmx_before_morph_attr: (at, { attrName }) => !(attrName === "open" && at.matches("details")),
  htmx_before_morph_node: (old, { newNode }) => !(old.tagName === "TIME" && old.dateTime === newNode.dateTime),
});

function words(seconds) {
  const size = Math.abs(seconds);
  const [unit, length] = size < 90 ? ["s", 1] : size < 5400 ? ["min", 60] : size < 129600 ? ["h", 3600] : ["d", 86400];
  return Math.round(size / length) + " " + unit;
}

// How long ago a time was, how long it lasts, or when it comes; the whole time stays as its title.
function tick() {
  for (const time of document.querySelectorAll("time[data-ago], time[data-lasting], time[data-due]")) {
    const seconds = Math.round((Date.now() - Date.parse(time.dateTime)) / 1000);
    const span = words(seconds);
    const past = "due" in time.dataset ? "now" : span + " ago";
    const text = "lasting" in time.dataset ? span : seconds < 0 ? "in " + span : past;
    if (!time.title) time.title = time.textContent;
    if (time.textContent !== text) time.textContent = text;
  }
}

const MOST_CHUNKS = 400;
const isFollowing = (log) => log.scrollHeight - log.scrollTop - log.clientHeight < 40;

function toEnd(log) {
  while (log.childElementCount > MOST_CHUNKS) log.firstElementChild.remove();
  log.scrollTop = log.scrollHeight;
}

addEventListener("htmx:sse:before:message", ({ target }) => {
  if (target.matches(".log")) target.dataset.follow = isFollowing(target);
});
addEventListener("htmx:sse:after:message", ({ target }) => {
  if (target.matches(".log") && target.dataset.follow === "true") toEnd(target);
});

const live = document.getElementById("live");
const say = (text) => ({ target }) => {
  if (target === live && live.textContent !== text) live.textContent = text;
};
addEventListener("htmx:sse:after:connection", say("Live"));
addEventListener("htmx:sse:error", say("Not connected; trying again."));

addEventListener("htmx:after:swap", () => {
  tick();
  document.querySelectorAll(".log.short").forEach(toEnd);
});
setInterval(tick, 5000);
tick();
document.querySelectorAll(".log").forEach(toEnd);
