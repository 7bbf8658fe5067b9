"""An informer on a decoder that reads one gzip member: a streaming list, then its changes. Argument: Accept-Encoding of its requests.

It is written for the test of docs/kubernetes-1.37.md, and must not do anything else wrong that 1.37 shows.
"""
import http.client
import json
import os
import re
import sys
import time
import urllib.parse
import zlib

kubeconfig = open(os.environ["KUBECONFIG"]).read()
host = re.search(r'server"?: *"?http://([^"\s]+)', kubeconfig)[1]
version = None
while True:
    start = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    query = {"watch": "1", "allowWatchBookmarks": "true"} | ({"resourceVersion": version} if version else start)
    path = "/api/v1/namespaces/default/configmaps?" + urllib.parse.urlencode(query)
    try:
        connection = http.client.HTTPConnection(host)
        connection.request("GET", path, headers={"Accept-Encoding": sys.argv[1]})
        response = connection.getresponse()
        decoder = zlib.decompressobj(31) if response.headers.get("Content-Encoding") == "gzip" else None
        if response.status != 200:
            raise OSError(response.status)
        lines = b""
        while (chunk := response.read1()) and not (decoder and decoder.eof):
            lines += decoder.decompress(chunk) if decoder else chunk
            *whole, lines = lines.split(b"\n")
            for event in map(json.loads, whole):
                if event["type"] == "ERROR":
                    raise OSError(event)
                version = event["object"]["metadata"]["resourceVersion"]
    except OSError:
        version = None
        time.sleep(1)
    time.sleep(0.5)
