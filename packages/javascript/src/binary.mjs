// Finds the program. It must not know how it is started.

import { createRequire } from 'node:module';

/** Returns the path of the program: `FAKE_APISERVER_BIN`, that of the package for this platform, or a name to find on `PATH`. */
export function findBinary() {
    if (process.env.FAKE_APISERVER_BIN) {
        return process.env.FAKE_APISERVER_BIN;
    }
    const name = `@fake-apiserver/${process.platform}-${process.arch}/bin/fake-apiserver`;
    try {
        return createRequire(import.meta.url).resolve(name);
    } catch {
        // npm installs it unless the platform has none, or optional dependencies are left out.
        return 'fake-apiserver';
    }
}

/** What to do if the program cannot be started. */
export const INSTALL =
    `npm has no program for ${process.platform}-${process.arch}, or left out optional dependencies: install a release, or set FAKE_APISERVER_BIN`;
