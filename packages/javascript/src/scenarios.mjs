// Scenarios against a command, as `fake-apiserver run` plays them. It must not know test runners.

import { spawn } from 'node:child_process';
import { once } from 'node:events';

import { findBinary } from './binary.mjs';

/** Verdicts that do not fail a run. */
const FINE = ['passed', 'warned', 'known', 'not_scored', 'skipped'];

/** The command failed scenarios that no list excuses, an entry of a list is stale, or nothing was judged. */
export class ScenariosFailed extends Error {
    constructor(message, results) {
        super(message);
        this.name = 'ScenariosFailed';
        /** The results, as `run --format json` prints them. */
        this.results = results;
    }
}

/**
 * Plays scenarios against a command that gets `KUBECONFIG`; resolves to the results, as `run --format json` prints them.
 *
 * `scenarios` are files, folders or ids such as `gone/`; none plays all that are built in. `libraries`, such as `client-node@1`, and
 * the file `knownFailures` list what does not count: the `verdict` of such a result is `known`. `arguments` are further ones of
 * `fake-apiserver run`. Rejects with `ScenariosFailed` for any other failure.
 */
export async function runScenarios(command, { scenarios = [], libraries = [], knownFailures, arguments: further = [] } = {}) {
    const lists = libraries.flatMap((library) => ['--library', library]);
    const known = knownFailures === undefined ? [] : ['--known-failures', knownFailures];
    const words = ['run', '--format', 'json', ...lists, ...known, ...further, ...scenarios, '--', ...command];
    const child = spawn(findBinary(), words, { stdio: ['ignore', 'pipe', 'pipe'] });
    const text = async (stream) => (await stream.setEncoding('utf8').toArray()).join('');
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    const lines = stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line));
    const results = lines.filter((line) => !line.footer);
    if (code !== 0) {
        const failed = results
            .filter((result) => !FINE.includes(result.verdict))
            .map((result) => `${result.id ?? result.file}: ${result.message}`);
        const stale = lines.flatMap((line) => line.footer?.stale ?? []).map((entry) => `${JSON.stringify(entry)}: a known failure that passes`);
        throw new ScenariosFailed([`fake-apiserver run: exit code ${code}`, ...failed, ...stale, stderr.trim()].join('\n').trim(), results);
    }
    return results;
}
