"""test_url.py - canonical URLs by the rules of docs/FORMAT.md, written down once more, against the library.

The names that only track are data, and read from lib/text/url.c. Host names in other scripts are checked for
letters that need no mapping but lower case."""
import ctypes
import os
import random
import re
import socket
from ctypes import POINTER, byref, c_size_t, c_uint, c_void_p

import check
import library
from library import Slice, slice_of

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
RULES = {name: 1 << bit for bit, name in enumerate(
    "scheme www port dots escapes index fragment query tracking idn slash".split())}
ALL = 2 * max(RULES.values()) - 1
UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
DELIMS = b"!$&'()*+,;="


library.lib.doppel_url_canonical.argtypes = [Slice, POINTER(Slice), c_uint, c_void_p, c_size_t, POINTER(c_size_t)]


def library_form(url, base=None, without=0):
    room = ctypes.create_string_buffer(3 * (len(url) + len(base or b"")) + 64)
    written = c_size_t()
    from_ = byref(slice_of(base)) if base is not None else None
    library.check(library.lib.doppel_url_canonical(slice_of(url), from_, without, room, len(room), byref(written)))
    return room.raw[:written.value]


# ---- the rules once more


def tracking_names():
    with open(os.path.join(ROOT, "lib", "text", "url.c"), encoding="utf-8") as file:
        source = file.read()
    tables = [re.findall(r'"([^"]+)"', re.search(name + r"\[\] = \{(.*?)\};", source, re.DOTALL)[1])
              for name in ("tracking_starts", "tracking_names")]
    assert len(tables[0]) >= 4 and len(tables[1]) >= 50
    return tables


STARTS, NAMES = tracking_names()


def tracks(name):
    name = name.lower().decode("latin-1")
    return name in NAMES or any(name.startswith(start) and name != start for start in STARTS)


def escape(part, allowed, on):
    if not on:
        return re.sub(rb"[\x00-\x20\x7f]", lambda found: b"%%%02X" % found[0][0], part)

    def one(found):
        text = found[0]
        byte = int(text[1:], 16) if len(text) == 3 else text[0]
        if (len(text) == 3 and byte in UNRESERVED) or (len(text) == 1 and text in allowed):
            return bytes([byte])
        return b"%%%02X" % byte
    return re.sub(rb"%[0-9A-Fa-f]{2}|.", one, part, flags=re.DOTALL)


def remove_dots(path):
    """RFC 3986, 5.2.4, word for word."""
    out = b""
    while path:
        if path.startswith(b"/./"):
            path = path[2:]
        elif path == b"/.":
            path = b"/"
        elif path.startswith(b"/../") or path == b"/..":
            path = b"/" + path[4:]
            out = out[:out.rindex(b"/")] if b"/" in out else b""
        else:
            segment = re.match(rb"/?[^/]*", path)[0]
            out += segment
            path = path[len(segment):]
    return out


def ascii_name(host):
    """None when there is no ASCII form, or this reference does not know it."""
    try:
        labels = host.decode("utf-8").lower().split(".")
    except UnicodeDecodeError:
        return None
    return ".".join(x if x.isascii() else "xn--" + x.encode("punycode").decode() for x in labels).encode()


def trim_host(host, rules):
    host = host.rstrip(b".")
    while rules["www"] and host.startswith(b"www.") and b"." in host[4:]:
        host = host[4:]
    return host


def canonical_host(host, rules):
    if host.startswith(b"["):
        try:
            return b"[" + socket.inet_ntop(socket.AF_INET6, socket.inet_pton(
                socket.AF_INET6, host[1:-1].decode("ascii"))).encode() + b"]"
        except (OSError, ValueError):
            return None
    if re.search(rb"%(?![0-9A-Fa-f]{2})", host):
        return None
    host = re.sub(rb"%(..)", lambda found: bytes([int(found[1], 16)]), host).lower()
    if any(byte < 0x80 and byte not in UNRESERVED + DELIMS for byte in host):
        return None
    host = trim_host(host, rules)
    if rules["idn"] and not host.isascii():
        host = trim_host(ascii_name(host) or host, rules)
    return host or None


def canonical_authority(authority, scheme, rules):
    authority = authority.rpartition(b"@")[2]
    found = re.fullmatch(rb"(\[.*\]|[^:\[][^:]*|)(?::([0-9]*))?", authority, re.DOTALL)
    host = canonical_host(found[1], rules) if found else None
    if not host:
        return None
    port = int(found[2]) if found[2] else None
    own = ([80, 443] if rules["scheme"] else [443 if scheme == b"https" else 80]) if rules["port"] else []
    if port is not None and port > 65535:
        return None
    return host if port is None or port in own else host + b":%d" % port


def canonical_path(path, rules, resolved):
    path = escape(path or b"/", UNRESERVED + DELIMS + b":@/", rules["escapes"])
    if rules["dots"] or resolved:
        path = remove_dots(path)
    before = None
    while before != path:
        before = path
        if rules["slash"]:
            path = path.rstrip(b"/") or b"/"
        if rules["index"]:
            path = re.sub(rb"/(index|default)\.(html|htm|shtml|xhtml|php|asp|aspx|jsp|cgi|cfm)\Z", b"/", path,
                          flags=re.IGNORECASE)
    return path


