"""The settings of a SparkContext: names and values are texts, as in Spark."""

from __future__ import annotations

import os
from collections.abc import Iterable

from frameworks.rdd import submission
from mesos_py.errors import InvalidValue


class SparkConf:
    """Setters return the object itself, so that calls can be chained.

    loadDefaults: start with what `mesos-py rdd submit` was given, if that has started the
    program.
    """

    def __init__(self, loadDefaults: bool = True) -> None:
        self._values = submission.defaults(os.environ) if loadDefaults else {}

    def contains(self, key: str) -> bool:
        return key in self._values

    def set(self, key: str, value: object) -> SparkConf:
        if not key:
            raise InvalidValue("key", key, "must not be empty")
        self._values[key] = str(value)
        return self

    def setIfMissing(self, key: str, value: object) -> SparkConf:
        return self if key in self._values else self.set(key, value)

    def setMaster(self, value: str) -> SparkConf:
        return self.set("spark.master", value)

    def setAppName(self, value: str) -> SparkConf:
        return self.set("spark.app.name", value)

    def setSparkHome(self, value: str) -> SparkConf:
        return self.set("spark.home", value)

    def setExecutorEnv(
        self,
        key: str | None = None,
        value: str | None = None,
        pairs: Iterable[tuple[str, str]] | None = None,
    ) -> SparkConf:
        """A variable for executors' environment, or several; raises ValueError for both."""
        if (key is not None) == (pairs is not None):
            raise ValueError("Either pass one key-value pair or a list of pairs")
        for name, text in pairs if pairs is not None else [(key, value)]:
            self.set(f"spark.executorEnv.{name}", text)
        return self

    def setAll(self, pairs: Iterable[tuple[str, object]]) -> SparkConf:
        for key, value in pairs:
            self.set(key, value)
        return self

    def get(self, key: str, defaultValue: str | None = None) -> str | None:
        return self._values.get(key, defaultValue)

    def getAll(self) -> list[tuple[str, str]]:
        return list(self._values.items())

    def toDebugString(self) -> str:
        return "\n".join(sorted(f"{key}={value}" for key, value in self._values.items()))

    def number(self, key: str, default: int, least: int = 1) -> int:
        """A whole number; raises InvalidValue for anything else or less."""
        text = self._values.get(key)
        if text is None:
            return default
        try:
            number = int(text)
        except ValueError:
            raise InvalidValue(key, text, "must be a whole number") from None
        if number < least:
            raise InvalidValue(key, text, f"must be {least} or more")
        return number
