"""Forms of the console's pages as a browser without scripts sends them."""

from __future__ import annotations

from html.parser import HTMLParser


class Sent(HTMLParser):
    """What a browser sends of the forms of a page that nobody touched."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self.tags: list[str] = []
        self._area = self._select = ""
        self._says_itself = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        name, value = given.get("name") or "", given.get("value")
        if tag == "textarea":
            self._area, self.fields[name] = name, ""
        elif tag == "select":
            self._select = name
        elif tag == "option" and self._select and ("selected" in given or self._select not in self.fields):
            self.fields[self._select] = value or ""
            self._says_itself = value is None
        elif tag == "input" and (given.get("type") not in ("checkbox", "radio") or "checked" in given):
            self.fields[name] = value or ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self.fields[self._area] += data
        elif self._select and self._says_itself:
            self.fields[self._select], self._says_itself = data, False

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            # A browser leaves out the first line break of a text area.
            self.fields[self._area] = self.fields[self._area].removeprefix("\n")
            self._area = ""
        elif tag == "select":
            self._select = ""
