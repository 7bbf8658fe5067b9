// The keyboard of the live view.

export function listenToLiveKeys(live) {
  const help = document.getElementById("help");
  const showHelp = () => (help.open ? help.close() : help.showModal());
  const focus = (id) => {
    document.getElementById(id).focus();
    document.getElementById(id).select();
  };
  const keys = {
    " ": () => live.pause(),
    "?": showHelp,
    c: () => focus("client"),
    r: () => focus("resource"),
    j: () => live.watches.move(1),
    k: () => live.watches.move(-1),
    n: () => live.timeline.move(1),
    p: () => live.timeline.move(-1),
    v: () => live.timeline.nextProof(),
    "+": () => live.timeline.zoomBy(2),
    "=": () => live.timeline.zoomBy(2),
    "-": () => live.timeline.zoomBy(0.5),
    0: () => live.timeline.showAll(),
    Escape: () => live.watches.select(undefined),
  };
  document.getElementById("keys").addEventListener("click", showHelp);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const { target, key } = event;
    if (help.open && key !== "?") return;
    if (target.matches?.("input:not([type=checkbox])")) {
      if (key === "Escape") target.blur();
      return;
    }
    // Space presses what has the focus.
    if (key === " " && target.matches?.("button, input, .grid")) return;
    const own = keys[key];
    if (!own) return;
    event.preventDefault();
    own();
  });
}
