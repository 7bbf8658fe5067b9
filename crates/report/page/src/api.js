// The control API of the server that the page comes from. The token is a header and never part of a URL that is requested.

/** A response that is no success, or none. */
export class Refused extends Error {
  constructor(status, message, hint) {
    super(message);
    Object.assign(this, { status, hint });
  }
}

/**
 * The token of the page's URL, which is removed from the address and so from the history of the browser. A reload has it from
 * the storage of this tab, which ends with it, and which another port does not see.
 */
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("token") ?? "";
}

export class Api {
  constructor(token) {
    this.token = token;
  }

  get(path, signal) {
    return this.json(path, { signal });
  }

  post(path, body) {
    return this.json(path, { method: "POST", body });
  }

  async json(path, options) {
    const response = await this.send(path, options);
    return response.json();
  }

  async text(path) {
    const response = await this.send(path, {});
    return response.text();
  }

  /** Calls `take` with the objects of each chunk of a stream of lines. */
  async lines(path, signal, take) {
    const response = await this.send(path, { signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      take(lines.map((line) => JSON.parse(line)));
    }
  }

  async send(path, options) {
    const headers = { authorization: `Bearer ${this.token}` };
    if (options.body) headers["content-type"] = "application/json";
    const fixed = { headers, cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" };
    let response;
    try {
      response = await fetch(path, { ...options, ...fixed });
    } catch (error) {
      if (options.signal?.aborted) throw error;
      throw new Refused(0, "the server does not answer");
    }
    if (response.ok) return response;
    const { error = response.statusText, hint } = await response.json().catch(() => ({}));
    throw new Refused(response.status, error, hint);
  }
}

/** The query of a filter: ` ?client=…&resource=…`, with these parameters. */
export function query(filter, parameters = {}) {
  const given = Object.entries({ ...filter, ...parameters }).filter(([, value]) => value !== "");
  return new URLSearchParams(given).toString().replaceAll("+", "%20");
}
