// The drawing of a trace: three lanes over time, an overview with a brush, and what is selected. The report and the live view
// use it: what lists the events beside the drawing is an argument.
import { axisBottom } from "d3-axis";
import { brushX } from "d3-brush";
import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { zoom, zoomIdentity } from "d3-zoom";
import { places, stack } from "./events.js";
import { seconds } from "./words.js";

const LANES = [
  ["client", "Client events"],
  ["wire", "Requests and connections"],
  ["server", "Server and store"],
];
const SIDE = 10;
const TITLE = 20;
const LABEL_ROWS = 3;
const LABEL_HEIGHT = 15;
const FLAGS = 20;
const BAR = 20;
const BARS_MAX = 14;
const CONNECTION = 6;
const CONNECTIONS_MAX = 6;
const AXIS = 24;
const OVERVIEW = 30;
/** Width of a character of a label, a little more than it is: labels must not touch. */
const CHARACTER = 6.4;

const textWidth = (text) => text.length * CHARACTER + 8;

/**
 * Draws into a figure. `list` shows the same events as text: `sift(fits)` hides those that do not fit the filter,
 * `choose(event, isLinked)` shows one as selected, `sentences(event)` returns the violations that it is evidence of. Elements of a
 * live drawing are used again for other events, and have no titles.
 */
export class Timeline {
  constructor(figure, list, { lanes = LANES.map(([lane]) => lane), about = "The table below has the same events.", isLive = false } = {}) {
    this.figure = figure;
    this.list = list;
    this.drawn = LANES.filter(([lane]) => lanes.includes(lane));
    this.about = about;
    this.isLive = isLive;
    this.events = [];
    this.linear = false;
    this.transform = zoomIdentity;
    this.words = "";
    this.lanes = new Set(lanes);
    /** Rows of requests and connections that were needed: a live drawing does not jump. */
    this.rows = { connections: 0, requests: 0 };
  }

  /** Draws these events instead of those before. */
  show({ events, requests, connections }) {
    const isNew = !this.plot;
    Object.assign(this, { events, requests, connections });
    this.selected = this.selected && events.find((event) => event.key === this.selected.key);
    this.figure.hidden = events.length < 2;
    if (this.figure.hidden) return;
    if (isNew) {
      this.controls();
      this.frame();
      // Measured by the observer: to read the width while drawing would be a layout each time.
      this.seenWidth = this.figure.clientWidth;
      new ResizeObserver(([{ contentRect }]) => {
        this.seenWidth = contentRect.width;
        this.resize();
      }).observe(this.figure);
    }
    this.resize(true);
  }

  controls() {
    const bar = select(this.figure).append("div").attr("class", "controls");
    const labelled = (text) => bar.append("label").text(text);
    this.filter = labelled("Events ")
      .append("input")
      .attr("type", "search")
      .attr("placeholder", "filter")
      .attr("autocomplete", "off")
      .on("input", (event) => {
        this.words = event.target.value.toLowerCase();
        this.sift();
      })
      .node();
    for (const [lane, title] of this.drawn.length > 1 ? this.drawn : []) {
      const label = bar.append("label").attr("class", `lane ${lane}`);
      label
        .append("input")
        .attr("type", "checkbox")
        .property("checked", true)
        .on("change", (event) => {
          this.lanes[event.target.checked ? "add" : "delete"](lane);
          this.sift();
        });
      label.append("span").text(title);
    }
    const linear = bar.append("label");
    linear
      .append("input")
      .attr("type", "checkbox")
      .on("change", (event) => {
        this.linear = event.target.checked;
        this.transform = zoomIdentity;
        this.resize(true);
      });
    linear.append("span").text("Linear time");
    bar.append("button").attr("type", "button").attr("class", "all").text("Show all").on("click", () => this.showAll());
  }

