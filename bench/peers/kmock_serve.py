"""kmock (PyPI) as a peer of the benchmark: its Kubernetes emulator on a free port, until it is killed."""

import asyncio

import kmock


async def main() -> None:
    async with kmock.KubernetesEmulator() as emulator:
        async with kmock.Server(emulator) as server:
            print(f"listening on {server.url.host}:{server.url.port}", flush=True)
            await asyncio.Event().wait()


asyncio.run(main())
