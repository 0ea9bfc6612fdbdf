"""The client with a tracker of its own, which may end before its jobs do."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from frameworks.mapreduce.api import Known
from frameworks.mapreduce.client import Target
from frameworks.mapreduce.client.own import OwnClient
from frameworks.mapreduce.tracker import journal
from mesos_py import Resources
from mesos_py.errors import MesosPyError, Unavailable
from tests.kit.mapreduce_workers import JOB, FakeWorkers, job
from tests.kit.waiting import until

AGENTS = {"a1": Resources.of(cpus=4, mem=4096)}


@pytest.mark.parametrize("end", ["the master", "its state"])
def test_who_waits_for_a_tracker_that_has_ended_is_told_why(
    tmp_path: Path, end: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(journal, "PAUSES", ())
    with FakeWorkers(AGENTS, lambda work: None) as cluster:
        state = tmp_path / "state"
        client = OwnClient(Target(master=cluster.address), str(state), temporary=True)
        try:
            client.submit(job(tmp_path))
            until(lambda: client.view(JOB).maps.running == 2)
            errors: list[BaseException] = []

            def wait() -> None:
                try:
                    Known(client, JOB).wait()
                except BaseException as error:
                    errors.append(error)

            waiting = threading.Thread(target=wait, daemon=True)
            waiting.start()
            if end == "the master":
                cluster.error("Framework has been removed")
            else:
                (state / "journal").rename(state / "gone")
                (state / "journal").write_text("")
                with pytest.raises(MesosPyError):
                    client.kill(JOB, "by hand")
            waiting.join(30)
            assert not waiting.is_alive()
            [error] = errors
            assert isinstance(error, MesosPyError)
            assert not isinstance(error, Unavailable)
            assert error.message.startswith("the tracker has ended: ")
            with pytest.raises(MesosPyError, match="the tracker has ended: "):
                client.kill(JOB, "its program was interrupted")
        finally:
            client.close()
        # What is not over may be gone on with.
        assert state.exists()
