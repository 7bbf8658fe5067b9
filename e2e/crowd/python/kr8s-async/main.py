"""`kr8s.asyncio.watch`, started again when it ends or fails.

https://docs.kr8s.org/en/stable/asyncio.html
"""

import asyncio
import signal

import httpx
import kr8s
import kr8s.asyncio


async def watch_config_maps():
    while True:
        try:
            async for event, config_map in kr8s.asyncio.watch("configmaps", namespace="default"):
                print(event, config_map.name)
        except (kr8s.APITimeoutError, kr8s.ServerError, httpx.HTTPError) as error:
            print(f"The watch failed: {error}")
        await asyncio.sleep(1)


async def main():
    task = asyncio.create_task(watch_config_maps())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        pass


if __name__ == "__main__":
    asyncio.run(main())
