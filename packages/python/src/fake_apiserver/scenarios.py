"""Scenarios against a command, as `fake-apiserver run` plays them. It must not know pytest."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence

from fake_apiserver.operations import Json
from fake_apiserver.server import find_binary

FINE = frozenset({"passed", "warned", "known", "not_scored", "skipped"})
"""Verdicts that do not fail a run."""


class ScenariosFailed(AssertionError):
    """The command failed scenarios that no list excuses, an entry of a list is stale, or nothing was judged."""

    def __init__(self, message: str, results: list[Json]) -> None:
        super().__init__(message)
        self.results = results


def run_scenarios(
    command: Sequence[str | os.PathLike[str]],
    scenarios: Sequence[str | os.PathLike[str]] = (),
    *,
    libraries: Sequence[str] = (),
    known_failures: str | os.PathLike[str] | None = None,
    arguments: Sequence[str] = (),
    binary: str | os.PathLike[str] | None = None,
) -> list[Json]:
    """Plays scenarios against a command that gets `KUBECONFIG`; returns the results, as `run --format json` prints them.

    `scenarios` are files, folders or ids such as `gone/`; none plays all that are built in. `libraries`, such as `kopf@1`, and the
    file `known_failures` list what does not count: the `verdict` of such a result is `known`. `arguments` are further ones of
    `fake-apiserver run`. Raises `ScenariosFailed` for any other failure.
    """
    words = [os.fspath(binary or find_binary()), "run", "--format", "json"]
    for library in libraries:
        words += ["--library", library]
    if known_failures is not None:
        words += ["--known-failures", os.fspath(known_failures)]
    words += [*arguments, *(os.fspath(one) for one in scenarios), "--", *(os.fspath(word) for word in command)]
    played = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in played.stdout.splitlines()]
    results = [line for line in lines if "footer" not in line]
    if played.returncode != 0:
        failed = [f"{one.get('id', one.get('file'))}: {one['message']}" for one in results if one["verdict"] not in FINE]
        stale = [f"{line['footer']['stale']}: known failures that pass" for line in lines if line.get("footer", {}).get("stale")]
        reasons = "\n".join([*failed, *stale, played.stderr.strip()]).strip()
        raise ScenariosFailed(f"fake-apiserver run: exit code {played.returncode}\n{reasons}", results)
    return results
