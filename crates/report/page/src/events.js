// Events in order, and the bars of requests and connections: read from a table of the report, which holds them once, or given.

/** The list of a timeline that is a table of the report. */
export class Table {
  constructor(region) {
    this.region = region;
    const rows = [...region.querySelector("table").tBodies[0].rows].filter((row) => row.dataset.t !== undefined);
    this.events = rows.map(read);
  }

  sift(fits) {
    for (const event of this.events) event.row.hidden = !fits(event);
  }

  of(row) {
    return this.events.find((event) => event.row === row);
  }

  sentences({ flags }) {
    const sentence = ({ href }) => document.getElementById(href.slice(1))?.querySelector(".sentence")?.textContent ?? "";
    return flags.map((flag) => `${flag.text}: ${sentence(flag)}`);
  }

  choose({ row }, isLinked) {
    this.selected?.classList.remove("selected");
    this.selected = row;
    row.classList.add("selected");
    if (isLinked) return;
    history.replaceState(null, "", `#${row.id}`);
    // The table scrolls, the page does not.
    this.region.scrollTo({ top: row.offsetTop - this.region.clientHeight / 2 });
  }
}

function read(row, index) {
  const { t, lane, kind, stream, conn, label } = row.dataset;
  const flags = [...row.querySelectorAll("a.flag")];
  return {
    index, key: index, row, lane, kind, stream, conn, label,
    ms: Number(t),
    text: row.querySelector(`td.${lane}`).firstChild?.textContent ?? "",
    flags: flags.map((flag) => ({ text: flag.textContent, href: flag.getAttribute("href") })),
    scripted: row.classList.contains("scripted"),
    proof: row.classList.contains("proof"),
  };
}

/**
 * Events with their bars. `named` has labels of requests that began before the first of them.
 */
export function barred(events, named = new Map()) {
  return { events, requests: requests(events, named), connections: connections(events) };
}

function requests(events, named) {
  const open = new Map();
  const bars = [];
  for (const event of events) {
    if (event.lane !== "wire" || event.stream === undefined) continue;
    let bar = open.get(event.stream);
    if (!bar) {
      const isFirst = event.kind === "request";
      const label = isFirst ? event.label : (named.get(event.stream) ?? event.label);
      const from = isFirst || !named.has(event.stream) ? event.index : 0;
      bar = { key: event.stream, from, to: undefined, label, events: [], verb: label.split(" ")[0].toLowerCase() };
      open.set(event.stream, bar);
      bars.push(bar);
    }
    bar.events.push(event);
    if (event.kind === "end") bar.to = event.index;
  }
  for (const bar of bars) {
    bar.isOpen = bar.to === undefined;
    bar.to ??= events.length - 1;
  }
  return bars;
}

function connections(events) {
  const bars = new Map();
  for (const event of events) {
    if (event.conn === undefined) continue;
    const bar = bars.get(event.conn) ?? { from: event.index, to: events.length - 1, label: `c${event.conn}` };
    bars.set(event.conn, bar);
    if (event.kind === "disconnected") bar.to = event.index;
  }
  return [...bars.values()];
}

/**
 * The place of every event on a line, from 0: by time, or with waits shortened to their logarithms and a step for
 * each event, so that events of one millisecond stay apart.
 */
export function places(events, linear) {
  let place = 0;
  let before = events[0]?.ms ?? 0;
  return events.map(({ ms }) => {
    place += linear ? ms - before : 1 + 2 * Math.log1p(Math.max(0, ms - before));
    before = ms;
    return place;
  });
}

/** Puts each interval into the first row that is free; there is none for those that are crowded. */
export function stack(intervals, rowsMax) {
  const ends = [];
  return intervals.map(([from, to]) => {
    let row = ends.findIndex((end) => end <= from);
    const isCrowded = row < 0 && ends.length >= rowsMax;
    if (row < 0) row = isCrowded ? rowsMax - 1 : ends.length;
    ends[row] = Math.max(ends[row] ?? 0, to);
    return { row, isCrowded };
  });
}
