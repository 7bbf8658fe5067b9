// The script of the report: it draws timelines from the tables, filters, and moves. Without it the page is complete.
import { Table, barred } from "./events.js";
import { filterTests } from "./filter.js";
import { listenToKeys } from "./keys.js";
import { Timeline } from "./timeline.js";

const timelines = new Map();

/** The timeline of an attempt, drawn if it is not yet. */
export function timelineOf(attempt) {
  const figure = attempt.querySelector("figure.timeline");
  if (!figure || !attempt.open) return undefined;
  if (!timelines.has(figure)) {
    const table = new Table(attempt.querySelector("div.events"));
    const timeline = new Timeline(figure, table);
    timeline.show(barred(table.events));
    timelines.set(figure, timeline);
  }
  return timelines.get(figure);
}

/** A fragment without its escapes; one that somebody cut has none. */
function decoded(fragment) {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}

/** Shows what the fragment of the URL names. */
function follow() {
  const target = document.getElementById(decoded(location.hash.slice(1)));
  if (!target) return;
  for (let up = target; up; up = up.parentElement) if (up instanceof HTMLDetailsElement) up.open = true;
  const attempt = target.closest("details.attempt") ?? target.querySelector?.("details.attempt");
  if (attempt && target.matches("article, details")) attempt.open = true;
  about(attempt);
  const timeline = target.matches("tr[data-t]") && timelineOf(attempt);
  const event = timeline && timeline.list.of(target);
  if (event) timeline.choose(event, true);
  target.scrollIntoView({ block: target.matches("tr, .line") ? "center" : "start" });
}

// The line that a contradiction points at is seen without scrolling.
for (const line of document.querySelectorAll("details.source .line.marked:first-of-type, details.source :not(.marked) + .line.marked")) {
  const box = line.closest("pre");
  if (!box.scrollTop) box.scrollTop = line.offsetTop - box.offsetTop - box.clientHeight / 2;
}
for (const attempt of document.querySelectorAll("details.attempt")) {
  attempt.addEventListener("toggle", () => timelineOf(attempt));
  timelineOf(attempt);
}
filterTests();
const about = listenToKeys(timelineOf);
addEventListener("hashchange", follow);
follow();
