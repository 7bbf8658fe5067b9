import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { get } from 'node:http';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, test } from 'node:test';

import { ControlError, FakeApiserver, Violations } from '../src/index.mjs';

let server;
beforeEach(async () => {
    server = await FakeApiserver.start();
});
afterEach(() => server.stop());

/** Returns the response to a GET request. */
function opened(path) {
    return new Promise((resolve, reject) => {
        get(server.url + path, { agent: false }, resolve).on('error', reject);
    });
}

async function read(path) {
    const response = await opened(path);
    return JSON.parse((await response.toArray()).join(''));
}

test('a rule matches its request', async () => {
    assert.match(await readFile(server.kubeconfig, 'utf8'), new RegExp(server.url));
    const added = await server.inject({ name: 'flaky', when: { list: 'next' }, do: { reply: { status: 503 } } });
    assert.deepEqual((await server.control.rules()).map((rule) => rule.name), ['flaky']);
    assert.equal((await read('/api/v1/pods')).code, 503);
    assert.deepEqual(await server.control.rules(), []);
    const found = await server.wait({ when: { list: 1 }, since: added.nextRecord });
    assert.match(found.line, /LIST/);
    assert.notEqual((await server.control.trace(added.nextRecord)).length, 0);
    await server.expectNoViolations();
});

test('rules can be removed', async () => {
    const delay = { when: { list: 'next' }, do: { delay: '1s' } };
    const first = await server.inject(delay);
    await server.inject('{when: {list: next}, do: {delay: 1s}}');
    await server.control.removeRule(first.rule.id);
    assert.equal((await server.control.state()).rules, 1);
    assert.equal((await server.control.removeRules()).length, 1);
    await server.inject(delay);
    await server.reset();
    assert.equal((await server.control.state()).rules, 0);
    assert.deepEqual(await server.control.streams(), []);
});

test('a mistake in a rule has a position', async () => {
    await assert.rejects(server.inject({ do: { explode: true } }), (error) => {
        assert(error instanceof ControlError);
        assert.equal(error.status, 400);
        assert.equal(error.body.mistakes[0].line, 1);
        return true;
    });
});

test('a client that resumes from an expired version is a violation; no client is no verdict', async () => {
    await assert.rejects(server.expectNoViolations(), /no client listed or watched/);
    const { metadata } = await read('/api/v1/configmaps');
    const path = `/api/v1/configmaps?watch=true&resourceVersion=${metadata.resourceVersion}`;
    const watch = await opened(path);
    await server.expire({ resource: 'configmaps' });
    for await (const line of createInterface(watch)) {
        assert.equal(JSON.parse(line).object.code, 410);
    }
    const again = await opened(path);
    await assert.rejects(server.expectNoViolations(), (error) => error instanceof Violations && /INV-04/.test(error.message));
    again.destroy();
});

test('a missing binary is named in the error', async () => {
    const before = process.env.FAKE_APISERVER_BIN;
    process.env.FAKE_APISERVER_BIN = 'no-such-fake-apiserver';
    try {
        await assert.rejects(FakeApiserver.start(), /cannot start no-such-fake-apiserver/);
    } finally {
        process.env.FAKE_APISERVER_BIN = before;
    }
});
