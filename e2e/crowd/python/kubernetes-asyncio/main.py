"""The watch of the example, started again 5 s after an error.

https://github.com/tomplus/kubernetes_asyncio/blob/main/examples/watch_ns_pods.py
"""

import asyncio
import signal

import aiohttp
from kubernetes_asyncio import client, config, watch


async def watch_config_maps():
    async with client.ApiClient() as api:
        v1 = client.CoreV1Api(api)
        while True:
            try:
                async with watch.Watch().stream(v1.list_namespaced_config_map, "default") as stream:
                    async for event in stream:
                        etype, obj = event["type"], event["object"]
                        print(f"{etype} configmap {obj.metadata.name}")
            except (client.ApiException, aiohttp.ClientError, asyncio.TimeoutError) as error:
                print(f"The watch failed: {error}")
                await asyncio.sleep(5)


async def main():
    # Load the kubeconfig file specified in the KUBECONFIG environment variable, or fall back to `~/.kube/config`.
    await config.load_kube_config()

    task = asyncio.create_task(watch_config_maps())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        pass


if __name__ == "__main__":
    asyncio.run(main())
