"""kopf: the stream of list and watch events beneath its operator, with the operator's settings.

It is not public. `@kopf.on.event` delivers neither the end of a list nor the objects gone since the last one, so an
adapter built on it could not report a snapshot. An exception that leaves the stream ends an operator.
"""

import asyncio
import logging

import kopf
from kopf._cogs.clients import auth, watching
from kopf._cogs.structs import credentials, references

from adapter import EVENTS, emit_event_async, main


async def follow(start):
    resource, options = start["resource"], start["options"]
    settings = kopf.OperatorSettings()
    settings.watching.server_timeout = options.get("timeoutSeconds")
    settings.watching.initial_streaming = options.get("initialList") == "stream"
    if "pageSize" in options:
        settings.watching.chunk_size = options["pageSize"]
    if "idleTimeoutMs" in options:
        settings.watching.inactivity_timeout = options["idleTimeoutMs"] / 1000
    vault = credentials.Vault()
    auth.vault_var.set(vault)
    await vault.populate({"kubeconfig": kopf.login_with_kubeconfig(settings=settings, logger=logging.getLogger())})
    stream = watching.infinite_watch(
        settings=settings,
        resource=references.Resource(
            group=resource["group"],
            version=resource["version"],
            plural=resource["plural"],
            kind=resource["kind"],
            namespaced="namespace" in start,
        ),
        namespace=start.get("namespace"),
    )
    listing = False
    async for event in stream:
        listed = event is watching.Bookmark.LISTED
        if not listing and (listed or event["type"] is None):
            listing = True
            await emit_event_async("init")
        if listed:
            listing = False
            await emit_event_async("init-done")
        elif event["type"] is None:
            await emit_event_async("init-apply", obj=event["object"])
        elif event["type"] in EVENTS:
            await emit_event_async(EVENTS[event["type"]], obj=event["object"])


main(
    "kopf",
    "kopf",
    lambda start: asyncio.run(follow(start)),
    caps=["page-size", "streaming-list", "timeout", "idle-timeout", "gzip", "init-events", "ordered", "pause"],
    recovers="library",
)
