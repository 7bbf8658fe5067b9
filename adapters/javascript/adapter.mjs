// Shared by the adapters of this folder: the messages of docs/adapter-protocol.md, and commands. It must not know any
// client.

import { createInterface } from 'node:readline';

export function emit(ev, keys = {}) {
    process.stdout.write(`${JSON.stringify({ ev, ...keys })}\n`);
}

/** Key, UID and version of an object, as keys of an event. */
export function identity({ metadata }) {
    // Without UID or version the whole object is printed.
    if (!metadata.uid || !metadata.resourceVersion) {
        return { obj: { metadata } };
    }
    return { ns: metadata.namespace, name: metadata.name, uid: metadata.uid, rv: metadata.resourceVersion };
}

export function emitError(error) {
    console.error(error);
    const code = Number(error?.statusCode ?? error?.code);
    emit('error', {
        message: `${error?.name ?? 'Error'}: ${error?.message ?? error}`.slice(0, 2000),
        code: Number.isInteger(code) ? code : undefined,
    });
}

/** Prints `hello`, calls `follow(start)` and carries out commands. `dump()` lists identities. */
export function main(hello, follow, dump) {
    emit('hello', { protocol: 1, contracts: ['informer'], ...hello });
    // Uncaught errors of a library are reported, and do not end the process.
    process.on('uncaughtException', emitError);
    const lines = createInterface({ input: process.stdin });
    lines.on('line', async (line) => {
        const command = JSON.parse(line);
        switch (command.cmd) {
            case 'start':
                if (command.contract !== 'informer') {
                    emit('unsupported', { what: 'contract', why: 'only informer' });
                    return;
                }
                try {
                    await follow(command);
                } catch (error) {
                    emitError(error);
                    emit('end');
                }
                return;
            case 'dump':
                emit('dump', { id: command.id, items: dump() });
                return;
            case 'stop':
                process.exit(0);
                return;
            default:
                emit('unsupported', { what: 'cmd', why: `no ${command.cmd}` });
        }
    });
    lines.on('close', () => process.exit(0));
}
