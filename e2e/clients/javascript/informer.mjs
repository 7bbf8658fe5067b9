// `makeInformer` over the ConfigMaps of all namespaces, restarted after an error, as in its example.
// Prints the lines described in e2e/src/client.rs.

import { CoreV1Api, KubeConfig, makeInformer } from '@kubernetes/client-node';

// The example waits for 5 s, which would slow the tests.
const PAUSE_MS = 200;

function say(event, fields) {
    process.stdout.write(`${JSON.stringify({ event, ...fields })}\n`);
}

function sayObject(event, object) {
    say(event, { name: object.metadata.name, value: object.metadata.labels?.v ?? '' });
}

process.stdin.resume().on('end', () => process.exit(0));

const config = new KubeConfig();
config.loadFromDefault();
const api = config.makeApiClient(CoreV1Api);
const informer = makeInformer(config, '/api/v1/configmaps', () => api.listConfigMapForAllNamespaces());

informer.on('add', (object) => sayObject('added', object));
informer.on('update', (object) => sayObject('updated', object));
informer.on('delete', (object) => sayObject('deleted', object));

// An error stops it: an error of the stream is an event, one of the list an exception.
function stopped(error) {
    say('error', { message: String(error?.message ?? error) });
    setTimeout(start, PAUSE_MS);
}

let synced = false;
async function start() {
    try {
        await informer.start();
    } catch (error) {
        return stopped(error);
    }
    if (!synced) {
        synced = true;
        say('synced');
    }
}

informer.on('error', stopped);
await start();
