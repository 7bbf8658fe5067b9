// A controller: a ConfigMap labelled greet=yes gets the annotation greeting.

import { CoreV1Api, makeInformer, PatchStrategy, setHeaderOptions } from '@kubernetes/client-node';

const RETRY_MS = 200;

/** Reconciles until the returned function is called. */
export async function run(config) {
    const api = config.makeApiClient(CoreV1Api);
    const namespace = 'default';
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const informer = makeInformer(config, path, () => api.listNamespacedConfigMap({ namespace }));

    async function greet({ metadata }) {
        if (metadata.labels?.greet !== 'yes' || metadata.annotations?.greeting) {
            return;
        }
        const body = { metadata: { annotations: { greeting: `hello ${metadata.name}` } } };
        const merge = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);
        await api.patchNamespacedConfigMap({ name: metadata.name, namespace, body }, merge);
    }

    let stopped = false;
    let retry;
    async function start() {
        try {
            await informer.start();
        } catch (error) {
            again(error);
        }
    }
    // An error ends the informer: of the stream as an event, of the list as an exception.
    function again() {
        if (!stopped) {
            retry = setTimeout(start, RETRY_MS);
        }
    }
    informer.on('add', greet);
    informer.on('update', greet);
    informer.on('error', again);
    await start();
    return async () => {
        stopped = true;
        clearTimeout(retry);
        await informer.stop();
    };
}
