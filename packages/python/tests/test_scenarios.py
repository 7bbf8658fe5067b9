"""Scenarios against a command that lists once and then fails, and what excuses it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fake_apiserver import ScenariosFailed, run_scenarios

SCENARIO = "watch/clean-eof-resumes-from-the-last-event"
LISTS_ONCE = """
import os, re, sys, urllib.request
server = re.search(r'https?://[^\\s",]+', open(os.environ["KUBECONFIG"]).read()).group()
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
opener.open(server + "/api/v1/namespaces/default/configmaps").read()
sys.exit(1)
"""
COMMAND = [sys.executable, "-c", LISTS_ONCE]
ONCE = ("--restart", "never")


def test_a_failure_is_raised_unless_it_is_known(tmp_path: Path) -> None:
    with pytest.raises(ScenariosFailed, match=SCENARIO) as failed:
        run_scenarios(COMMAND, [SCENARIO], arguments=ONCE)
    [result] = failed.value.results
    assert result["verdict"] == "failed"
    known = tmp_path / "known.yaml"
    known.write_text(f"- {{scenario: {SCENARIO}, outcome: {result['outcome']}, reason: it lists once, issue: none public}}\n")
    [result] = run_scenarios(COMMAND, [SCENARIO], known_failures=known, arguments=ONCE)
    assert (result["verdict"], result["known"]["reason"]) == ("known", "it lists once")


def test_an_unknown_library_is_named() -> None:
    with pytest.raises(ScenariosFailed, match="'nope'"):
        run_scenarios(COMMAND, [SCENARIO], libraries=["nope"])
