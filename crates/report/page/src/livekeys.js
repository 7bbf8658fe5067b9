// The keyboard of the live view.
import { listen, timelineKeys } from "./keyboard.js";

export function listenToLiveKeys(live) {
  const focus = (id) => {
    document.getElementById(id).focus();
    document.getElementById(id).select();
  };
  const keys = {
    ...timelineKeys(() => live.timeline),
    " ": () => live.pause(),
    c: () => focus("client"),
    r: () => focus("resource"),
    j: () => live.watches.move(1),
    k: () => live.watches.move(-1),
    Escape: () => live.watches.select(undefined),
  };
  // Space presses what has the focus.
  const isTaken = ({ key, target }) => key === " " && target.matches?.("button, input, .grid");
  listen(keys, (field) => field.blur(), isTaken);
}
