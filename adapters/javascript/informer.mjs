// The informer of @kubernetes/client-node, restarted 5 s after an error, as in its example, and no sooner than the headers of
// the error ask for: the restart is the caller's. The argument is the major version: 1 or 2.

import { readFileSync } from 'node:fs';

import { emit, emitError, identity, main } from './adapter.mjs';

const folder = process.argv[2] === '1' ? 'client-node-1' : '@kubernetes/client-node';
const { BatchV1Api, CoreV1Api, KubeConfig, ListWatch, Watch } = await import(folder);
const { version } = JSON.parse(readFileSync(new URL(`node_modules/${folder}/package.json`, import.meta.url)));

const RESTART_MS = 5000;
const RESOURCES = {
    configmaps: [CoreV1Api, 'ConfigMap'],
    pods: [CoreV1Api, 'Pod'],
    secrets: [CoreV1Api, 'Secret'],
    services: [CoreV1Api, 'Service'],
    'jobs.batch': [BatchV1Api, 'Job'],
};

let informer;

async function follow({ resource, namespace, options }) {
    const config = new KubeConfig();
    config.loadFromDefault();
    const [Api, kind] = RESOURCES[[resource.plural, resource.group].filter(Boolean).join('.')];
    const api = config.makeApiClient(Api);
    const { labelSelector, fieldSelector } = options;
    const root = resource.group ? `/apis/${resource.group}` : '/api';
    const path = `${root}/${resource.version}${namespace ? `/namespaces/${namespace}` : ''}/${resource.plural}`;

    let synced = false;
    async function list() {
        const request = { namespace, labelSelector, fieldSelector };
        const listed = namespace
            ? await api[`listNamespaced${kind}`](request)
            : await api[`list${kind}ForAllNamespaces`](request);
        // The informer has no signal for its first list: it delivers the list on arrival.
        if (!synced) {
            synced = true;
            setImmediate(() => emit('synced'));
        }
        return listed;
    }

    informer = new ListWatch(path, new Watch(config), list, false, labelSelector, fieldSelector);
    informer.on('add', (object) => emit('add', identity(object)));
    informer.on('update', (object) => emit('update', identity(object)));
    informer.on('delete', (object) => emit('delete', identity(object)));
    function restart(error) {
        emitError(error);
        const retryAfter = Number(error?.headers?.['retry-after']) || 0;
        setTimeout(() => informer.start().catch(restart), Math.max(RESTART_MS, retryAfter * 1000));
    }
    informer.on('error', restart);
    await informer.start().catch(restart);
}

const url = 'https://github.com/kubernetes-client/javascript';
main(
    {
        client: { name: `kubernetes-javascript-${version.split('.')[0]}`, lang: 'javascript', version, url, issues: `${url}/issues` },
        caps: ['selectors', 'field-selectors', 'ordered', 'errors', 'cache'],
        resources: Object.keys(RESOURCES),
        recovers: 'caller',
    },
    follow,
    () => informer?.list().map(identity) ?? [],
);
