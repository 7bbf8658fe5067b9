// The watch of the README, with its defaults.
// https://github.com/defenseunicorns/kubernetes-fluent-client#readme

import { K8s, kind } from 'kubernetes-fluent-client';

const watcher = K8s(kind.ConfigMap)
    .InNamespace('default')
    .Watch((configMap, phase) => {
        console.log(`ConfigMap ${configMap.metadata?.name} is ${phase}`);
    });

// This will run until the process is terminated or the watch is aborted
await watcher.start();

process.on('SIGTERM', () => {
    watcher.close();
    process.exit(0);
});
