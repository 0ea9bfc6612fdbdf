"""What `mesos-py webfarm up` can be told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from frameworks.webfarm.core.farm import FarmRules
from frameworks.webfarm.core.haproxy import Front
from frameworks.webfarm.core.policy import Limits
from frameworks.webfarm.core.server import Apache
from mesos_py import Resources, config, logs
from mesos_py.config import at_least, between, flag

ENV_PREFIX: Final = "MESOS_PY_WEBFARM_"
STATE_DIRECTORY: Final = Path("~/.mesos-py/webfarm")


@dataclass(frozen=True)
class FarmFlags:
    """What `mesos-py webfarm up` can be told."""

    min: int = flag(1, kind=config.integer, check=at_least(1), help="Never fewer servers")
    max: int = flag(8, kind=config.integer, check=at_least(1), help="Never more servers")
    target_sessions: float = flag(
        150.0,
        kind=config.number,
        check=at_least(0.001),
        help="Sessions per second that one server is to get at most",
    )
    port: int = flag(8080, kind=config.port_number, help="Where haproxy listens for users")
    bind: str = flag("", kind=config.text, help="At which address; empty: at all")
    site: str = flag(
        "",
        kind=config.text,
        help="What is served: a URI of an archive that agents fetch (.tar.gz, .zip ...), or a"
        " directory that all agents have (/srv/site/).  Empty: what was deployed last",
    )
    state_dir: Path = flag(
        STATE_DIRECTORY.expanduser(),
        kind=config.path,
        help="What the farm is known by: its files, haproxy's, and its socket",
    )
    name: str = flag(
        "webfarm", kind=config.text, check=config.not_empty, help="Name of the framework"
    )
    role: str = flag("*", kind=config.text, check=config.not_empty, help="Role to run under")
    user: str = flag(
        "",
        kind=config.text,
        help="Who servers run as; empty: who runs this, www-data instead of root",
    )
    cpus: float = flag(0.5, kind=config.number, check=at_least(0.01), help="Cores of a server")
    mem: float = flag(128.0, kind=config.number, check=at_least(1), help="MB of a server")
    check_path: str = flag(
        "/",
        kind=config.text,
        check=config.not_empty,
        help="What servers are asked for to see whether they are well",
    )
    period_s: float = flag(
        5.0,
        kind=config.duration_s,
        check=at_least(0.1),
        help="A change of the load is followed within this; it is measured three times in it",
    )
    margin: float = flag(
        0.8,
        kind=config.number,
        check=between(0.01, 0.99),
        help="A server goes when the rest would be loaded to this part of the target",
    )
    calm_s: float = flag(
        60.0, kind=config.duration_s, check=at_least(0), help="And was so for this long"
    )
    cool_down_s: float = flag(
        60.0, kind=config.duration_s, check=at_least(0), help="After any change, before one goes"
    )
    step_up: int = flag(
        8, kind=config.integer, check=at_least(1), help="So many more at a time, or twice as many"
    )
    step_down: int = flag(1, kind=config.integer, check=at_least(1), help="So many fewer at a time")
    drain_s: float = flag(
        30.0,
        kind=config.duration_s,
        check=at_least(0),
        help="A server that goes has so long for the sessions it has",
    )
    start_s: float = flag(
        120.0,
        kind=config.duration_s,
        check=at_least(1),
        help="A server that does not serve so long after its launch has failed",
    )
    batch: int = flag(
        1, kind=config.integer, check=at_least(1), help="So many are replaced at a time by deploy"
    )
    failover_s: float = flag(
        7 * 24 * 3600.0,
        kind=config.duration_s,
        check=at_least(1),
        help="So long the cluster keeps servers when this does not run",
    )
    log_requests: bool = flag(
        False, kind=config.boolean, help="haproxy writes each request to haproxy.log"
    )
    log_level: str = flag(
        "info", kind=config.choice(*logs.LEVELS), help="How much to log, to stderr"
    )
    log_format: str = flag(
        "text", kind=config.choice(*logs.FORMATS), help="How lines of the log look"
    )

    def limits(self) -> Limits:
        """Raises InvalidValue."""
        return Limits(
            minimum=self.min,
            maximum=self.max,
            target=self.target_sessions,
            margin=self.margin,
            calm_s=self.calm_s,
            cool_down_s=self.cool_down_s,
            step_up=self.step_up,
            step_down=self.step_down,
        )

    def rules(self) -> FarmRules:
        return FarmRules(
            most=self.max,
            batch=self.batch,
            each=Resources.of(cpus=self.cpus, mem=self.mem),
            start_s=self.start_s,
            drain_s=self.drain_s,
        )

    def front(self) -> Front:
        # Room for another --max without another configuration of the balancer.
        slots = max(64, 2 * (self.max + self.batch))
        return Front(
            bind=self.bind,
            port=self.port,
            slots=slots,
            check_path=self.check_path,
            log_requests=self.log_requests,
        )

    def apache(self) -> Apache:
        return Apache(check_path=self.check_path)


__all__ = ["ENV_PREFIX", "STATE_DIRECTORY", "FarmFlags"]
