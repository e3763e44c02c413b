"""Two processes of one fork never write records under one id."""

import os
import sys

import pytest

from wayline.journal import log


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_process_names_its_records_differently():
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.write(writing, log._process.encode())
        os._exit(0)
    os.waitpid(child, 0)

    in_child = os.read(reading, 100).decode()

    assert len(in_child) == len(log._process)
    assert in_child != log._process
