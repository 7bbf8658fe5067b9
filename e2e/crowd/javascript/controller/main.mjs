// A controller: each ConfigMap gets an owned Secret, an annotation and an Event, by the replica that holds the Lease.
// The informer is that of https://kubernetes-client.github.io/javascript/docs/examples/watching-and-caching, the work queue
// that of client-go's controllers. The client has no leader election.

import { createHash } from 'node:crypto';
import { hostname } from 'node:os';

import * as k8s from 'client-node-2';

const NAMESPACE = 'default';
const FINAL_DELAY_MS = 30_000;
const LEASE = 'config-controller';
const LEASE_SECONDS = 15;
const RETRY_PERIOD_MS = 2000;
const DIGEST = 'config-controller.example.com/digest';
const identity = `${hostname()}_${process.pid}`;

const kc = new k8s.KubeConfig();
kc.loadFromDefault();
const core = kc.makeApiClient(k8s.CoreV1Api);
const coordination = kc.makeApiClient(k8s.CoordinationV1Api);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Leader election: create the Lease, or take it when its holder has not renewed it.

async function acquireOrRenew() {
    const now = new k8s.V1MicroTime();
    let lease;
    try {
        lease = await coordination.readNamespacedLease({ name: LEASE, namespace: NAMESPACE });
    } catch (error) {
        if (error.code !== 404) throw error;
        await coordination.createNamespacedLease({
            namespace: NAMESPACE,
            body: {
                metadata: { name: LEASE },
                spec: {
                    holderIdentity: identity,
                    leaseDurationSeconds: LEASE_SECONDS,
                    acquireTime: now,
                    renewTime: now,
                },
            },
        });
        return true;
    }
    const { holderIdentity, renewTime } = lease.spec;
    const isHeld = holderIdentity && now.getTime() - new Date(renewTime).getTime() < LEASE_SECONDS * 1000;
    if (holderIdentity !== identity) {
        if (isHeld) return false;
        lease.spec.holderIdentity = identity;
        lease.spec.acquireTime = now;
        lease.spec.leaseTransitions = (lease.spec.leaseTransitions ?? 0) + 1;
    }
    lease.spec.leaseDurationSeconds = LEASE_SECONDS;
    lease.spec.renewTime = now;
    await coordination.replaceNamespacedLease({ name: LEASE, namespace: NAMESPACE, body: lease });
    return true;
}

let isLeader = false;
let renewed = 0;
async function elect() {
    for (;;) {
        try {
            isLeader = await acquireOrRenew();
            renewed = Date.now();
        } catch (error) {
            console.error(`lease: ${error.message}`);
            isLeader &&= Date.now() - renewed < LEASE_SECONDS * 1000;
        }
        await sleep(RETRY_PERIOD_MS);
    }
}

// Work queue: a key is in it once, and is added again with a growing delay when its reconciliation fails.

const queue = new Set();
const failures = new Map();
const add = (object) => queue.add(object.metadata.name);

async function work() {
    for (;;) {
        const [name] = queue;
        if (!isLeader || name === undefined) {
            await sleep(100);
            continue;
        }
        queue.delete(name);
        try {
            await reconcile(name);
            failures.delete(name);
        } catch (error) {
            const count = (failures.get(name) ?? 0) + 1;
            failures.set(name, count);
            console.error(`${name}: ${error.message}`);
            setTimeout(() => queue.add(name), Math.min(100 * 2 ** count, FINAL_DELAY_MS));
        }
    }
}

async function reconcile(name) {
    const configMap = informer.get(name, NAMESPACE);
    if (!configMap || configMap.metadata.deletionTimestamp) return;
    const digest = createHash('sha256').update(JSON.stringify(configMap.data ?? {})).digest('hex');
    if (configMap.metadata.annotations?.[DIGEST] === digest) return;

    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name, uid: configMap.metadata.uid };
    const secret = { metadata: { name, ownerReferences: [{ ...owner, controller: true }] }, stringData: { digest } };
    try {
        await core.createNamespacedSecret({ namespace: NAMESPACE, body: secret });
    } catch (error) {
        if (error.code !== 409) throw error;
        const existing = await core.readNamespacedSecret({ name, namespace: NAMESPACE });
        existing.data = { digest: Buffer.from(digest).toString('base64') };
        await core.replaceNamespacedSecret({ name, namespace: NAMESPACE, body: existing });
    }
    await core.patchNamespacedConfigMap(
        { name, namespace: NAMESPACE, body: { metadata: { annotations: { [DIGEST]: digest } } } },
        k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.MergePatch),
    );
    await core.createNamespacedEvent({
        namespace: NAMESPACE,
        body: {
            metadata: { generateName: `${name}-` },
            involvedObject: { ...owner, namespace: NAMESPACE },
            type: 'Normal',
            reason: 'Reconciled',
            message: `Secret ${name} has the digest of this ConfigMap`,
            source: { component: 'config-controller' },
            firstTimestamp: new Date(),
            lastTimestamp: new Date(),
            count: 1,
        },
    });
    console.log(`Reconciled: ${name}`);
}

const informer = k8s.makeInformer(kc, `/api/v1/namespaces/${NAMESPACE}/configmaps`, () =>
    core.listNamespacedConfigMap({ namespace: NAMESPACE }),
);
informer.on('add', add);
informer.on('update', add);
informer.on('delete', add);
function restart(error) {
    console.error(`informer: ${error?.message ?? error}`);
    setTimeout(() => informer.start().catch(restart), 5000);
}
informer.on('error', restart);

process.on('SIGTERM', async () => {
    await informer.stop();
    process.exit(0);
});

informer.start().catch(restart);
elect();
work();