  /** What stays when the width changes. */
  frame() {
    const name = `Timeline, ${this.events.length} events. Arrow keys move it, n and p select events, plus and minus zoom. ${this.about}`;
    this.plot = select(this.figure)
      .append("div")
      .attr("class", "plot")
      .attr("role", "group")
      .attr("tabindex", 0)
      .attr("aria-label", name)
      .on("keydown", (event) => {
        const by = { ArrowLeft: 0.2, ArrowRight: -0.2 }[event.key];
        if (by === undefined) return;
        event.preventDefault();
        this.zooming.translateBy(this.pane, (by * this.width) / this.transform.k, 0);
      });
    this.svg = this.plot.append("svg").attr("aria-hidden", "true").attr("focusable", "false");
    this.readout = select(this.figure).append("p").attr("class", "readout").attr("aria-live", "polite");
    this.readout.text("Select an event: click, or press n. Drag the bar below the axis to see a part.");
    this.zooming = zoom()
      .filter((event) => (event.type === "wheel" ? event.ctrlKey || event.metaKey : !event.touches || event.touches.length > 1))
      .on("zoom", ({ transform, sourceEvent }) => {
        this.transform = transform;
        this.draw();
        if (sourceEvent?.type !== "brush") this.moveBrush();
      });
    this.brushing = brushX().on("brush end", (event) => {
      if (!event.sourceEvent || event.sourceEvent.type === "zoom") return;
      const [from, to] = event.selection ?? [SIDE, this.width - SIDE];
      const scale = (this.width - 2 * SIDE) / Math.max(4, to - from);
      this.transform = zoomIdentity.translate(SIDE - scale * from, 0).scale(scale);
      this.part = undefined;
      // Without an event of the zoom: the brush is where it should be.
      this.pane.property("__zoom", this.transform);
      this.draw();
      if (!event.selection) this.moveBrush();
    });
  }

  resize(always) {
    const width = Math.floor(this.seenWidth);
    if (!width || (width === this.width && !always)) return;
    this.width = width;
    this.places = places(this.events, this.linear);
    const last = this.places.at(-1) || 1;
    this.base = scaleLinear([0, last * 1.02], [SIDE, width - SIDE]);
    const at = (index) => this.base(this.places[index]);
    const bars = this.requests.map((bar) => [at(bar.from), Math.max(at(bar.to) + 3, at(bar.from) + textWidth(bar.label))]);
    stack(bars, BARS_MAX).forEach(({ row, isCrowded }, index) => Object.assign(this.requests[index], { line: row, isCrowded }));
    const wires = this.connections.map((bar) => [at(bar.from), at(bar.to) + 1]);
    stack(wires, CONNECTIONS_MAX).forEach(({ row }, index) => (this.connections[index].line = row));
    for (const kind of ["connections", "requests"]) this.rows[kind] = Math.max(this.rows[kind], ...this[kind].map((bar) => bar.line + 1));
    const { rows } = this;
    const marks = TITLE + 12 + LABEL_ROWS * LABEL_HEIGHT;
    const wire = TITLE + rows.connections * CONNECTION + 4 + rows.requests * BAR + 6;
    const heights = { client: marks, wire, server: marks };
    this.tops = {};
    let y = FLAGS;
    for (const [lane] of this.drawn) {
      this.tops[lane] = { top: y, height: heights[lane] };
      y += heights[lane];
    }
    this.bottom = y;
    this.height = y + AXIS + OVERVIEW + 4;
    this.barsTop = this.tops.wire.top + TITLE + rows.connections * CONNECTION + 4;
    const size = `${width} ${this.height}`;
    if (size !== this.size) {
      this.build();
      this.part = undefined;
    }
    this.size = size;
    this.scale();
    this.draw();
    this.moveBrush();
  }

  build() {
    const { svg, width, height, bottom } = this;
    svg.selectAll("*").remove();
    svg.attr("viewBox", `0 0 ${width} ${height}`).attr("width", width).attr("height", height);
    const clip = `clip-${(Timeline.count = (Timeline.count ?? 0) + 1)}`;
    svg.append("clipPath").attr("id", clip).append("rect").attr("width", width).attr("height", bottom);
    for (const [lane, title] of this.drawn) {
      const { top, height } = this.tops[lane];
      svg.append("rect").attr("class", `band ${lane}`).attr("y", top).attr("width", width).attr("height", height);
      svg.append("text").attr("class", "lane-title").attr("x", SIDE).attr("y", top + 14).text(title);
    }
    const clipped = svg.append("g").attr("clip-path", `url(#${clip})`);
    this.layers = {};
    for (const name of ["bands", "waits", "guides", "connections", "requests", "marks", "labels", "flags"]) {
      this.layers[name] = clipped.append("g").attr("class", name);
    }
    this.axis = svg.append("g").attr("class", "axis").attr("transform", `translate(0,${bottom})`);
    this.pane = svg.append("rect").attr("class", "pane").attr("width", width).attr("height", bottom);
    this.pane.on("click", (event) => this.pick(event));
    this.zooming.extent([[0, 0], [width, bottom]]).translateExtent([[0, 0], [width, bottom]]);
    this.pane.call(this.zooming).on("dblclick.zoom", null);
    this.pane.property("__zoom", this.transform);
    this.overview = svg.append("g").attr("class", "overview").attr("transform", `translate(0,${bottom + AXIS})`);
    this.overview.append("rect").attr("class", "ground").attr("x", SIDE).attr("width", width - 2 * SIDE).attr("height", OVERVIEW);
    this.ticks = this.overview.append("g");
    this.brushing.extent([[SIDE, 0], [width - SIDE, OVERVIEW]]);
    this.brush = this.overview.append("g").attr("class", "brush").call(this.brushing);
  }

