import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { runScenarios, ScenariosFailed } from '../src/index.mjs';

const SCENARIO = 'watch/clean-eof-resumes-from-the-last-event';
const LISTS_ONCE = `
import { readFileSync } from 'node:fs';
const [server] = readFileSync(process.env.KUBECONFIG, 'utf8').match(/https?:[^\\s",]+/);
await (await fetch(server + '/api/v1/namespaces/default/configmaps')).text();
process.exit(1);
`;
const COMMAND = [process.execPath, '--input-type=module', '-e', LISTS_ONCE];
const OPTIONS = { scenarios: [SCENARIO], arguments: ['--restart', 'never'] };

test('a failure rejects unless it is known', async () => {
    const error = await runScenarios(COMMAND, OPTIONS).catch((error) => error);
    assert(error instanceof ScenariosFailed, error);
    assert(error.message.includes(SCENARIO), error.message);
    const [{ outcome, verdict }] = error.results;
    assert.equal(verdict, 'failed');
    const folder = await mkdtemp(join(tmpdir(), 'fake-apiserver-'));
    const knownFailures = join(folder, 'known.yaml');
    await writeFile(knownFailures, `- {scenario: ${SCENARIO}, outcome: ${outcome}, reason: it lists once, issue: none public}\n`);
    const [result] = await runScenarios(COMMAND, { ...OPTIONS, knownFailures });
    await rm(folder, { recursive: true });
    assert.deepEqual([result.verdict, result.known.reason], ['known', 'it lists once']);
});

test('an unknown library is named', async () => {
    await assert.rejects(runScenarios(COMMAND, { ...OPTIONS, libraries: ['nope'] }), /'nope'/);
});
