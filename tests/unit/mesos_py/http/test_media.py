"""Content-Type and Accept."""

import pytest

from mesos_py.http.answers import HttpRefusal
from mesos_py.http.media import Media, accepted_media, content_media


@pytest.mark.parametrize("media", Media)
def test_a_body_is_in_one_of_two_forms(media: Media) -> None:
    assert content_media({"Content-Type": media.value}) is media


def test_a_body_that_does_not_say() -> None:
    with pytest.raises(HttpRefusal, match="Content-Type: is missing") as caught:
        content_media({})
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "given", ["text/plain", "application/json; charset=utf-8", "APPLICATION/JSON", "", "*/*"]
)
def test_a_body_in_another_form(given: str) -> None:
    with pytest.raises(HttpRefusal) as caught:
        content_media({"Content-Type": given})
    assert caught.value.status == 415


@pytest.mark.parametrize(
    ("given", "media"),
    [
        (None, Media.JSON),
        ("*/*", Media.JSON),
        ("application/*", Media.JSON),
        ("application/json", Media.JSON),
        ("application/json; charset=utf-8", Media.JSON),
        ("application/x-protobuf", Media.PROTOBUF),
        ("text/html, application/x-protobuf;q=0.9", Media.PROTOBUF),
        ("application/json;q=0, application/x-protobuf", Media.PROTOBUF),
        ("application/json; Q = 0.000, */*", Media.PROTOBUF),
        ("application/json;q=0.001", Media.JSON),
        # Weights do not count: JSON wins.
        ("application/x-protobuf, application/json;q=0.1", Media.JSON),
    ],
)
def test_what_an_answer_is_written_in(given: str | None, media: Media) -> None:
    assert accepted_media({} if given is None else {"Accept": given}) is media


@pytest.mark.parametrize(
    "given",
    [
        *("", "  ", ",", "text/html", "application/recordio", "json", "text/*"),
        *("application/json;q=0", "*/*;q=0.0"),
    ],
)
def test_nothing_of_ours_is_accepted(given: str) -> None:
    with pytest.raises(HttpRefusal) as caught:
        accepted_media({"Accept": given})
    assert caught.value.status == 406