  /** The overview of all events, and how far it can be zoomed into. */
  scale() {
    this.zooming.scaleExtent([1, Math.max(8, this.events.length * 2)]);
    const lines = { client: 0, wire: 1, server: 2 };
    this.ticks
      .selectAll("rect.tick")
      .data(this.events)
      .join("rect")
      .attr("class", (event) => `tick ${event.lane} ${event.proof ? "proof" : ""}`)
      .attr("x", (event) => this.base(this.places[event.index]))
      .attr("y", (event) => (event.proof ? 1 : 3 + (lines[event.lane] * (OVERVIEW - 6)) / 3))
      .attr("width", (event) => (event.proof ? 2 : 1.2))
      .attr("height", (event) => (event.proof ? OVERVIEW - 2 : (OVERVIEW - 6) / 3 - 1));
  }

  moveBrush() {
    const [from, to] = this.transform.rescaleX(this.base).domain().map(this.base);
    const clamp = (x) => Math.min(this.width - SIDE, Math.max(SIDE, x));
    const part = [clamp(from), clamp(to)];
    if (`${part}` === this.part) return;
    this.part = `${part}`;
    this.brush.call(this.brushing.move, part);
  }

  draw() {
    const x = this.transform.rescaleX(this.base);
    const at = (index) => x(this.places[index]);
    const isSeen = (from, to) => to >= -40 && from <= this.width + 40;
    const seen = this.events.filter(({ index }) => isSeen(at(index), at(index)));
    const { layers, tops, bottom } = this;
    const fits = (event) => this.fits(event);
    const state = (event) =>
      `${event.proof ? "proof " : ""}${event.scripted ? "scripted " : ""}${event === this.selected ? "selected " : ""}${fits(event) ? "" : "sifted"}`;

    layers.bands
      .selectAll("rect")
      .data(this.bands(at), ([flag]) => flag)
      .join("rect")
      .attr("x", ([, from]) => from - 6)
      .attr("width", ([, from, to]) => to - from + 12)
      .attr("y", 0)
      .attr("height", bottom);

    const guides = seen.filter((event) => event.kind === "step" || event.proof || event === this.selected);
    layers.guides
      .selectAll("line")
      .data(guides)
      .join("line")
      .attr("class", (event) => `${event.kind} ${state(event)}`)
      .attr("x1", (event) => at(event.index))
      .attr("x2", (event) => at(event.index))
      .attr("y1", (event) => (event.kind === "step" && !event.proof ? FLAGS : FLAGS - 4))
      .attr("y2", bottom);

    const waits = this.linear ? [] : this.events.slice(1).filter((event) => event.ms - this.events[event.index - 1].ms >= 250);
    const wide = waits
      .map((event) => ({ event, from: at(event.index - 1), to: at(event.index) }))
      .filter(({ event, from, to }) => isSeen(from, to) && to - from > textWidth(seconds(event.ms)) + 10);
    const wait = layers.waits.selectAll("g").data(wide).join((enter) => {
      const group = enter.append("g");
      group.append("rect").attr("y", FLAGS).attr("height", bottom - FLAGS);
      group.append("text").attr("text-anchor", "middle").attr("y", bottom - 6);
      return group;
    });
    wait.select("rect").attr("x", ({ from }) => from + 5).attr("width", ({ from, to }) => Math.max(0, to - from - 10));
    wait
      .select("text")
      .attr("x", ({ from, to }) => (Math.max(0, from) + Math.min(this.width, to)) / 2)
      .text(({ event }) => `${((event.ms - this.events[event.index - 1].ms) / 1000).toFixed(1)} s`);

    layers.connections
      .selectAll("line")
      .data(this.connections)
      .join("line")
      .attr("x1", (bar) => at(bar.from))
      .attr("x2", (bar) => Math.max(at(bar.to), at(bar.from) + 2))
      .attr("y1", (bar) => tops.wire.top + TITLE + bar.line * CONNECTION)
      .attr("y2", (bar) => tops.wire.top + TITLE + bar.line * CONNECTION);

    const y = (bar) => this.barsTop + bar.line * BAR;
    // Where there is no row left, a live drawing has the marks alone.
    const bars = this.requests.filter((bar) => !(this.isLive && bar.isCrowded) && isSeen(at(bar.from), at(bar.to) + textWidth(bar.label)));
    const bar = layers.requests.selectAll("g.request").data(bars).join((enter) => {
      const group = enter.append("g");
      group.append("rect").attr("height", BAR - 6).attr("rx", 2);
      group.append("text").attr("dy", 11);
      return group;
    });
    const sifted = (bar) => !bar.events.some(fits);
    bar.attr("class", (bar) => `request ${bar.verb} ${sifted(bar) ? "sifted" : ""} ${bar.isOpen ? "open" : ""}`);
    bar
      .select("rect")
      .attr("x", (bar) => at(bar.from))
      .attr("y", y)
      .attr("width", (bar) => Math.max(3, at(bar.to) - at(bar.from)));
    bar
      .select("text")
      .attr("x", (bar) => Math.max(4, at(bar.from) + 5))
      .attr("y", y)
      .text((bar) => (bar.isCrowded ? "" : bar.label));
    const lineOf = new Map(this.requests.flatMap((bar) => bar.events.map((event) => [event, bar])));
    const placed = (event) => {
      const { top } = tops[event.lane];
      if (event.lane !== "wire") return top + TITLE + 4;
      const bar = lineOf.get(event);
      return bar ? y(bar) + (BAR - 6) : top + TITLE - 4;
    };
    this.placed = placed;

    layers.marks
      .selectAll("circle")
      .data(seen, this.isLive ? undefined : (event) => event.key)
      .join((enter) => {
        const circle = enter.append("circle");
        if (!this.isLive) circle.append("title").text((event) => `${seconds(event.ms)} s  ${event.text}`);
        return circle;
      })
      .attr("class", (event) => `${event.lane} ${event.kind} ${state(event)}`)
      .attr("cx", (event) => at(event.index))
      .attr("cy", placed)
      .attr("r", (event) => (event === this.selected ? 6 : event.proof ? 5 : event.lane === "wire" ? 2.6 : 4));

    this.drawLabels(seen, at);
    this.drawFlags(seen, at);
    this.drawAxis(x, at);
  }

