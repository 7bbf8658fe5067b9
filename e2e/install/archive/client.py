"""A watch client of the standard library: lists ConfigMaps, watches, and lists again after an error event.

It must not know fake-apiserver: all it reads is KUBECONFIG.
"""

import json
import os
import re
import time
import urllib.error
import urllib.request

with open(os.environ["KUBECONFIG"], encoding="utf-8") as config:
    SERVER = re.search(r"https?://[^\s\",]+", config.read()).group()
CONFIG_MAPS = SERVER + "/api/v1/namespaces/default/configmaps"
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def listed() -> str:
    with OPENER.open(CONFIG_MAPS) as response:
        return json.load(response)["metadata"]["resourceVersion"]


def watched(version: str) -> str | None:
    """Returns the version to resume from, or None after an error event."""
    with OPENER.open(f"{CONFIG_MAPS}?watch=true&allowWatchBookmarks=true&resourceVersion={version}") as stream:
        for line in stream:
            event = json.loads(line)
            if event["type"] == "ERROR":
                return None
            version = event["object"]["metadata"]["resourceVersion"]
    return version


version = None
while True:
    try:
        version = watched(version or listed())
    except urllib.error.HTTPError as error:
        version = None if error.code == 410 else version
    except OSError:
        pass
    time.sleep(1)
