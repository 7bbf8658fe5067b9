// The watch of the README, with its events as lines of the adapter protocol.

import { createInterface } from 'node:readline';

import { K8s, kind, WatchEvent } from 'kubernetes-fluent-client';

const emit = (ev, keys = {}) => console.log(JSON.stringify({ ev, ...keys }));
const words = { ADDED: 'add', MODIFIED: 'update', DELETED: 'delete' };

emit('hello', {
    protocol: 1,
    client: { name: 'kubernetes-fluent-client', lang: 'javascript', version: '3.11.11' },
    contracts: ['informer'],
    caps: ['ordered'],
    resources: ['configmaps'],
    recovers: 'library',
});

for await (const line of createInterface({ input: process.stdin })) {
    const { cmd, namespace } = JSON.parse(line);
    if (cmd === 'stop') {
        process.exit(0);
    }
    const watcher = K8s(kind.ConfigMap)
        .InNamespace(namespace)
        .Watch(({ metadata }, phase) => {
            const { namespace: ns, name, uid, resourceVersion: rv } = metadata;
            emit(words[phase], { ns, name, uid, rv });
        });
    watcher.events.once(WatchEvent.LIST, () => setImmediate(() => emit('synced')));
    watcher.start();
}
