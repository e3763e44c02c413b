"""The guarded client on real sockets: loopback is opened address by address, for these tests only."""

from __future__ import annotations

import asyncio
import datetime
import gzip
import ssl
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from wayline.guarded_http import (
    AddressPolicy,
    BadStatus,
    Blocked,
    GuardedClient,
    InvalidUrl,
    Limits,
    TimedOut,
    TooLarge,
    TooManyRedirects,
    Undecodable,
    Unreachable,
)
from wayline.simulator.website import Page, Website

PUBLIC = ip_address("93.184.215.14")
LOOPBACK = ip_address("127.0.0.1")


def client_for(*sites: Website, **more) -> GuardedClient:
    """A client that may reach these sites and nothing else on this machine."""
    return GuardedClient(AddressPolicy.of([f"127.0.0.1:{site.port}" for site in sites]), **more)


@asynccontextmanager
async def website(**pages: Page):
    async with Website({f"/{name}": page for name, page in pages.items()}) as site:
        yield site


def redirect(to: str, status: int = 302) -> Page:
    return Page(status=status, headers={"Location": to})


class Names:
    """A resolver whose answers change from one question to the next."""

    def __init__(self, *answers) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int):
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def test_a_page_is_fetched_with_its_host_and_headers():
    names = Names([LOOPBACK])
    async with website(page=Page("hello", headers={"ETag": "1"})) as site:
        client = client_for(site, resolver=names)
        answer = await client.get(site.url("/page?a=1#part", host="wiki.example"), headers={"Accept-Language": "de"})
        await client.close()

    assert (answer.status, answer.content, answer.media_type, answer.headers["etag"]) == (
        200,
        b"hello",
        "text/html",
        "1",
    )
    assert answer.url == f"http://wiki.example:{site.port}/page?a=1"
    assert site.seen[0].headers["host"] == f"wiki.example:{site.port}"
    assert site.seen[0].headers["accept-language"] == "de"
    assert names.asked == ["wiki.example"]


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "localhost", "0.0.0.0", "[::]", "127.0.0.1."],
)
async def test_loopback_is_not_reached_under_any_name(host: str):
    async with website(page=Page("secret")) as site:
        client = GuardedClient(AddressPolicy(ports=(site.port,)))
        with pytest.raises(Blocked):
            await client.get(site.url("/page", host=host))

    assert site.seen == []


@pytest.mark.parametrize("host", ["127.1", "0x7f.1", "2130706433", "017700000001", "127.0.0.0x1", "①②⑦.0.0.1"])
async def test_an_odd_form_of_loopback_is_no_url(host: str):
    async with website(page=Page("secret")) as site:
        client = GuardedClient(AddressPolicy(ports=(site.port,)))
        with pytest.raises(InvalidUrl):
            await client.get(site.url("/page", host=host))

    assert site.seen == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "wiki.example",
        "//wiki.example/",
        "ftp://wiki.example/",
        "file:///etc/passwd",
        "gopher://wiki.example/",
        "http:///x",
        "http://user@wiki.example/",
        "http://user:secret@wiki.example/",
        "http://wiki.example\\@127.0.0.1/",
        "http://wiki.example:99999/",
        "http://wiki.example:0/",
        "http://wi ki.example/",
        f"http://wiki.example/{'a' * 5_000}",
    ],
)
async def test_what_is_no_plain_web_address_is_refused_unresolved(url: str):
    names = Names([PUBLIC])

    with pytest.raises((InvalidUrl, Blocked)):
        await GuardedClient(resolver=names).get(url)

    assert names.asked == []


async def test_a_name_with_one_address_inside_is_refused():
    async with website(page=Page("secret")) as site:
        client = GuardedClient(AddressPolicy(ports=(site.port,)), resolver=Names([PUBLIC, LOOPBACK]))
        with pytest.raises(Blocked, match="loopback"):
            await client.get(site.url("/page", host="wiki.example"))

    assert site.seen == []


async def test_a_rebound_name_is_connected_where_it_was_checked():
    names = Names([LOOPBACK], [ip_address("127.0.0.2")])
    async with website(page=Page("hello")) as site:
        client = client_for(site, resolver=names)
        first = await client.get(site.url("/page", host="wiki.example"))
        with pytest.raises(Blocked, match="loopback"):
            await client.get(site.url("/page", host="wiki.example"))

    assert first.content == b"hello"
    # Once a request: what was checked is what was connected to.
    assert names.asked == ["wiki.example", "wiki.example"]
    assert len(site.seen) == 1


