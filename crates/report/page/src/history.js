// The history of one object: its versions, and the watches that were sent each. The trace has no content.
import { failure, seconds } from "./words.js";

/** Watches named for a version. */
const NAMED = 4;

export class History {
  constructor(api) {
    this.api = api;
    [this.resource, this.object] = ["history-resource", "history-object"].map((id) => document.getElementById(id));
    document.getElementById("history-of").addEventListener("submit", (event) => {
      event.preventDefault();
      this.show(this.resource.value.trim(), this.object.value.trim());
    });
  }

  /** Names an object, without a request. */
  about(resource, object) {
    if (resource) this.resource.value = resource;
    this.object.value = object;
  }

  async show(resource, object) {
    this.about(resource, object);
    const note = document.getElementById("history-note");
    const table = document.getElementById("history-table");
    try {
      const { versions, leftOut } = await this.api.post("/v1/history", JSON.stringify({ resource, object }));
      table.hidden = !versions.length;
      note.textContent = versions.length
        ? `${resource} ${object}: ${versions.length} versions${leftOut ? `, ${leftOut} older ones left out` : ""}, the newest first. The trace has no content.`
        : `The trace has no version of ${resource} ${object}.`;
      table.tBodies[0].replaceChildren(...versions.reverse().map(row));
      document.getElementById("history").scrollIntoView({ block: "nearest" });
    } catch (error) {
      table.hidden = true;
      note.textContent = failure(error);
    }
  }
}

function row({ resourceVersion, write, atMs, by, sent, scripted, events }) {
  const row = document.createElement("tr");
  const writer = by === undefined ? "" : ` by #${by}`;
  const to = events.slice(0, NAMED).map(({ stream, event, client, atMs }) => `#${stream} ${event.split(" ")[0]} ${seconds(atMs)} s ${client}`);
  const more = sent - Math.min(sent, NAMED);
  const cells = [
    resourceVersion,
    write ? `${write}${writer}` : "not in the trace",
    `${seconds(atMs)} s`,
    `${sent}${scripted ? `, ${scripted} changed by a rule` : ""}`,
    `${to.join("; ")}${more ? `; and ${more} more` : ""}` || "no watch",
  ];
  cells.forEach((text, nth) => {
    const cell = row.insertCell();
    cell.textContent = text;
    if (nth === 3) cell.className = "number";
  });
  return row;
}
