// The process: starts the server and stops it. Independent of test runners.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

import { findBinary, INSTALL } from './binary.mjs';
import { Control, ControlError } from './control.mjs';
import { runScenarios, ScenariosFailed } from './scenarios.mjs';

export { Control, ControlError, runScenarios, ScenariosFailed };

const STOP_MS = 10_000;
const GONE = { error: { code: 410, reason: 'Expired', message: 'The resourceVersion for the provided watch is too old.' } };

/** A client violated an invariant of LIST and WATCH, or no client listed or watched. */
export class Violations extends Error {
    constructor(message, verdict) {
        super(message);
        this.name = 'Violations';
        this.verdict = verdict;
    }
}

/** A running server. `await using server = await FakeApiserver.start()`, or call `stop()`. */
export class FakeApiserver {
    #child;
    #log;

    constructor(child, log, announced) {
        this.#child = child;
        this.#log = log;
        /** URL of the Kubernetes API. */
        this.url = announced.server;
        /** Path of a kubeconfig for the server. */
        this.kubeconfig = announced.kubeconfigs[0];
        /** The control API. */
        this.control = new Control(announced.control, announced.token);
    }

    /** Starts `fake-apiserver serve` with additional arguments. */
    static async start(...extra) {
        const binary = findBinary();
        // The server exits when its standard input is closed, also if this process is killed.
        const child = spawn(binary, ['serve', '--announce', 'json', '--exit-with-stdin', ...extra]);
        const log = [];
        child.stderr.setEncoding('utf8').on('data', (text) => log.push(text));
        const failed = once(child, 'close').then(
            () => Promise.reject(new Error(`fake-apiserver did not start:\n${log.join('')}`)),
            (error) => Promise.reject(new Error(`cannot start ${binary}: ${INSTALL}`, { cause: error })),
        );
        // Also rejects when the server stops normally: not an unhandled rejection.
        failed.catch(() => {});
        const [line] = await Promise.race([once(createInterface(child.stdout), 'line'), failed]);
        return new FakeApiserver(child, log, JSON.parse(line));
    }

    /** Adds a rule, such as `{ when: { list: 'next' }, do: { reply: { status: 503 } } }`. Without `when` its actions run immediately. */
    inject(rule) {
        return this.control.addRule(rule);
    }

    /** Ends open watches with a 410 Gone event: all, or those that match, such as `{ resource: 'pods' }`. */
    expire(from) {
        return this.inject({ ...(from && { from }), do: [GONE, { end: 'eof' }] });
    }

    /** Waits for a record of the trace: `{ when: { list: 2 } }`, `{ sent: { type: 'MODIFIED', name: 'web' } }`. */
    wait(condition) {
        return this.control.waitFor({ since: 0, ...condition });
    }

    /** Removes all rules and faults, and restores the initial objects. */
    reset() {
        return this.control.reset();
    }

    /** Returns the verdict on every client so far. */
    verdict() {
        return this.control.verdict();
    }

    /** Throws `Violations` if a client violated an invariant, or if none listed or watched. */
    async expectNoViolations() {
        const verdict = await this.verdict();
        if (verdict.outcome === 'nothing') {
            throw new Violations('no client listed or watched: nothing was judged', verdict);
        }
        if (verdict.outcome === 'mismatch') {
            const lines = verdict.clients
                .flatMap((client) => client.contradictions)
                .map((found) => `${found.check} ${found.client} reading ${found.reading}: ${found.sentence}\n    proof: ${found.proof}`);
            throw new Violations(['a client violated the rules of LIST and WATCH:', ...lines].join('\n'), verdict);
        }
    }

    /** Returns the log of the server: requests, responses, violations. */
    log() {
        return this.#log.join('');
    }

    /** Stops the server. Safe to call twice. */
    async stop() {
        if (this.#child.exitCode !== null || this.#child.signalCode !== null) {
            return;
        }
        const ended = once(this.#child, 'close');
        this.#child.kill('SIGTERM');
        const kill = setTimeout(() => this.#child.kill('SIGKILL'), STOP_MS);
        await ended;
        clearTimeout(kill);
    }

    async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
        await this.stop();
    }
}