@pytest.mark.parametrize(
    "to", ["http://127.0.0.1:{other}/page", "http://localhost:{other}/page", "//127.0.0.1:{other}/page"]
)
async def test_a_redirect_to_the_inside_is_refused(to: str):
    async with website(page=Page("secret")) as inside:
        async with website(start=redirect(to.format(other=inside.port))) as site:
            with pytest.raises(Blocked):
                await client_for(site).get(site.url("/start"))

    assert inside.seen == []


async def test_a_redirect_to_a_name_inside_is_refused():
    async with website(start=redirect("http://metadata.example/latest")) as site:
        client = client_for(site, resolver=Names([ip_address("169.254.169.254")]))
        with pytest.raises(Blocked, match="metadata"):
            await client.get(site.url("/start"))


async def test_a_redirect_to_another_scheme_is_refused():
    async with website(start=redirect("file:///etc/passwd")) as site:
        with pytest.raises(InvalidUrl):
            await client_for(site).get(site.url("/start"))


async def test_redirects_are_followed_five_times_and_no_more():
    pages = {f"hop{n}": redirect(f"/hop{n + 1}") for n in range(1, 7)}
    async with website(**pages, hop7=Page("too far"), back=redirect("hop6?x=1")) as site:
        client = client_for(site)
        answer = await client.get(site.url("/hop2"))
        with pytest.raises(TooManyRedirects):
            await client.get(site.url("/hop1"))

    assert answer.content == b"too far"
    assert (answer.url, len(answer.redirects)) == (site.url("/hop7"), 5)


async def test_another_origin_sees_no_credentials():
    async with website(end=Page("done")) as other:
        async with website(
            start=redirect(f"http://127.0.0.1:{other.port}/end"), near=redirect("/end"), end=Page()
        ) as site:
            client = client_for(site, other)
            headers = {
                "Authorization": "Bearer secret",
                "X-Api-Key": "secret",
                "Cookie": "a=secret",
                "Accept": "text/html",
            }
            await client.get(site.url("/start"), headers=headers)
            await client.get(site.url("/near"), headers=headers)

    assert "secret" not in str(other.seen[0].headers)
    assert other.seen[0].headers["accept"] == "text/html"
    assert site.seen[2].headers["authorization"] == "Bearer secret"


async def test_a_request_with_a_body_follows_no_redirect():
    async with website(start=redirect("/end", status=307), end=Page("done")) as site:
        answer = await client_for(site).request("POST", site.url("/start"), content=b"{}")

    assert answer.status == 307
    assert site.paths == ["/start"]


async def test_credentials_never_go_from_https_to_http(tmp_path: Path):
    server, client_tls = certificates(tmp_path, "wiki.example")
    async with website(end=Page("done")) as plain:
        async with Website({"/start": redirect(f"http://wiki.example:{plain.port}/end")}, tls=server) as site:
            client = client_for(site, plain, resolver=Names([LOOPBACK]), ssl_context=client_tls)
            with pytest.raises(Blocked, match="credentials"):
                await client.get(site.url("/start", host="wiki.example"), headers={"Authorization": "Bearer secret"})
            answer = await client.get(site.url("/start", host="wiki.example"))

    assert answer.content == b"done"
    assert len(plain.seen) == 1


async def test_the_certificate_is_checked_for_the_name_not_the_address(tmp_path: Path):
    server, client_tls = certificates(tmp_path, "wiki.example")
    async with Website({"/page": Page("hello")}, tls=server) as site:
        client = client_for(site, resolver=Names([LOOPBACK]), ssl_context=client_tls)
        answer = await client.get(site.url("/page", host="wiki.example"))
        with pytest.raises(Unreachable, match="certificate"):
            await client.get(site.url("/page", host="other.example"))
        with pytest.raises(Unreachable, match="certificate"):
            await client_for(site, resolver=Names([LOOPBACK])).get(site.url("/page", host="wiki.example"))

    assert answer.content == b"hello"
    assert [one.headers["host"] for one in site.seen] == [f"wiki.example:{site.port}"]
    assert server.asked == ["wiki.example", "other.example", "wiki.example"]  # type: ignore[attr-defined]


async def test_a_large_body_is_left_in_the_middle():
    large = b"a" * 50 * 1024 * 1024
    chunked = {"Transfer-Encoding": "chunked"}
    async with website(named=Page(large), unnamed=Page(large, hold=asyncio.Event(), headers=chunked)) as site:
        client = client_for(site, limits=Limits(body_max_bytes=1024 * 1024))
        for path in ("/named", "/unnamed"):
            with pytest.raises(TooLarge):
                await client.get(site.url(path))

    # What fits into the buffers of both ends, and far from all of it.
    assert site.sent_bytes < 20 * 1024 * 1024


