// The table of open watches: those of accused clients first, then those that are stalled or behind, as the server sorts them.
import { VirtualTable } from "./virtual.js";
import { text } from "./words.js";

/** Milliseconds by which a watch may be behind in normal operation. */
const NORMAL_LAG_MS = 1000;
const SIGNS = { waiting: "\u25cc waiting", open: "\u25cf open", stalled: "\u25a0 stalled", behind: "\u25b2 behind" };

export class Watches {
  /** `onSelect` is called when another watch is selected. */
  constructor(onSelect) {
    Object.assign(this, { onSelect, items: [], accused: new Set(), matched: 0, open: 0 });
    this.table = new VirtualTable(document.querySelector("#watches .grid"), 8, (row, watch) => this.fill(row, watch));
    document.querySelector("#watch-table").addEventListener("click", ({ target }) => {
      const stream = target.closest("tr")?.dataset.stream;
      if (stream) this.select(this.selected === Number(stream) ? undefined : Number(stream));
    });
  }

  take({ watches, matched, open, clients, resources }) {
    const isAccused = ({ client }) => this.accused.has(client);
    const sorted = [...watches.filter(isAccused), ...watches.filter((watch) => !isAccused(watch))];
    Object.assign(this, { items: sorted, matched, open });
    if (!watches.some(({ stream }) => stream === this.selected)) this.selected = undefined;
    for (const [id, names] of Object.entries({ clients, resources })) {
      const key = names.join("\n");
      const list = document.getElementById(id);
      if (list.dataset.key === key) continue;
      list.dataset.key = key;
      list.replaceChildren(...names.map((name) => Object.assign(document.createElement("option"), { value: name })));
    }
  }

  draw() {
    const { items, matched } = this;
    document.getElementById("no-watches").hidden = items.length > 0;
    document.querySelector("#watches .grid").hidden = !items.length;
    const rest = matched > items.length ? `the first ${items.length} of ${matched}` : "";
    text(document.getElementById("watches-note"), rest);
    this.table.show(items);
  }

  select(stream) {
    this.selected = stream;
    this.table.draw();
    this.onSelect();
  }

  /** Selects the next one, or the one before. */
  move(by) {
    const at = this.items.findIndex(({ stream }) => stream === this.selected);
    const nth = at < 0 ? (by > 0 ? 0 : this.items.length - 1) : at + by;
    if (!this.items[nth]) return;
    this.table.reveal(nth);
    this.select(this.items[nth].stream);
  }

  fill(row, watch) {
    const isLate = watch.behindMs > NORMAL_LAG_MS;
    const state = watch.state === "open" && isLate ? "behind" : watch.state;
    const isSelected = watch.stream === this.selected;
    const kinds = [state, this.accused.has(watch.client) && "accused", isSelected && "selected"].filter(Boolean).join(" ");
    if (row.className !== kinds) row.className = kinds;
    row.dataset.stream = watch.stream;
    const [sign, client, resource, version, behind, rate, bookmark, open] = row.cells;
    text(sign, SIGNS[state]);
    const button = client.firstElementChild ?? client.appendChild(document.createElement("button"));
    button.type = "button";
    button.ariaPressed = String(isSelected);
    button.title = `Watch #${watch.stream} on connection ${watch.connection}`;
    text(button, watch.client || "(no name)");
    text(resource, watch.namespace ? `${watch.resource} in ${watch.namespace}` : watch.resource);
    text(version, watch.resourceVersion || "\u2013");
    text(behind, this.behind(watch));
    behind.title = watch.behind === undefined ? "Not known: the watch has a selector, or several groups have this resource" : "";
    text(rate, watch.eventsPerSecond.toLocaleString("en"));
    text(bookmark, age(watch.lastBookmarkMs));
    text(open, age(watch.openMs));
    for (const cell of [version, behind, rate, bookmark, open]) cell.classList.add("number");
  }

  behind({ behind, behindMs }) {
    if (behind === undefined) return "?";
    if (!behind) return "0";
    const many = behind > 100 ? "over 100" : behind;
    return `${many} \u00b7 ${age(behindMs)}`;
  }
}

/** `350 ms`, `12 s`, `5 min`, `3 h`. */
function age(ms) {
  if (ms === undefined) return "\u2013";
  if (ms < 1000) return `${ms} ms`;
  if (ms < 120_000) return `${Math.floor(ms / 1000)} s`;
  if (ms < 7_200_000) return `${Math.floor(ms / 60_000)} min`;
  return `${Math.floor(ms / 3_600_000)} h`;
}
