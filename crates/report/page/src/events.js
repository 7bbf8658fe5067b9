// The events of an attempt, read from its table: the page holds them once.

/** Events in order, and the bars of requests and connections. */
export function read(table) {
  const rows = [...table.tBodies[0].rows].filter((row) => row.dataset.t !== undefined);
  const events = rows.map((row, index) => {
    const { t, lane, kind, stream, conn, label } = row.dataset;
    const cell = row.querySelector(`td.${lane}`);
    const flags = [...row.querySelectorAll("a.flag")];
    return {
      index, row, lane, kind, stream, conn, label,
      ms: Number(t),
      text: cell.firstChild?.textContent ?? "",
      flags: flags.map((flag) => ({ text: flag.textContent, href: flag.getAttribute("href") })),
      scripted: row.classList.contains("scripted"),
      proof: row.classList.contains("proof"),
    };
  });
  return { events, requests: requests(events), connections: connections(events) };
}

function requests(events) {
  const open = new Map();
  const bars = [];
  for (const event of events) {
    if (event.lane !== "wire" || event.stream === undefined) continue;
    let bar = open.get(event.stream);
    if (!bar) {
      bar = { from: event.index, to: undefined, label: event.label, events: [], verb: event.label.split(" ")[0].toLowerCase() };
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

/** Puts each interval into the first row that is free. */
export function stack(intervals, rowsMax) {
  const ends = [];
  return intervals.map(([from, to]) => {
    let row = ends.findIndex((end) => end <= from);
    if (row < 0) row = ends.length < rowsMax ? ends.length : rowsMax - 1;
    ends[row] = Math.max(ends[row] ?? 0, to);
    return row;
  });
}
