// The script of the report: it draws timelines from the tables, filters, and moves. Without it the page is complete.
import { filterTests } from "./filter.js";
import { listenToKeys } from "./keys.js";
import { Timeline } from "./timeline.js";

const timelines = new Map();

/** The timeline of an attempt, drawn if it is not yet. */
export function timelineOf(attempt) {
  const figure = attempt.querySelector("figure.timeline");
  if (!figure || !attempt.open) return undefined;
  if (!timelines.has(figure)) timelines.set(figure, new Timeline(figure, attempt));
  return timelines.get(figure);
}

/** Shows what the fragment of the URL names. */
function follow() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let up = target; up; up = up.parentElement) if (up instanceof HTMLDetailsElement) up.open = true;
  const attempt = target.closest("details.attempt") ?? target.querySelector?.("details.attempt");
  if (attempt && target.matches("article, details")) attempt.open = true;
  if (target.matches("tr[data-t]")) timelineOf(attempt)?.selectRow(target);
  target.scrollIntoView({ block: target.matches("tr, .line") ? "center" : "start" });
}

for (const attempt of document.querySelectorAll("details.attempt")) {
  attempt.addEventListener("toggle", () => timelineOf(attempt));
  timelineOf(attempt);
}
filterTests();
listenToKeys(timelineOf);
addEventListener("hashchange", follow);
follow();
