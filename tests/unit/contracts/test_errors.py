"""Which errors may be tried again, here and after they have travelled."""

from wayline.contracts.errors import Full, Reject, Retry, raised


def test_what_is_full_may_be_tried_again_here_and_elsewhere():
    full = Full("the stream")
    heard = raised(full.problem())

    assert not isinstance(full, Reject)
    assert isinstance(full, Retry)
    assert isinstance(heard, Full)
    assert heard.problem() == full.problem()
