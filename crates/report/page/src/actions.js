// The buttons: each is a request to the control API, for the watches that are shown.
import { failure, text } from "./words.js";

export class Actions {
  /** `onDone` is called after a request. */
  constructor(api, onDone) {
    Object.assign(this, { api, onDone, filter: {}, selected: undefined });
    this.buttons = [...document.querySelectorAll("#actions button[data-verb]")];
    for (const button of this.buttons) button.addEventListener("click", () => this.act(button));
  }

  /** Writes what each button will act on, after a change of filter or selection. */
  aim(filter, { selected, matched, items }) {
    Object.assign(this, { filter, selected });
    const watch = items.find(({ stream }) => stream === selected);
    const isFiltered = filter.client || filter.resource;
    const count = `${matched} ${matched === 1 ? "watch" : "watches"}`;
    const words = {
      watches: watch ? `watch #${selected} of ${watch.client || "a client without a name"}` : isFiltered ? `the ${count} shown` : matched === 1 ? "the only watch" : `all ${count}`,
      caches: filter.resource ? `the watch cache of ${filter.resource}` : "all watch caches",
    };
    for (const [aim, on] of Object.entries(words)) text(document.getElementById(`on-${aim}`), `On ${on}`);
    for (const button of this.buttons) button.disabled = button.dataset.aim === "watches" && matched === 0;
  }

  /** The conditions of a rule. */
  from(aim) {
    const { client, resource } = this.filter;
    if (aim === "server") return undefined;
    if (aim === "caches") return resource ? { resource } : undefined;
    if (this.selected !== undefined) return { stream: this.selected };
    const from = { ...(client && { user_agent: client }), ...(resource && { resource }) };
    return Object.keys(from).length ? from : undefined;
  }

  async act(button) {
    const { verb, aim, path, body } = button.dataset;
    const argument = button.parentElement.querySelector("input")?.value.trim();
    const rule = body && JSON.parse(body, (_, value) => (value === "$argument" ? argument : value));
    const from = this.from(aim);
    try {
      const { streams, done } = await this.api.post(path, rule ? JSON.stringify({ ...(from && { from }), ...rule }) : "");
      const on = streams?.length ? ` on ${streams.length === 1 ? `watch #${streams[0]}` : `${streams.length} watches`}` : "";
      this.say(`${verb}: done${done && on}.`);
    } catch (error) {
      this.say(`${verb}: ${failure(error)}`, true);
    }
    this.onDone();
  }

  say(words, isError = false) {
    const done = document.getElementById("done");
    done.textContent = words;
    done.classList.toggle("fail", isError);
  }
}
