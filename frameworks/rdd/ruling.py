"""From a program's properties to the rules of its scheduling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from frameworks.rdd import pools, properties
from frameworks.rdd.core.rules import Rules

# So many failures within a minute, of any tasks, and an executor gets none for a minute.
EXCLUDE_FAILURES: Final = 5


def rules_of(conf: Mapping[str, str], *, max_failures: int | None = None) -> Rules:
    """max_failures: of local[N, F], instead of the property.

    Raises InvalidValue that names the property, or a file that it names and what is wrong there.
    """
    wait_s = properties.LOCALITY_WAIT_S.of(conf)
    fair = properties.SCHEDULER_MODE.of(conf) == "FAIR"
    exclude = properties.EXCLUDE.of(conf)
    return Rules(
        max_failures=properties.MAX_FAILURES.of(conf) if max_failures is None else max_failures,
        stage_attempts=properties.STAGE_ATTEMPTS.of(conf),
        wait_executor_s=wait_s,
        wait_host_s=wait_s,
        fair=fair,
        pools=pools.read(properties.ALLOCATION_FILE.of(conf)) if fair else {},
        exclude_failures=EXCLUDE_FAILURES if exclude else 0,
        twins=properties.SPECULATION.of(conf),
        twin_multiplier=properties.SPECULATION_MULTIPLIER.of(conf),
        twin_quantile=properties.SPECULATION_QUANTILE.of(conf),
        idle_s=properties.IDLE_S.of(conf),
        idle_keeping_s=properties.CACHED_IDLE_S.of(conf),
        max_result_bytes=properties.MAX_RESULT_BYTES.of(conf),
    )


__all__ = ["rules_of"]
