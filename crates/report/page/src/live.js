// The live view: what the control API of a running server has, as it happens. It keeps a bounded number of records, and draws at
// most four times a second.
import { Actions } from "./actions.js";
import { Api, Refused, query, takeToken } from "./api.js";
import { History } from "./history.js";
import { listenToLiveKeys } from "./livekeys.js";
import { Records } from "./records.js";
import { Timeline } from "./timeline.js";
import { VirtualTable } from "./virtual.js";
import { Watches } from "./watches.js";
import { seconds, text } from "./words.js";

/** Records a second that the server sends at most. */
const RATE = 400;
/** Records that exist already when the page opens. */
const LAST = 500;
const DRAW_MS = 250;
const POLL_MS = 1000;
/** Watches in the table; the server has the others in its sums. */
const LISTED = 300;
const AGAIN_MS = 1000;

const element = (id) => document.getElementById(id);
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

class Live {
  constructor() {
    this.api = new Api(takeToken());
    this.records = new Records();
    this.filter = { client: "", resource: "" };
    this.flags = new Map();
    this.isPaused = false;
    this.history = new History(this.api);
    this.watches = new Watches(() => this.aim());
    this.actions = new Actions(this.api, () => this.poll());
    this.table = new VirtualTable(document.querySelector("#records .grid"), 4, (row, record) => this.fill(row, record));
    this.timeline = new Timeline(element("timeline"), this.list(), {
      lanes: ["wire", "server"],
      about: "The table of records has the same events.",
      isLive: true,
    });
    this.listen();
  }

  /** The timeline's list is the table of records. */
  list() {
    return {
      sift: () => {},
      sentences: ({ flags }) => flags.map(({ text, sentence }) => `${text}: ${sentence}`),
      choose: (event) => {
        this.selected = event.key;
        const nth = this.items.findIndex((row) => row.seq === event.key);
        if (nth >= 0) this.table.reveal(nth);
        this.table.draw();
        if (event.object) this.history.about(event.resource, event.object);
      },
    };
  }

  listen() {
    let typing;
    element("toolbar").addEventListener("submit", (event) => event.preventDefault());
    for (const name of ["client", "resource"]) {
      element(name).addEventListener("input", ({ target }) => {
        clearTimeout(typing);
        typing = setTimeout(() => this.sift(name, target.value.trim()), 250);
      });
    }
    element("pause").addEventListener("click", () => this.pause());
    element("download").addEventListener("click", () => this.download());
    document.addEventListener("visibilitychange", () => this.follow());
    document.querySelector("#record-table").addEventListener("click", ({ target }) => {
      const { resource, object } = target.closest("button")?.dataset ?? {};
      if (object) this.history.show(resource, object);
    });
    listenToLiveKeys(this);
  }

  /** A page that nobody sees, or that is paused, costs the server nothing. */
  get isWatching() {
    return !this.isPaused && !document.hidden;
  }

  pause() {
    this.isPaused = !this.isPaused;
    element("pause").ariaPressed = String(this.isPaused);
    text(element("pause"), this.isPaused ? "Go on" : "Pause");
    this.link(this.isPaused ? "paused" : "live");
    this.follow();
    if (!this.isPaused) this.poll();
  }

  sift(name, value) {
    if (this.filter[name] === value) return;
    this.filter = { ...this.filter, [name]: value };
    this.records.clear();
    this.follow();
    this.poll();
  }

  /** State of the connection to the server. */
  link(state, why = "") {
    document.body.dataset.link = state;
    text(element("link"), why ? `${state}: ${why}` : state);
  }

  start() {
    this.follow();
    setInterval(() => requestAnimationFrame(() => this.draw()), DRAW_MS);
    this.keepPolling();
  }

  async keepPolling() {
    for (;;) {
      if (this.isWatching) await this.poll();
      await wait(POLL_MS);
    }
  }

  /** Follows the trace from now on, with the present filter. */
  async follow() {
    this.following?.abort();
    const own = new AbortController();
    this.following = own;
    while (this.isWatching && !own.signal.aborted) {
      try {
        const last = this.records.rows.at(-1);
        const begin = last ? { since: last.seq + 1 } : { last: LAST };
        const path = `/v1/trace?${query(this.filter, { format: "rows", follow: true, rate: RATE, ...begin })}`;
        await this.api.lines(path, own.signal, (lines) => {
          this.records.take(lines);
          this.isDirty = true;
        });
      } catch (error) {
        if (own.signal.aborted) return;
        if (error.status === 401) return this.locked();
      }
      await wait(AGAIN_MS);
    }
  }

  locked() {
    this.link("locked", "the token is missing or wrong; open the URL that the server printed");
    document.body.dataset.locked = "";
  }

  async poll() {
    try {
      const [state, watches, verdict] = await Promise.all([
        this.api.get("/v1"),
        this.api.get(`/v1/watches?${query(this.filter, { limit: LISTED })}`),
        this.api.get("/v1/verdict"),
      ]);
      // Another server at the same place, as `run` has one for each scenario.
      if (this.records.rows.at(-1)?.seq >= state.nextRecord) {
        this.records.clear();
        this.follow();
      }
      this.link(this.isPaused ? "paused" : "live");
      this.serverState(state);
      this.verdict(verdict);
      this.watches.take(watches);
      this.watches.draw();
      for (const { stream, resource } of watches.watches.slice(0, 200)) this.records.name(stream, `WATCH ${resource}`);
      this.sums(state, watches, verdict);
      this.aim();
      this.isDirty = true;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (error.status === 401) this.locked();
      else this.link("disconnected", error.message);
    }
  }

