// The newest records of a server, in bounded memory, as a timeline and a table show them.
import { barred } from "./events.js";

/** Records that are kept. */
const KEPT = 5000;
/** Records in the drawing: the newest. */
const DRAWN = 150;
/** Requests whose name is kept. */
const NAMES = 20_000;

export class Records {
  constructor() {
    this.clear();
  }

  clear() {
    Object.assign(this, { rows: [], seen: 0, leftOut: 0, fresh: 0, named: new Map() });
  }

  /** Takes rows, and lines with the number of those left out. */
  take(lines) {
    for (const line of lines) {
      if (line.leftOut) {
        this.leftOut += line.leftOut;
        continue;
      }
      this.seen += 1;
      this.fresh += 1;
      if (line.kind === "request") this.name(line.stream, `${line.label} ${line.resource ?? ""}`.trim());
      this.rows.push(line);
    }
    const over = this.rows.length - KEPT;
    // Not for every record: the rest moves.
    if (over > KEPT / 10) this.rows.splice(0, over);
  }

  /** The label of a request. */
  name(stream, label) {
    if (this.named.has(stream)) return;
    if (this.named.size >= NAMES) this.named.delete(this.named.keys().next().value);
    this.named.set(stream, label);
  }

  /** The number of records since the last call. */
  takeFresh() {
    const { fresh } = this;
    this.fresh = 0;
    return fresh;
  }

  /** The newest first. */
  newest() {
    return this.rows.slice(-KEPT).reverse();
  }

  /** The newest events for a timeline; `flags`: violations by number of the record that proves them. */
  drawn(flags) {
    const events = this.rows.slice(-DRAWN).map((row, index) => {
      const of = flags.get(row.seq) ?? [];
      const isRequest = row.kind === "request";
      return {
        ...row, index, key: row.seq, ms: row.at, flags: of, proof: of.length > 0,
        label: isRequest ? this.named.get(row.stream) : row.label,
      };
    });
    return barred(events, this.named);
  }

  /** What is left out, in words. */
  words() {
    const kept = Math.min(this.rows.length, KEPT);
    const older = this.seen - kept;
    const parts = [`the newest ${kept}`];
    if (older > 0) parts.push(`${older} older ones are no longer kept`);
    if (this.leftOut) parts.push(`${this.leftOut} left out because they come too fast`);
    return parts.join(", ");
  }
}
