"""States of jobs for tests of what is decided from them."""

from __future__ import annotations

from typing import Any

from wayline.journal import Job

_PART_OF = {
    field: part for part, value in Job()._asdict().items() if hasattr(value, "_fields") for field in value._fields
}
"""No two parts have a field of the same name: a test names the field alone."""


def job_with(job: Job | None = None, **fields: Any) -> Job:
    """Return a job, or an empty one, with these fields changed, whichever part they belong to."""
    changed = job or Job()
    for name, value in fields.items():
        part = _PART_OF.get(name)
        if part is None:
            changed = changed._replace(**{name: value})
        else:
            changed = changed._replace(**{part: getattr(changed, part)._replace(**{name: value})})
    return changed
