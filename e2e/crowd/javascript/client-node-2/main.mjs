// The informer of the example, started again 5 s after an error.
// https://github.com/kubernetes-client/javascript/blob/main/examples/typescript/informer/informer.ts

import * as k8s from 'client-node-2';

const kc = new k8s.KubeConfig();
kc.loadFromDefault();

const k8sApi = kc.makeApiClient(k8s.CoreV1Api);
const namespace = 'default';
const listFn = () => k8sApi.listNamespacedConfigMap({ namespace });
const informer = k8s.makeInformer(kc, `/api/v1/namespaces/${namespace}/configmaps`, listFn);

informer.on('add', (obj) => {
    console.log(`Added: ${obj.metadata.name}`);
});
informer.on('update', (obj) => {
    console.log(`Updated: ${obj.metadata.name}`);
});
informer.on('delete', (obj) => {
    console.log(`Deleted: ${obj.metadata.name}`);
});
informer.on('error', (err) => {
    console.error(err);
    // Restart informer after 5sec
    setTimeout(() => {
        informer.start();
    }, 5000);
});

informer.start();

process.on('SIGTERM', async () => {
    await informer.stop();
    process.exit(0);
});
