"""What a robots.txt allows, by RFC 9309."""

from __future__ import annotations

import pytest

from wayline.tool_registry.web.pages.robots import read_robots, robots_text

TEXT = """
# a comment
User-agent: OtherBot
Disallow: /

User-agent: *
Disallow: /private   # not for programs
Allow: /private/open
Disallow: /*.cgi$
Disallow: /search?*q=
Disallow:
Sitemap: https://a.example/sitemap.xml
"""


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/", True),
        ("", True),
        ("/page", True),
        ("/private", False),
        ("/private/more", False),
        ("/privateer", False),
        ("/private/open/page", True),
        ("/%70rivate", False),
        ("/run.cgi", False),
        ("/run.cgi?x=1", True),
        ("/search?lang=de&q=x", False),
        ("/search?lang=de", True),
    ],
)
def test_the_longest_pattern_that_fits_decides(path: str, allowed: bool):
    assert read_robots(TEXT, "Wayline").allows(path) is allowed


def test_a_group_of_our_own_stands_for_all_others():
    text = "User-agent: *\nDisallow: /\n\nUser-agent: other\nUser-agent: wayline/0.1\nDisallow: /x\n"

    assert read_robots(text, "Wayline").allows("/page")
    assert not read_robots(text, "Wayline").allows("/x")
    assert not read_robots(text, "Another").allows("/page")


@pytest.mark.parametrize("text", ["", "<html>404</html>", "Disallow: /", "User-agent: *\nDisallow:\n", "\0\n:::"])
def test_a_file_without_rules_allows_all(text: str):
    assert read_robots(text, "Wayline").allows("/page")


@pytest.mark.parametrize(
    ("content", "cut", "text"),
    [
        (b"\xef\xbb\xbfUser-agent: *\nDisallow: /\xff", False, "User-agent: *\nDisallow: /\ufffd"),
        (b"User-agent: *\nDisallow: /pri", True, "User-agent: *\n"),
        (b"User-agent: *", True, ""),
    ],
)
def test_a_byte_order_mark_and_half_a_line_are_left_out(content: bytes, cut: bool, text: str):
    assert robots_text(content, cut=cut) == text


def test_allow_wins_over_a_disallow_of_the_same_length():
    assert read_robots("User-agent: *\nDisallow: /page\nAllow: /page", "Wayline").allows("/page")


def test_a_pattern_with_too_many_stars_is_passed_over():
    text = "User-agent: *\nDisallow: /" + "a*" * 200 + "b\nDisallow: /" + "c*" * 9 + "b\n"
    robots = read_robots(text, "Wayline")

    assert robots.allows("/" + "a" * 3_000 + "b")
    assert not robots.allows("/" + "c" * 3_000 + "b")