  serverState({ kubernetes, servers, what, origin }) {
    const answers = origin === "upstream" ? "in front of Kubernetes" : "as Kubernetes";
    text(element("what"), `${answers} ${kubernetes} at ${servers.map(({ url }) => url).join(", ")} \u00b7 ${what}`);
  }

  sums(state, watches, verdict) {
    const broken = verdict.clients.flatMap(({ violations }) => Object.values(violations)).reduce((sum, one) => sum + one, 0);
    const sums = {
      open: this.filter.client || this.filter.resource ? `${watches.matched} of ${watches.open}` : watches.open,
      late: watches.behind, stalled: watches.stalled, broken, rules: state.rules, rate: watches.eventsPerSecond,
    };
    for (const [name, sum] of Object.entries(sums)) {
      const one = element(`sum-${name}`);
      text(one.querySelector("dd"), sum.toLocaleString("en"));
      one.classList.toggle("none", sum === 0);
    }
  }

  verdict({ clients }) {
    const found = clients.flatMap(({ contradictions }) => contradictions);
    const key = found.map(({ client, check, atMs }) => `${client} ${check} ${atMs}`).join("\n");
    if (key === this.foundKey) return;
    this.foundKey = key;
    this.flags = new Map();
    const boxes = found.map(({ client, check, sentence, proof, evidence, atMs, reading }, nth) => {
      for (const seq of evidence) {
        const of = this.flags.get(seq) ?? [];
        this.flags.set(seq, [...of, { text: `\u2717 ${check}`, sentence, href: `#violation-${nth}` }]);
      }
      const box = document.createElement("div");
      box.className = "found";
      box.id = `violation-${nth}`;
      for (const [name, words] of [
        ["check", `\u2717 ${check} \u00b7 ${client} \u00b7 ${reading} \u00b7 ${seconds(atMs)} s`], ["sentence", sentence], ["proof", proof],
      ]) {
        const line = box.appendChild(document.createElement("p"));
        line.className = name;
        line.textContent = words;
      }
      return box;
    });
    element("violations").hidden = !boxes.length;
    element("found").replaceChildren(...boxes.reverse());
    this.watches.accused = new Set(found.map(({ client }) => client));
  }

  /** What the buttons are for, after a change of filter or selection. */
  aim() {
    this.actions.aim(this.filter, this.watches);
  }

  draw() {
    if (!this.isDirty || document.hidden) return;
    this.isDirty = false;
    const fresh = this.records.takeFresh();
    this.items = this.records.newest();
    this.table.show(this.items, fresh);
    text(element("records-note"), this.items.length ? this.records.words() : "none yet");
    if (fresh || this.drawnKey !== this.foundKey || !this.items.length) {
      this.drawnKey = this.foundKey;
      this.timeline.show(this.records.drawn(this.flags));
      const drawn = this.timeline.events.length;
      text(element("timeline-note"), drawn > 1 ? `the newest ${drawn} records` : "nothing to draw yet");
    }
  }

  fill(row, record) {
    const flags = this.flags.get(record.seq);
    const kinds = `${record.lane} ${record.scripted ? "scripted" : ""} ${flags ? "proof" : ""} ${record.seq === this.selected ? "selected" : ""}`;
    if (row.className !== kinds) row.className = kinds;
    const [time, client, what, object] = row.cells;
    text(time, seconds(record.at));
    text(client, record.client ?? "");
    text(what, flags ? `${flags.map((flag) => flag.text).join(" ")} ${record.text}` : record.text);
    what.title = record.text;
    if (!record.object) return object.replaceChildren();
    const button = object.firstElementChild ?? object.appendChild(document.createElement("button"));
    button.type = "button";
    Object.assign(button.dataset, { object: record.object, resource: record.resource ?? "" });
    text(button, record.object);
  }

  /**
   * Writes what is shown into a file, a record of JSON a line, with the present filter: `scenario from` makes a scenario of it.
   */
  async download() {
    const [first, last] = [this.records.rows[0], this.records.rows.at(-1)];
    if (!first) return this.actions.say("There is no record to download.");
    const lines = await this.api.text(`/v1/trace?${query(this.filter, { since: first.seq })}`);
    const ends = (line) => JSON.parse(line).seq > last.seq;
    const all = lines.trimEnd().split("\n");
    const shown = this.isPaused ? all.slice(0, all.findIndex(ends) >>> 0) : all;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([`${shown.join("\n")}\n`], { type: "application/x-ndjson" }));
    link.download = "trace.ndjson";
    link.click();
    URL.revokeObjectURL(link.href);
    this.actions.say(`${shown.length} records in trace.ndjson. A scenario of it: fake-apiserver scenario from trace.ndjson`);
  }
}

new Live().start();