  /** From the first to the last evidence of each violation. */
  bands(at) {
    const bands = new Map();
    for (const event of this.events) {
      for (const { href } of event.flags) {
        const [, from = at(event.index)] = bands.get(href) ?? [];
        bands.set(href, [href, from, at(event.index)]);
      }
    }
    return [...bands.values()];
  }

  /** Labels where there is room: evidence and the selection first, then by time. */
  drawLabels(seen, at) {
    const rank = (event) => (event === this.selected ? 0 : event.proof ? 1 : event.kind === "bound" ? 3 : 2);
    const labels = [];
    for (const [lane] of this.drawn.filter(([lane]) => lane !== "wire")) {
      const taken = Array.from({ length: LABEL_ROWS }, () => []);
      const own = seen.filter((event) => event.lane === lane && this.fits(event));
      own.sort((one, other) => rank(one) - rank(other) || one.index - other.index);
      for (const event of own) {
        const from = Math.min(at(event.index) - 4, this.width - textWidth(event.label));
        const to = from + textWidth(event.label);
        const row = taken.findIndex((spans) => spans.every(([start, end]) => to <= start || from >= end));
        if (row < 0) continue;
        taken[row].push([from, to]);
        labels.push({ event, x: from, y: this.tops[lane].top + TITLE + 20 + row * LABEL_HEIGHT });
      }
    }
    this.layers.labels
      .selectAll("text")
      .data(labels)
      .join("text")
      .attr("class", ({ event }) => `${event.lane} ${event.kind} ${event.proof ? "proof" : ""} ${event === this.selected ? "selected" : ""}`)
      .attr("x", ({ x }) => x)
      .attr("y", ({ y }) => y)
      .text(({ event }) => event.label);
  }

