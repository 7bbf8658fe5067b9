// A client of the control API: one method per path of schema/control.v1.openapi.json. It must not know processes.

import { request } from 'node:http';

/** The control API rejected a request. `body` has the mistakes with their places. */
export class Refused extends Error {
    constructor(status, body) {
        super(`${status}: ${body.error ?? 'no error message'}${body.hint ? ` (${body.hint})` : ''}`);
        this.name = 'Refused';
        this.status = status;
        this.body = body;
    }
}

/** The control API of a running server. */
export class Control {
    constructor(url, token) {
        this.url = url;
        this.token = token;
    }

    /** Version, URLs, kubeconfig, resourceVersion and `nextRecord`. */
    state() {
        return this.#json('GET', '/v1');
    }

    /** Open responses. */
    async streams() {
        return (await this.#json('GET', '/v1/streams')).streams;
    }

    /** Active rules. */
    async rules() {
        return (await this.#json('GET', '/v1/rules')).rules;
    }

    /** Adds a rule: an object, or a text in YAML or JSON. */
    addRule(rule) {
        return this.#json('POST', '/v1/rules', rule);
    }

    /** Removes all rules. */
    async removeRules() {
        return (await this.#json('DELETE', '/v1/rules')).removed;
    }

    /** Removes a rule. */
    async removeRule(id) {
        return (await this.#json('DELETE', `/v1/rules/${id}`)).removed[0];
    }

    /** Waits for a record of the trace; times out with `Refused` and status 504. */
    waitFor(wait) {
        return this.#json('POST', '/v1/wait', wait);
    }

    /** The records of the trace from number `since` on. */
    async trace(since = 0) {
        const text = await this.#text('GET', `/v1/trace?since=${since}`);
        return text.split('\n').filter(Boolean).map((line) => JSON.parse(line));
    }

    /** The verdict on every client so far. */
    verdict() {
        return this.#json('GET', '/v1/verdict');
    }

    /** Removes all rules and faults, and restores the initial objects. */
    reset() {
        return this.#json('POST', '/v1/reset', '');
    }

    async #json(method, path, body) {
        return JSON.parse(await this.#text(method, path, body));
    }

    // Not `fetch`, which gives up on a wait after 300 s and may be sent to a proxy.
    #text(method, path, body) {
        const sent = typeof body === 'string' || body === undefined ? body : JSON.stringify(body);
        const headers = { Authorization: `Bearer ${this.token}`, Connection: 'close' };
        return new Promise((resolve, reject) => {
            const asked = request(this.url + path, { method, headers, agent: false }, (response) => {
                const chunks = [];
                response.on('data', (chunk) => chunks.push(chunk));
                response.on('error', reject);
                response.on('end', () => {
                    const text = Buffer.concat(chunks).toString();
                    if (response.statusCode < 300) {
                        return resolve(text);
                    }
                    return reject(new Refused(response.statusCode, JSON.parse(text)));
                });
            });
            asked.on('error', reject);
            asked.end(sent);
        });
    }
}
