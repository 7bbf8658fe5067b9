// What the keyboards of the report and of the live view share.

/** Keys of a timeline; `timeline` returns the one that they are about. */
export const timelineKeys = (timeline) => ({
  n: () => timeline()?.move(1),
  p: () => timeline()?.move(-1),
  v: () => timeline()?.nextProof(),
  "+": () => timeline()?.zoomBy(2),
  "=": () => timeline()?.zoomBy(2),
  "-": () => timeline()?.zoomBy(0.5),
  0: () => timeline()?.showAll(),
});

/**
 * Calls the functions of these keys, and shows them in the help, also on a page without it. `leave(field)` is called for Escape in
 * a field. `isTaken(event)`: the element with the focus uses the key itself.
 */
export function listen(keys, leave, isTaken = () => false) {
  const help = document.getElementById("help");
  const showHelp = () => (help?.open ? help.close() : help?.showModal());
  const all = { ...keys, "?": showHelp };
  document.getElementById("keys")?.addEventListener("click", showHelp);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const { target, key } = event;
    if (help?.open && key !== "?") return;
    if (target.matches?.("input:not([type=checkbox]), select, textarea")) {
      if (key === "Escape") leave(target);
      return;
    }
    const own = all[key];
    if (!own || isTaken(event)) return;
    event.preventDefault();
    own();
  });
}