  drawFlags(seen, at) {
    const flags = [];
    let free = -Infinity;
    for (const event of seen.filter((event) => event.flags.length)) {
      const text = event.flags.map((flag) => flag.text).join("  ");
      const x = Math.max(2, Math.min(at(event.index) - 4, this.width - textWidth(text)));
      if (x < free) continue;
      free = x + textWidth(text) + 6;
      flags.push({ event, text, x });
    }
    this.layers.flags
      .selectAll("text")
      .data(flags)
      .join("text")
      .attr("x", ({ x }) => x)
      .attr("y", 13)
      .text(({ text }) => text);
  }

  drawAxis(x, at) {
    if (this.linear) {
      const first = this.events[0].ms;
      const axis = axisBottom(x).ticks(Math.max(2, this.width / 110)).tickFormat((ms) => `${seconds(ms + first)} s`);
      this.axis.call(axis);
      return;
    }
    // Where waits are shortened there are no round numbers: ticks are the times of events, as many as have room.
    const ticks = [];
    let free = -Infinity;
    for (const event of this.events) {
      const place = at(event.index);
      if (place < 24 || place > this.width - 24 || place < free) continue;
      ticks.push(event);
      free = place + 70;
    }
    const times = new Map(ticks.map((event) => [this.places[event.index], event.ms]));
    this.axis.call(axisBottom(x).tickValues([...times.keys()]).tickFormat((place) => `${seconds(times.get(place))} s`));
  }

  fits(event) {
    return this.lanes.has(event.lane) && (!this.words || `${event.text} ${event.kind}`.toLowerCase().includes(this.words));
  }

  /** Hides rows and fades marks that do not fit the filter. */
  sift() {
    this.list.sift((event) => this.fits(event));
    const left = this.events.filter((event) => this.fits(event)).length;
    this.readout.text(left === this.events.length ? `${left} events` : `${left} of ${this.events.length} events`);
    this.draw();
  }

  pick(event) {
    const box = this.svg.node().getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    const x = this.transform.rescaleX(this.base);
    let [best, nearest] = [undefined, 24];
    for (const one of this.events) {
      if (!this.fits(one)) continue;
      const distance = Math.hypot(x(this.places[one.index]) - px, (this.placed(one) - py) / 2);
      if (distance < nearest) [best, nearest] = [one, distance];
    }
    if (best) this.choose(best);
  }

  choose(event, isLinked) {
    this.selected = event;
    const place = this.transform.rescaleX(this.base)(this.places[event.index]);
    if (place < SIDE || place > this.width - SIDE) this.zooming.translateTo(this.pane, this.base(this.places[event.index]), 0);
    const lane = LANES.find(([lane]) => lane === event.lane)[1];
    this.readout.text(`${seconds(event.ms)} s \u00b7 ${lane} \u00b7 ${event.text}`);
    for (const sentence of this.list.sentences(event)) {
      this.readout.append("span").attr("class", "contradiction").text(sentence);
    }
    this.draw();
    this.list.choose(event, isLinked);
  }

  move(by) {
    const own = this.events.filter((event) => this.fits(event));
    const at = own.indexOf(this.selected);
    const next = at < 0 ? own[by > 0 ? 0 : own.length - 1] : own[at + by];
    if (next) this.choose(next);
  }

  nextProof() {
    const proofs = this.events.filter((event) => event.proof);
    const from = this.selected?.index ?? -1;
    const next = proofs.find((event) => event.index > from) ?? proofs[0];
    if (next) this.choose(next);
  }

  focusFilter() {
    this.filter.focus();
  }

  zoomBy(by) {
    const place = this.selected && this.transform.rescaleX(this.base)(this.places[this.selected.index]);
    this.zooming.scaleBy(this.pane, by, [place ?? this.width / 2, 0]);
  }

  showAll() {
    this.zooming.transform(this.pane, zoomIdentity);
  }
}
