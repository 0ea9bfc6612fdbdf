"""Outputs that go on failing to be written: shown, and not for ever."""

from __future__ import annotations

from frameworks.mapreduce.core.views import Trouble
from frameworks.mapreduce.work import Failure
from tests.kit.mapreduce_brain import Shell, job_id, options, spec, splits

WHAT = "completing it"


def trouble(since_s: float = 1000.0, what: str = WHAT, tries: int = 3) -> Trouble:
    return Trouble(what=what, why="OSError: away", tries=tries, since_s=since_s)


def finishing() -> Shell:
    shell = Shell(options())
    shell.agent("a")
    shell.submit(spec(reduces=0), splits(1))
    shell.offer()
    shell.finish(*shell.running())
    shell.commit()
    assert shell.brain.view(job_id()).state == "finishing"
    return shell


def test_of_several_troubles_the_oldest_is_shown_until_it_is_over():
    shell = finishing()
    shell.brain.troubled(job_id(), "other", trouble(1001.0, "other"))
    shell.brain.troubled(job_id(), WHAT, trouble())
    shell.brain.troubled(job_id(), WHAT, trouble(tries=4))
    assert shell.brain.view(job_id()).trouble == trouble(tries=4)
    shell.brain.troubled(job_id(), WHAT, None)
    assert shell.brain.view(job_id()).trouble == trouble(1001.0, "other")
    shell.brain.finished(job_id(), shell.now_s)
    # What is heard late is of no job, or of one that has ended.
    shell.brain.troubled(job_id(), WHAT, trouble())
    shell.brain.troubled("job_9_0009", WHAT, trouble())
    view = shell.brain.view(job_id())
    assert (view.state, view.trouble) == ("succeeded", None)


def test_a_job_whose_output_cannot_be_completed_has_failed_also_for_who_comes_after():
    shell = finishing()
    shell.sleep(600)
    shell.brain.output_failed(job_id(), trouble(shell.now_s - 600), shell.now_s)
    shell.brain.output_failed(job_id(), trouble(), shell.now_s)
    shell.drain()
    views = [shell.brain.view(job_id())]
    shell.restart()
    for view in (*views, shell.brain.view(job_id())):
        assert (view.state, view.trouble) == ("failed", None)
        assert view.why == (
            "output /out/1: completing it has failed: OSError: away "
            "(3 tries in 600 s; mesos.output.patience)"
        )
        assert view.failure == Failure(blame="job", message=view.why)


def test_a_part_that_cannot_be_moved_fails_the_job_and_no_agent_is_blamed():
    shell = Shell(options())
    shell.agent("a")
    shell.submit(spec(reduces=0), splits(1))
    shell.offer()
    shell.finish(*shell.running())
    shell.brain.output_failed(job_id(), trouble(what="moving"), shell.now_s)
    shell.drain()
    view = shell.brain.view(job_id())
    assert (view.state, view.maps.attempts_failed) == ("stopping", 0)
    assert view.failure is not None
    assert "moving has failed: OSError: away" in view.failure.message
    assert [one.failures for one in shell.brain.agents()] == [0]
    shell.tick(shell.options.stop_s)
    assert [order.outcome for order in shell.finishes] == ["failed"]
    # Nor can what is left be removed: it has ended all the same.
    shell.brain.output_failed(job_id(), trouble(what="removing"), shell.now_s)
    view = shell.brain.view(job_id())
    assert view.state == "failed"
    assert "moving has failed" in view.why
