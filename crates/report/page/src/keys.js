// The keyboard of the report: between tests, between events, filter, help.
import { listen, timelineKeys } from "./keyboard.js";

/**
 * Listens, also on a page that has neither filter nor help. Returns a function that makes an attempt the one that the keys
 * are about.
 */
export function listenToKeys(timelineOf) {
  const filter = document.getElementById("filter");
  let current;
  let opened;

  const shown = () =>
    [...document.querySelectorAll("article.test:not([hidden]) details.attempt")].filter((one) => !one.closest("[hidden]"));
  /** The attempt that the keys are about: the last one that was pointed at, focused or gone to, or the first that is open. */
  const attempt = () => {
    const all = shown();
    return all.includes(current) ? current : all.find((one) => one.open);
  };
  const about = (one) => {
    current = one ?? current;
  };
  for (const kind of ["focusin", "pointerdown"]) {
    addEventListener(kind, ({ target }) => about(target.closest?.("details.attempt")));
  }
  const go = (one) => {
    if (!one) return;
    // What the keys opened they close again: else the page would grow with every step.
    if (opened && opened !== one) opened.open = false;
    if (!one.open) {
      one.open = true;
      opened = one;
    }
    about(one);
    one.querySelector("summary").focus({ preventScroll: true });
    one.closest("article").scrollIntoView({ block: "start" });
    timelineOf(one);
  };
  const step = (by) => {
    const all = shown();
    const at = all.indexOf(current);
    go(at < 0 ? all[0] : all[at + by]);
  };
  const timeline = () => {
    const one = attempt() ?? shown()[0];
    if (!one) return undefined;
    if (!one.open) go(one);
    about(one);
    return timelineOf(one);
  };

  const keys = {
    ...timelineKeys(timeline),
    "/": () => {
      filter?.focus();
      filter?.select();
    },
    j: () => step(1),
    k: () => step(-1),
    e: () => timeline()?.focusFilter(),
    m: () => document.getElementById("matrix")?.scrollIntoView(),
    Escape: () => {
      if (!filter) return;
      filter.value = "";
      filter.dispatchEvent(new Event("input"));
    },
  };
  listen(keys, (field) => {
    field.value = "";
    field.dispatchEvent(new Event("input"));
    field.blur();
  });
  return about;
}
