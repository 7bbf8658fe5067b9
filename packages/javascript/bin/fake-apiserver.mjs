#!/usr/bin/env node
// The command `fake-apiserver`, as `npx fake-apiserver` starts it: hands arguments, streams and signals to the program.

import { spawn } from 'node:child_process';

import { findBinary, INSTALL } from '../src/binary.mjs';

const child = spawn(findBinary(), process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => child.kill(signal));
}
child.on('error', (error) => {
    console.error(`cannot start fake-apiserver: ${error.message}\n${INSTALL}`);
    process.exitCode = 3;
});
child.on('exit', (code, signal) => {
    if (signal === null) {
        process.exitCode = code;
        return;
    }
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
});
