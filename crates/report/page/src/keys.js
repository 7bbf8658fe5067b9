// The keyboard: between tests, between events, filter, help.

export function listenToKeys(timelineOf) {
  const help = document.getElementById("help");
  const filter = document.getElementById("filter");
  let current;
  let opened;

  const shown = () =>
    [...document.querySelectorAll("article.test:not([hidden]) details.attempt")].filter((one) => !one.closest("[hidden]"));
  /** The attempt that the keys are about: the one with the focus, the last one, or the first that is open. */
  const attempt = () => {
    const focused = document.activeElement?.closest?.("details.attempt");
    const all = shown();
    return focused ?? (all.includes(current) ? current : all.find((one) => one.open));
  };
  const go = (one) => {
    if (!one) return;
    // What the keys opened they close again: else the page would grow with every step.
    if (opened && opened !== one) opened.open = false;
    if (!one.open) {
      one.open = true;
      opened = one;
    }
    current = one;
    one.querySelector("summary").focus({ preventScroll: true });
    one.closest("article").scrollIntoView({ block: "start" });
    timelineOf(one);
  };
  const step = (by) => {
    const all = shown();
    const at = all.indexOf(attempt());
    go(at < 0 ? all[0] : all[at + by]);
  };
  const timeline = () => {
    const one = attempt() ?? shown()[0];
    if (!one) return undefined;
    if (!one.open) go(one);
    current = one;
    return timelineOf(one);
  };
  const showHelp = () => (help.open ? help.close() : help.showModal());

  const keys = {
    "/": () => {
      filter.focus();
      filter.select();
    },
    "?": showHelp,
    j: () => step(1),
    k: () => step(-1),
    n: () => timeline()?.move(1),
    p: () => timeline()?.move(-1),
    v: () => timeline()?.nextProof(),
    e: () => timeline()?.focusFilter(),
    "+": () => timeline()?.zoomBy(2),
    "=": () => timeline()?.zoomBy(2),
    "-": () => timeline()?.zoomBy(0.5),
    0: () => timeline()?.showAll(),
    m: () => document.getElementById("matrix").scrollIntoView(),
    Escape: () => {
      filter.value = "";
      filter.dispatchEvent(new Event("input"));
    },
  };
  document.getElementById("keys").addEventListener("click", showHelp);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const { target, key } = event;
    if (help.open && key !== "?") return;
    if (target.matches?.("input:not([type=checkbox]), select, textarea")) {
      if (key !== "Escape") return;
      target.value = "";
      target.dispatchEvent(new Event("input"));
      target.blur();
      return;
    }
    const own = keys[key];
    if (!own) return;
    event.preventDefault();
    own();
  });
}
