// Requests to the control API, whose operations are in operations.mjs. It must not know processes.

import { request } from 'node:http';

import { Operations } from './operations.mjs';

/** The control API rejected a request. `body` has the mistakes with their positions. */
export class ControlError extends Error {
    constructor(status, body) {
        super(`${status}: ${body.error ?? 'no error message'}${body.hint ? ` (${body.hint})` : ''}`);
        this.name = 'ControlError';
        this.status = status;
        this.body = body;
    }
}

/** The control API of a running server. A wait that times out rejects with `ControlError` and status 504. */
export class Control extends Operations {
    constructor(url, token) {
        super();
        this.url = url;
        this.token = token;
    }

    async _send(method, path, body) {
        return JSON.parse(await this.#text(method, path, body));
    }

    async _lines(path) {
        const text = await this.#text('GET', path);
        return text.split('\n').filter(Boolean).map((line) => JSON.parse(line));
    }

    // Not `fetch`: it times out after 300 s, and may use a proxy.
    #text(method, path, body) {
        const payload = typeof body === 'string' || body === undefined ? body : JSON.stringify(body);
        const headers = { Authorization: `Bearer ${this.token}`, Connection: 'close' };
        return new Promise((resolve, reject) => {
            const sending = request(this.url + path, { method, headers, agent: false }, (response) => {
                const chunks = [];
                response.on('data', (chunk) => chunks.push(chunk));
                response.on('error', reject);
                response.on('end', () => {
                    const text = Buffer.concat(chunks).toString();
                    if (response.statusCode < 300) {
                        return resolve(text);
                    }
                    return reject(new ControlError(response.statusCode, JSON.parse(text)));
                });
            });
            sending.on('error', reject);
            sending.end(payload);
        });
    }
}
