// The watch of kubernetes-fluent-client, as in its README: it lists, watches and recovers by itself, and calls back. The
// override in package.json is for its command-line program, which requires a version of quicktype-core that the registry lacks.

import { readFileSync } from 'node:fs';

import { K8s, kind, WatchEvent } from 'kubernetes-fluent-client';

import { emit, emitError, identity, main } from './adapter.mjs';

const { version } = JSON.parse(
    readFileSync(new URL('node_modules/kubernetes-fluent-client/package.json', import.meta.url)),
);

const RESOURCES = {
    configmaps: kind.ConfigMap,
    pods: kind.Pod,
    secrets: kind.Secret,
    services: kind.Service,
    'jobs.batch': kind.Job,
};
const WORDS = { ADDED: 'add', MODIFIED: 'update', DELETED: 'delete' };
const ERRORS = [
    WatchEvent.NETWORK_ERROR,
    WatchEvent.DATA_ERROR,
    WatchEvent.LIST_ERROR,
    WatchEvent.WATCH_ERROR,
    WatchEvent.GIVE_UP,
];

/** Key and value of each requirement of a selector, as the library takes and joins them. */
function requirements(selector) {
    return (selector?.split(',') ?? []).map((requirement) => {
        const [key, ...value] = requirement.split('=');
        return [key, value.join('=')];
    });
}

async function follow({ resource, namespace, options }) {
    let all = K8s(RESOURCES[[resource.plural, resource.group].filter(Boolean).join('.')]);
    if (namespace) {
        all = all.InNamespace(namespace);
    }
    for (const [key, value] of requirements(options.labelSelector)) {
        all = all.WithLabel(key, value);
    }
    for (const [key, value] of requirements(options.fieldSelector)) {
        all = all.WithField(key, value);
    }
    const watcher = all.Watch((object, phase) => {
        if (WORDS[phase] && object) {
            emit(WORDS[phase], identity(object));
        } else if (phase === 'BOOKMARK') {
            emit('bookmark', { rv: object.metadata.resourceVersion });
        } else {
            // ERROR with a Status, and what has no type or no object.
            emitError(Object.assign(new Error(`${phase}: ${JSON.stringify(object)}`), { code: object?.code }));
        }
    });

    let synced = false;
    // The library has no signal for its first list: it delivers the list on arrival, page by page.
    watcher.events.on(WatchEvent.LIST, ({ metadata }) => {
        if (!synced && !metadata.continue) {
            synced = true;
            setImmediate(() => emit('synced'));
        }
    });
    ERRORS.forEach((event) => watcher.events.on(event, emitError));
    watcher.events.on(WatchEvent.OLD_RESOURCE_VERSION, (old) =>
        emitError(Object.assign(new Error(`${WatchEvent.OLD_RESOURCE_VERSION} ${old}`), { code: 410 })),
    );
    await watcher.start();
}

const url = 'https://github.com/defenseunicorns/kubernetes-fluent-client';
main(
    {
        client: { name: 'kubernetes-fluent-client', lang: 'javascript', version, url, issues: `${url}/issues` },
        caps: ['selectors', 'field-selectors', 'gzip', 'ordered', 'errors'],
        resources: Object.keys(RESOURCES),
        recovers: 'library',
    },
    follow,
    () => [],
);
