"""One store of certificates a process, inherited by all that it forks: each HTTP client would read it for 30 ms.

None of a test's clients leaves the machine. A fork server imports this module for its processes.
"""

from __future__ import annotations

from functools import cache

import httpcore2

httpcore2.default_ssl_context = cache(httpcore2.default_ssl_context)
# As clients of httpx2 ask for it, and as those do that read no variables.
for reads_variables in (True, False):
    httpcore2.default_ssl_context(_trust_env=reads_variables)
