"""The console in trouble: hostile documents, huge figures, tokens that are wrong, a server that is gone. Each function is a
story that yields what went wrong."""
import contextlib
import http.server
import random
import threading

import corpus
from console_stories import FIRST, is_shown, try_it
from serving import PATIENCE, Watched, post

READER, OWNER, WRONG = "reader-" + "r" * 32, "owner-" + "o" * 32, "wrong-" + "w" * 32


def hostile(browser, address):
    """Documents that try to break out of the page."""
    watched = Watched(browser, address)
    page = watched.page
    text = corpus.prose(random.Random(3), 80)
    for number, (one, other) in enumerate(corpus.HOSTILE):
        post(address, "/v1/documents", {"id": one, "title": other, "url": f"https://hostile.example/{number}", "text": f"{other} {number} {text} {one}"})
        post(address, "/v1/documents", {"id": f"{one}~", "title": other, "url": f"javascript:alert({number})", "text": f"{other} {number} {text} {one}"})
    for route in ["#/groups"] + ["#/document/" + page.evaluate("encodeURIComponent", one) for one, _ in corpus.HOSTILE]:
        watched.open(route, "h1")
        page.wait_for_selector("details.group, h2:text-is('What is known')")
        yield from (f"hostile {route}: {what}" for what in watched.look())
    yield from watched.close()


def large(browser, address):
    """An index of billions, with something in every bucket."""
    for width in (1280, 360):
        watched = Watched(browser, address, width)
        page = watched.page

        def swell(route):
            stats = route.fetch().json()
            for name, value in stats.items():
                if isinstance(value, dict) and "buckets" in value:
                    stats[name] = {"count": 10**12, "sum": 10**15, "buckets": [10 ** (i % 10) for i in range(24)]}
                elif isinstance(value, int) and not isinstance(value, bool) and name not in ("distance", "minWords"):
                    stats[name] = 123456789012
            stats["verdictsBy"] = {"unique": 10**11, "url": 10**9, "content": 1, "title": 10**10}
            route.fulfill(json=stats)

        page.route("**/v1/stats", swell)
        watched.open("#/overview", ".bar")
        yield from (f"{width} px: {what}" for what in watched.look())
        watched.open("#/index", "h1:text-is('Index default')")
        yield from (f"{width} px: {what}" for what in watched.look())
        yield from watched.close()


FOREIGN = """<!doctype html><title>Elsewhere</title><a href="{address}/">the console</a><iframe name=frame></iframe>
<form method=post action="{address}/v1/backups" target=frame></form>
<form method=post enctype="text/plain" action="{address}/v1/compact" target=frame><input name="{{}}"></form>
<script>
const ask = (path, how) => fetch("{address}" + path, {{method: "POST", mode: "no-cors", ...how}}).catch(() => null);
const attack = async () => {{
  for (const form of document.forms)
    await new Promise(done => {{ document.querySelector("iframe").onload = done; form.submit(); }});
  await ask("/v1/backups"); await ask("/v1/expire"); await ask("/v1/compact", {{body: "{{}}"}});
  await ask("/v1/documents", {{mode: "cors", headers: {{"Content-Type": "application/json"}}, body: '{{"text":"foreign words"}}'}});
  await fetch("{address}/v1/stats", {{mode: "no-cors"}}).catch(() => null);
}};
</script>"""


@contextlib.contextmanager
def elsewhere(text):
    """A page of another site, on loopback: gives its address."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def other_sites(browser, address):
    """Pages of another site, and of another port, send forms and scripts: all are refused. A link to the console works."""
    with elsewhere(FOREIGN.format(address=address)) as port:
        for host in ("localhost", "127.0.0.1"):
            context = browser.new_context()
            context.set_default_timeout(PATIENCE)
            page, got = context.new_page(), []
            page.on("response", lambda answer, got=got: got.append((answer.request.method, answer.url[len(address):], answer.status))
                    if answer.url.startswith(address) else None)
            page.goto(f"http://{host}:{port}/")
            page.evaluate("attack()")
            # The last is asked for leave by the browser, which does not get it.
            sent = [(method, path) for method, path, _ in got if method != "OPTIONS"]
            expected = [("POST", path) for path in ("/v1/backups", "/v1/compact", "/v1/backups", "/v1/expire", "/v1/compact")]
            if sent != expected + [("GET", "/v1/stats")] or {status for _, _, status in got} != {403}:
                yield f"a page of {host}: {got}"
            page.click("text=the console")
            page.wait_for_selector("h1:text-is('Overview')")
            context.close()


def signed_in(browser, address):
    """A server with tokens: one that is wrong, one that may only read, and one that may do all."""
    watched = Watched(browser, address)
    watched.expected = (401, 403)
    page = watched.page
    page.goto(address)
    page.wait_for_selector("dialog:has-text('This server requires a token')")
    page.fill("dialog input", WRONG)
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog:has-text('does not know this token')")
    yield from watched.look()
    page.fill("dialog input", READER)
    page.keyboard.press("Enter")
    page.wait_for_selector(".tile b")
    watched.open("#/try", "h1:text-is('Try')")
    page.fill(".source textarea", FIRST)
    page.get_by_role("button", name="Check and add").click()
    page.wait_for_selector(".problem")
    yield from is_shown(page, "Your token does not allow this", "a token that may only read")
    watched.open("#/overview", ".tile b")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_selector("dialog")
    page.keyboard.press("Escape")
    page.wait_for_selector(".problem")
    page.get_by_role("button", name="Try again").click()
    page.fill("dialog input", OWNER)
    page.keyboard.press("Enter")
    page.wait_for_selector(".tile b")
    watched.open("#/try", "h1:text-is('Try')")
    try_it(page, FIRST, "Check and add")
    yield from is_shown(page, "New: nothing like it is known", "a token that may do all")
    watched.open("#/index", "h1:text-is('Index default')")
    page.click("text=Make a new index")
    page.get_by_label("Name", exact=True).fill("n" * 64)
    page.get_by_role("button", name="Make it").click()
    page.wait_for_selector("h1:has-text('nnn')")
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 800})
        yield from watched.look()
    if any(WRONG in url or READER in url for url in watched.asked):
        yield "a token is in an address"
    yield from watched.close()


def server_gone(browser, address, server):
    """What is said when nobody answers."""
    watched = Watched(browser, address)
    watched.expected = (0,)
    page = watched.page
    watched.open("#/find", "h1:text-is('Find')")
    server.terminate()
    server.wait(timeout=60)
    page.fill("input[type=search]", "anything")
    page.keyboard.press("Enter")
    page.wait_for_selector(".problem")
    yield from is_shown(page, "The server does not answer", "without a server")
    yield from watched.close()
