"""Progress of a pull, in few words."""

from agent.containers.docker.pulling import Progress


def test_progress_counts_layers_and_bytes():
    progress = Progress()
    for line in (
        {"status": "Pulling from library/x", "id": "latest"},
        {"status": "Already exists", "id": "a"},
        {"status": "Downloading", "id": "b", "progressDetail": {"current": 2 << 20, "total": 9}},
        {"status": "Downloading", "id": "c", "progressDetail": {}},
        {"status": "Pull complete", "id": "b"},
        {"status": "Digest: sha256:x"},
    ):
        progress.take(line)
    assert str(progress) == "2 of 3 layers done, 2.0 MB downloaded"


def test_before_anything_is_known_there_is_nothing():
    assert str(Progress()) == "0 of 0 layers done, 0.0 MB downloaded"
