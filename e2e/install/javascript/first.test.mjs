// The first test of a project that has installed fake-apiserver and nothing else.

import assert from 'node:assert/strict';
import { get } from 'node:http';
import { test } from 'node:test';

import { FakeApiserver } from 'fake-apiserver';

test('a client lists again after 410', async () => {
    const server = await FakeApiserver.start();
    const opened = (query) =>
        new Promise((resolve, reject) => {
            get(`${server.url}/api/v1/configmaps${query}`, { agent: false }, resolve).on('error', reject);
        });
    const read = async (response) => (await response.toArray()).join('');
    const listed = async () => JSON.parse(await read(await opened(''))).metadata.resourceVersion;
    try {
        const watch = await opened(`?watch=true&resourceVersion=${await listed()}`);
        await server.expire({ resource: 'configmaps' });
        assert.equal(JSON.parse(await read(watch)).object.code, 410);
        await listed();
        await server.expectNoViolations();
    } finally {
        await server.stop();
    }
});
