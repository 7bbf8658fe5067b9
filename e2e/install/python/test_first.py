"""The first test of a project that has installed fake-apiserver and pytest, and nothing else."""

import json
import urllib.request

OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def test_a_client_lists_again_after_410(fake_apiserver):
    config_maps = fake_apiserver.url + "/api/v1/configmaps"

    def listed():
        with OPENER.open(config_maps) as response:
            return json.load(response)["metadata"]["resourceVersion"]

    with OPENER.open(f"{config_maps}?watch=true&resourceVersion={listed()}") as watch:
        fake_apiserver.expire(resource="configmaps")
        assert [json.loads(line)["object"]["code"] for line in watch] == [410]
    listed()
    fake_apiserver.expect_no_violations()
