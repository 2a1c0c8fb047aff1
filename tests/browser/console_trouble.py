"""The console in trouble: hostile documents, huge figures, tokens that are wrong, a server that is gone. Each function is a
story that yields what went wrong."""
import contextlib
import http.server
import random
import subprocess
import threading
import time

import corpus
from console_stories import FIRST, is_shown, last_day, try_it, upload
from serving import PATIENCE, Watched, address_of, post

READER, OWNER, WRONG = "reader-" + "r" * 32, "owner-" + "o" * 32, "wrong-" + "w" * 32


# The hostile document with the most copies, so that its group is the first.
OPENED = 2


def hostile(browser, address):
    """Documents that try to break out of the page."""
    watched = Watched(browser, address)
    page = watched.page
    text = corpus.prose(random.Random(3), 80)
    for number, (one, other) in enumerate(corpus.HOSTILE):
        post(address, "/v1/documents", {"id": one, "title": other, "url": f"https://hostile.example/{number}", "text": f"{other} {number} {text} {one}"})
        for copy in range(12 if number == OPENED else 1):
            post(address, "/v1/documents", {"id": f"{one}~{copy}", "title": other, "url": f"javascript:alert({number}{copy})", "text": f"{other} {number} {text} {one}"})
    post(address, "/v1/documents", {"id": "blank", "title": "\n\u200b\n", "text": f"blank {text} blank"})
    for route in ["#/groups", "#/find", "#/document/blank"] + ["#/document/" + page.evaluate("encodeURIComponent", one) for one, _ in corpus.HOSTILE]:
        watched.open(route, "h1")
        page.wait_for_selector("details.group, h2:text-is('Details'), .documents li")
        if route == "#/groups":
            page.click("details.group summary")
            page.click(".group .documents button")
            page.wait_for_selector(".group mark")
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

        def interrupt(route):
            """A day in which the server was down for six hours."""
            now, step = int(time.time()) // 900 * 900, 900
            points = [{"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - step * i)), "seconds": step, "checks": 10**9, "adds": i,
                       "verdictsBy": {"unique": 10**9, "url": i, "content": i * 10**7, "title": 0}, "documents": 1, "copies": 1}
                      for i in reversed(range(80)) if not 24 <= i < 48]
            route.fulfill(json={"index": "default", "stored": True, "step": 15, "points": points})

        page.route("**/v1/stats", swell)
        page.route("**/v1/history*", interrupt)
        watched.open("#/overview", ".bar")
        gaps = page.evaluate("[...document.querySelectorAll('.gap')].map(gap => Math.round(96 * gap.getBBox().width / gap.ownerSVGElement.clientWidth))")
        if gaps != [16, 24]:
            yield f"{width} px: the gaps of the last day are {gaps} quarters of an hour"
        rows = page.locator("figure:has(h2:text-is('The last day')) tbody tr").all_text_contents()
        if [i for i, row in enumerate(rows) if "not running" in row] != [33] or "no record" not in rows[0]:
            yield f"{width} px: the table does not say when the server was down: {rows}"
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
    page.wait_for_timeout(300)
    if {url[len(address):] for url in watched.asked if "/v1/" in url} != {"/v1/session"} or page.inner_text("main") != "doppel":
        yield f"behind the question for a token: {watched.asked}, {page.inner_text('main')!r}"
    page.fill("dialog input", WRONG)
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog:has-text('is not valid')")
    yield from watched.look()
    page.fill("dialog input", READER)
    page.keyboard.press("Enter")
    page.wait_for_selector(".tile b")
    # Nothing is offered that a reader may not do.
    post(address, "/v1/documents", {"id": "clock", "text": FIRST}, OWNER)
    for route, said in (("check", "Adding a document requires the right “write”, which your token does not have"), ("dedup", "Deduplicating a file requires the right “write”"), ("document/clock", "Removing a document requires the right “write”"),
                        ("index", "Creating and dropping indexes requires the right “admin”")):
        watched.open(f"#/{route}", ".needs")
        yield from is_shown(page, said, "a token that may only read")
        offered = page.locator("main button").all_inner_texts()
        if {"Choose a folder", "Remove this document", "Back up now", "Compact", "Remove expired", "Check and add"} & set(offered):
            yield f"a token that may only read: {route} offers {offered}"
    watched.open("#/overview", ".tile b")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_selector("dialog")
    page.keyboard.press("Escape")
    page.wait_for_selector(".problem")
    yield from is_shown(page, "Sign in with a valid token.", "without a token")
    page.get_by_role("button", name="Sign in").click()
    page.fill("dialog input", OWNER)
    page.keyboard.press("Enter")
    page.wait_for_selector(".tile b")
    watched.open("#/check", "h1:text-is('Check a document')")
    try_it(page, FIRST, "Check and add")
    yield from is_shown(page, "Counted as a copy of its original, and not stored itself", "a token that may do all")
    watched.open("#/dedup", "h1:text-is('Deduplicate a file')")
    upload(page, b"id,text\n1,one two three four five\n", "tâble.csv")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download kept").click()
    if download.value.suggested_filename != "tâble-kept.csv":
        yield f"a download with a token is called {download.value.suggested_filename}"
    watched.open("#/index", "h1:text-is('Index default')")
    page.click("text=Create an index")
    page.get_by_label("Name", exact=True).fill("n" * 64)
    page.get_by_role("button", name="Create").click()
    page.wait_for_selector("h1:has-text('nnn')")
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 800})
        yield from watched.look()
    if any(WRONG in url or READER in url for url in watched.asked):
        yield "a token is in an address"
    yield from watched.close()


def server_gone(browser, address, server):
    """What is said when nobody answers; and that the day is still known once the server is back."""
    watched = Watched(browser, address)
    watched.expected = (0,)
    page = watched.page
    watched.open("#/overview", ".tile b")
    before = last_day(page)
    watched.open("#/find", "h1:text-is('Find a document')")
    server.terminate()
    server.wait(timeout=60)
    page.fill("input[type=search]", "anything")
    page.keyboard.press("Enter")
    page.wait_for_selector(".problem")
    yield from is_shown(page, "The server is not responding", "without a server")
    yield from watched.close()
    again = subprocess.Popen(server.args, stderr=subprocess.PIPE, text=True)
    try:
        watched = Watched(browser, address_of(again))
        watched.open("#/overview", ".tile b")
        if last_day(watched.page) != before:
            yield f"a restart changes the last day: {last_day(watched.page)!r}, not {before!r}"
        for said in ("Nothing has been checked or added since the start.", "No copy has been found by its content since the start."):
            yield from is_shown(watched.page, said, "after a restart")
        yield from watched.close()
    finally:
        again.terminate()
        again.communicate(timeout=60)
