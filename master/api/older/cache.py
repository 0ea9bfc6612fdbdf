"""Pages are made once for all who ask: see mesos_py.http.cache."""

from __future__ import annotations

from mesos_py.http.cache import MAX_PAGES, OLDEST_S, SMALL_BYTES, TIMES, Page, PageCache

__all__ = ["MAX_PAGES", "OLDEST_S", "SMALL_BYTES", "TIMES", "Page", "PageCache"]