def canonical_query(query, rules):
    parts = escape(query, UNRESERVED + DELIMS + b":@/?", rules["escapes"]).split(b"&")
    if rules["tracking"]:
        parts = [part for part in parts if not tracks(part.partition(b"=")[0])]
    if rules["query"]:
        parts = sorted((part for part in parts if part), key=lambda part: part.partition(b"="))
    return b"?" + b"&".join(parts) if parts else b""


APPENDIX_B = re.compile(rb"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)


def canonical(url, base=None, without=0):
    rules = {name: not without & bit for name, bit in RULES.items()}
    blank = bytes(range(33))
    url = url.strip(blank)
    scheme, authority, path, query, fragment = APPENDIX_B.fullmatch(url).groups()
    resolved = False
    if scheme is None and base is not None:
        b_scheme, b_authority, b_path, b_query, _ = APPENDIX_B.fullmatch(base.strip(blank)).groups()
        if b_scheme and b_scheme.lower() in (b"http", b"https") and b_authority is not None:
            resolved, scheme = True, b_scheme
            if authority is None:
                authority = b_authority
                if not path:
                    path, query = b_path, b_query if query is None else query
                elif not path.startswith(b"/"):
                    path = (b_path[:b_path.rfind(b"/") + 1] or b"/") + path
    scheme = (scheme or b"").lower()
    if scheme not in (b"http", b"https") or authority is None:
        return url
    host = canonical_authority(authority, scheme, rules)
    if host is None:
        return url
    out = (b"https" if rules["scheme"] else scheme) + b"://" + host + canonical_path(path, rules, resolved)
    if query is not None:
        out += canonical_query(query, rules)
    if fragment is not None and (fragment.startswith(b"!") or not rules["fragment"]):
        out += b"#" + escape(fragment, UNRESERVED + DELIMS + b":@/?", rules["escapes"])
    return out


# ---- the tests


PIECES = """http:// https:// HTTP:// www. WWW. a B.com . .. / / // /./ /../ ? & & = # #! % %2e %2F %41 %7e %zz index.html
Default.asp index.txt utm_source=1 gclid PHPSESSID=3 :80 :443 :8080 : @ [::1] [1:0::A] ; + ! ' ~ _ - x y=2 b=1 b a=3 a=
( ) { } | \\ ^ ` " < > 0 1.2.3.4 xn--""".split() + [" ", "\t", "\x7f", "\0"]
SCRIPTS = ["ü", "Ö", "é", "ж", "Я", "例", "え", "한", "ñ"]


def random_url(rng, names):
    """Bytes beyond ASCII stand behind the host, but for the letters of `names`."""
    head = rng.choice(["", "http://", "https://", "HTTP://"]) + rng.choice(["a", "www.a.b", "A.com.", "", "u:p@h.i"])
    if names and head.startswith("http"):
        head += "." + "".join(rng.choice(SCRIPTS) for _ in range(rng.randint(1, 4))) + rng.choice(["", ".de", ".www"])
    tail = b"".join(rng.choice(PIECES).encode() if rng.random() < 0.93 else bytes([rng.randrange(128)])
                    for _ in range(rng.randrange(10)))
    if head.partition("://")[2] and (names or rng.random() < 0.7):
        tail = rng.choice([b"/", b"?", b"/x/", b"/?", b"#"]) + tail
        tail += bytes(rng.randrange(256) for _ in range(rng.randrange(3)))
    return head.encode() + tail


def test_random_urls():
    rng, count = random.Random(9), 400000 if os.environ.get("DOPPEL_SUITE") == "full" else 40000
    web = 0
    for i in range(count):
        url = random_url(rng, i % 5 == 0)
        base = random_url(rng, False) if i % 3 == 0 else None
        without = rng.randint(0, ALL) if i % 2 else 0
        expected = canonical(url, base, without)
        assert library_form(url, base, without) == expected, (url, base, without, library_form(url, base, without),
                                                              expected)
        web += expected.startswith(b"http")
    assert web > count / 3
    return f"{count} URLs, {web} of them http or https"


def test_each_tracking_name_is_known():
    for name in NAMES + [start + "x" for start in STARTS]:
        for form in (name, name.upper()):
            assert library_form(f"http://a.b/?{form}=1&k=2".encode()) == b"https://a.b/?k=2", name
            assert library_form(f"http://a.b/?{form}x=1".encode()) == canonical(f"http://a.b/?{form}x=1".encode()), name
    assert NAMES == sorted(NAMES)
    return f"{len(NAMES)} names"


def test_examples_of_the_format():
    with open(os.path.join(ROOT, "docs", "FORMAT.md"), encoding="utf-8") as file:
        section = file.read().partition("Canonical URLs\n")[2].partition("\n## ")[0]
    rows = [line[3:-3].split("` | `") for line in section.splitlines() if re.match(r"\| `.*` \| `.*` \| `", line)]
    for url, base, without, expected in rows:
        base = None if base == "-" else base.encode()
        bits = sum(RULES[name] for name in without.split(",") if name != "-")
        for form in (canonical, library_form):
            assert form(url.encode(), base, bits) == expected.encode(), (url, form(url.encode(), base, bits), expected)
    assert len(rows) >= 20
    return f"{len(rows)} examples"


if __name__ == "__main__":
    check.main(globals())
