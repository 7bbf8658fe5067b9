// The controller keeps working after a 410 Gone, and the judge has nothing against its requests.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';
import { FakeApiserver } from 'fake-apiserver';

import { run } from './controller.mjs';

test('the controller survives a 410', async () => {
    const server = await FakeApiserver.start();
    const config = new KubeConfig();
    config.loadFromFile(server.kubeconfig);
    const stop = await run(config);
    try {
        const create = (name) =>
            config.makeApiClient(CoreV1Api).createNamespacedConfigMap({
                namespace: 'default',
                body: { metadata: { name, labels: { greet: 'yes' } } },
            });
        const greeted = (name) => server.wait({ when: { request: 1 }, from: { verb: 'patch', name } });
        const configMaps = { resource: 'configmaps' };

        await server.wait({ when: { watch: 1 }, from: configMaps });
        await create('before');
        await greeted('before');

        const expired = await server.expire(configMaps);
        assert.notEqual(expired.streams.length, 0, 'the controller has a watch open');
        await create('after');
        await server.wait({ when: { list: 1 }, from: configMaps, since: expired.nextRecord });
        await greeted('after');

        await server.expectNoViolations();
    } finally {
        await stop();
        await server.stop();
    }
});
