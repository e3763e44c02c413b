"""The templates: every value in them is escaped, and a region of a page is a block of its template."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any
from zoneinfo import ZoneInfo

from jinja2 import Environment, PackageLoader, StrictUndefined

from wayline.console.render import formats
from wayline.console.render.addresses import path_of
from wayline.console.render.budget_bar import used_of
from wayline.console.render.code_words import coloured
from wayline.console.render.diffs.card import card_of
from wayline.console.render.fenced_text import markdown_parts, plain_parts
from wayline.console.render.json_text import editable, pretty
from wayline.console.render.markdown_text import markdown
from wayline.console.render.program import program_of
from wayline.console.render.structured import columns_of, plain, structured_of

HASH_CHARS = 12
HERE = "<here>"
"""Where a part of a page belongs; no value has it, as every one is escaped."""


class Templates:
    """Renders pages and regions of pages."""

    def __init__(self, zone: ZoneInfo = ZoneInfo("UTC")) -> None:  # noqa: B008 - a zone is a value
        self.zone = zone
        """Of the times that pages show, and of those that are typed into their forms."""
        self._environment = _environment(zone)

    def render(self, template: str, **values: Any) -> bytes:
        """Render a page."""
        return _encoded(self._environment.get_template(template).render(values))

    def around(self, template: str, block: str, **values: Any) -> tuple[bytes, bytes]:
        """Render a page without one block: what stands before it, and what stands behind it."""
        found = self._environment.get_template(template)
        context = found.new_context(values)
        context.blocks[block] = [lambda _: iter((HERE,))]
        before, _, after = "".join(found.root_render_func(context)).partition(HERE)
        return _encoded(before), _encoded(after)

    def region(self, template: str, block: str, **values: Any) -> bytes:
        """Render one block of a page: what replaces it in a browser that shows the page."""
        found = self._environment.get_template(template)
        return _encoded("".join(found.blocks[block](found.new_context(values))))


@cache
def _environment(zone: ZoneInfo) -> Environment:
    """Return the templates of a zone: to compile them takes longer than to render a page."""
    environment = Environment(
        loader=PackageLoader("wayline.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(formats.filters(zone), pretty=pretty, editable=editable, markdown=markdown)
    environment.filters.update(diff_of=card_of, program_of=program_of, coloured=coloured)
    environment.filters.update(markdown_parts=markdown_parts, plain_parts=plain_parts)
    environment.filters.update(structured_of=structured_of, columns_of=columns_of, plain=plain)
    environment.filters["used"] = used_of
    # Jinja's own fails at half a character, which JSON may hold.
    environment.filters["urlencode"] = path_of
    environment.globals["static"] = static_address
    environment.globals["d"] = environment.get_template("components_diff.html").module
    environment.globals["fenced"] = environment.get_template("components_fenced.html").module
    environment.globals["c"] = environment.get_template("components.html").module
    environment.globals["f"] = environment.get_template("forms.html").module
    return environment


def _encoded(html: str) -> bytes:
    """Encode a page; half a character, which JSON may hold, becomes a question mark."""
    return html.encode("utf-8", "replace")


@cache
def static_address(name: str) -> str:
    """Return the address of a file that never changes under it: its content's hash is part of it."""
    content = files("wayline.console").joinpath("static", *name.split("/")).read_bytes()
    return f"/static/{sha256(content).hexdigest()[:HASH_CHARS]}/{name}"
