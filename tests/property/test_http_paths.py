"""Whatever a path is: it names something beneath one sandbox, or is refused."""

from __future__ import annotations

from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from agent.api.http_paths import location_of, offset_of
from mesos_py.errors import InvalidValue

NASTY = st.sampled_from(
    ["..", ".", "", "%2e%2e", "%2E.", "..%2f", "%2f", "%00", "%", "%zz", "a", "é", "%ff", "\\", "~"]
)
PATHS = st.lists(NASTY, max_size=8).map("/".join)


@given(st.one_of(st.text(max_size=80), PATHS, PATHS.map("/files/F/E/C/".__add__)))
def test_all_names_lead_downwards(path):
    try:
        location = location_of(path)
    except InvalidValue:
        return
    for name in location:
        for part in (name,) if isinstance(name, str) else name:
            assert part not in ("", ".", "..")
            assert "/" not in part
            assert "\0" not in part


@given(st.binary(min_size=1, max_size=20).filter(lambda name: name not in (b".", b"..")))
def test_any_file_name_can_be_asked_for(name):
    plain = name.replace(b"/", b"_").replace(b"\0", b"_")
    location = location_of("/files/F/E/C/dir/" + quote(plain, safe=""))
    assert location.parts[0] == "dir"
    assert location.parts[1].encode("utf-8", "surrogateescape") == plain


@given(st.text(max_size=30) | st.integers().map(str))
def test_an_offset_is_a_number_or_refused(text):
    try:
        assert str(offset_of(text)) == text.lstrip("0") or int(text) == offset_of(text)
    except InvalidValue:
        pass
