"""What the doctor says of the copies of a cluster's streams."""

from nats.js.api import ClusterInfo, PeerInfo, StreamConfig, StreamInfo, StreamState

from wayline.standalone.doctor.bus import judge_copies


def stream(name: str, *copies: PeerInfo, replicas: int = 3) -> StreamInfo:
    cluster = ClusterInfo(name="wayline", leader="n0", replicas=list(copies))
    state = StreamState(messages=0, bytes=0, first_seq=0, last_seq=0, consumer_count=0)
    return StreamInfo(config=StreamConfig(name=name, num_replicas=replicas), state=state, cluster=cluster)


def copy(name: str, *, current: bool = True, offline: bool = False, lag: int = 0) -> PeerInfo:
    return PeerInfo(name=name, current=current, offline=offline, active=0, lag=lag)


def test_a_server_that_is_away_differs_from_one_that_is_behind():
    gone, late = copy("n1", current=False, offline=True), copy("n2", current=False, lag=1_234)

    found = judge_copies([stream("EVENTS", gone, late), stream("RUN", gone, copy("n2"))])

    assert found is not None
    assert found.state == "problem"
    assert found.text == (
        "server n1 is away, with its copies of 2 streams; "
        "server n2 is behind in 1 of its streams and lacks 1,234 entries of EVENTS"
    )


def test_a_stream_with_one_copy_is_named():
    found = judge_copies([stream("EVENTS", copy("n1"), copy("n2")), stream("RUN", replicas=1)])

    assert found is not None
    assert (found.state, found.text) == ("warning", "RUN: lost with its one server")