@pytest.mark.parametrize("headers", [{}, {"Content-Encoding": "gzip"}])
async def test_the_beginning_of_a_large_body_is_returned(headers: dict[str, str]):
    body = b"a line\n" * 10_000
    sent = gzip.compress(body) if headers else body
    async with website(page=Page(sent, headers=headers), small=Page("a line")) as site:
        client = client_for(site, limits=Limits(body_max_bytes=1_000, cut=True))
        answer = await client.get(site.url("/page"))
        small = await client.get(site.url("/small"))

    assert (answer.content, answer.cut) == (body[:1_000], True)
    assert (small.content, small.cut) == (b"a line", False)


async def test_a_compressed_bomb_is_too_large():
    bomb = gzip.compress(b"\0" * 200 * 1024 * 1024, compresslevel=1)
    async with website(page=Page(bomb, headers={"Content-Encoding": "gzip"})) as site:
        with pytest.raises(TooLarge):
            await client_for(site, limits=Limits(body_max_bytes=2 * 1024 * 1024)).get(site.url("/page"))


async def test_a_body_in_an_encoding_that_nobody_asked_for_is_refused():
    async with website(page=Page(b"x", headers={"Content-Encoding": "br"})) as site:
        with pytest.raises(Undecodable, match="br"):
            await client_for(site).get(site.url("/page"))

    assert site.seen[0].headers["accept-encoding"] == "gzip, deflate"


async def test_a_body_that_never_ends_times_out():
    async with website(page=Page("slow", hold=asyncio.Event())) as site:
        with pytest.raises(TimedOut):
            await client_for(site, limits=Limits(total_s=0.3)).get(site.url("/page"))


async def test_headers_that_come_byte_by_byte_time_out():
    gone = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            for byte in b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 10_000:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.02)
        except OSError:
            pass
        finally:
            writer.close()
            gone.set()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = GuardedClient(AddressPolicy.of([f"127.0.0.1:{port}"]), limits=Limits(total_s=0.3))
    with pytest.raises(TimedOut):
        await client.get(f"http://127.0.0.1:{port}/")
    # The connection is closed: the server notices.
    await asyncio.wait_for(gone.wait(), 10)
    server.close()


async def test_redirects_share_one_time_limit():
    async with website(start=redirect("/end"), end=Page("slow", hold=asyncio.Event())) as site:
        with pytest.raises(TimedOut):
            await client_for(site, limits=Limits(total_s=0.3)).get(site.url("/start"))

    assert site.paths == ["/start", "/end"]


async def test_a_resolver_that_hangs_times_out():
    async def hang(host: str, port: int):
        await asyncio.Event().wait()
        return []

    with pytest.raises(TimedOut):
        await GuardedClient(resolver=hang, limits=Limits(total_s=0.2)).get("http://wiki.example/")


async def test_what_does_not_answer_is_unreachable():
    async def unknown(host: str, port: int):
        raise OSError("no such name")

    async with website(page=Page("half", cut=True)) as site:
        client = client_for(site)
        with pytest.raises(Unreachable):
            await client.get(site.url("/page"))
    with pytest.raises(Unreachable):
        await client.get(site.url("/page"))
    with pytest.raises(Unreachable, match="resolved"):
        await GuardedClient(resolver=unknown).get("http://wiki.example/")


async def test_an_error_status_says_what_the_server_said():
    async with website(page=Page("slow down", status=429, headers={"Retry-After": "7"})) as site:
        with pytest.raises(BadStatus) as refused:
            await client_for(site).get(site.url("/page"))

    assert (refused.value.status, refused.value.retry_after_s, refused.value.content) == (429, 7, b"slow down")


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch):
    async with website() as proxy, website(page=Page("direct")) as site:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url())
        answer = await client_for(site).get(site.url("/page"))

    assert answer.content == b"direct"
    assert proxy.seen == []


async def test_another_librarys_client_is_guarded_by_the_transport():
    import httpx2

    from wayline.guarded_http.guarded_transport import GuardedTransport

    async with website(page=Page("hello"), out=redirect("http://localhost/")) as site:
        policy = AddressPolicy.of([f"127.0.0.1:{site.port}"])
        async with httpx2.AsyncClient(transport=GuardedTransport(policy), follow_redirects=True) as client:
            assert (await client.get(site.url("/page"))).text == "hello"
            for url in ("http://localhost/", "http://[::1]/", "http://10.0.0.1/", site.url("/out")):
                with pytest.raises(Blocked):
                    await client.get(url)


def certificates(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Make a certificate for a name; return the server's context, which notes the names asked for, and a client's."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path)
    asked: list[str] = []
    server.asked = asked  # type: ignore[attr-defined]
    server.sni_callback = lambda connection, host, context: asked.append(host)
    client = ssl.create_default_context(cafile=str(path))
    return server, client
