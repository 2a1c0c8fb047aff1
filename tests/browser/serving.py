"""A `doppel serve` of this build, on a free port of loopback, over a folder of its own; and a browser that watches what
the page does."""
import contextlib
import json
import pathlib
import re
import subprocess
import tempfile
import urllib.request

from playwright.sync_api import Error

HERE = pathlib.Path(__file__).parent
# Milliseconds: other tests may keep the machine busy.
PATIENCE = 60000


@contextlib.contextmanager
def serving(doppel, *options, tokens=None):
    """Gives the address of a server that runs with these options."""
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        for name in ("indexes", "backups"):
            (here / name).mkdir()
        command = [doppel, "serve", "--index", here / "seen", "--indexes", here / "indexes", "--backups", here / "backups",
                   "--listen", "127.0.0.1:0", *options]
        if tokens:
            (here / "tokens").touch(mode=0o600)
            (here / "tokens").write_text(tokens, encoding="utf-8")
            command += ["--tokens", here / "tokens"]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            yield address_of(server), server
        finally:
            server.terminate()
            server.stderr.read()
            server.wait(timeout=60)


def address_of(server):
    said = ""
    for line in server.stderr:
        said += line
        found = re.search(r"127\.0\.0\.1:(\d+)", line)
        if found:
            return f"http://127.0.0.1:{found[1]}"
    raise SystemExit("the server did not start: " + said)


def post(address, path, body, token=None):
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    request = urllib.request.Request(address + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def until(page, script, *given):
    """Waits for a script to give true. (The page's policy forbids what wait_for_function does.)"""
    for _ in range(PATIENCE // 100):
        if page.evaluate(script, *given):
            return
        page.wait_for_timeout(100)
    raise Error("waited in vain for " + script)


WATCH = """addEventListener("securitypolicyviolation", e => console.error("CSP: " + e.violatedDirective + " " + e.blockedURI));"""


class Watched:
    """A page of a browser; `wrong` lists what it should not have done."""

    def __init__(self, browser, address, width=1280, scheme="light"):
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce")
        self.context.set_default_timeout(PATIENCE)
        self.context.add_init_script(WATCH)
        self.address, self.way, self.wrong, self.asked, self.expected = address, (width, scheme), [], [], ()
        self.page = self.context.new_page()
        self.page.on("console", self.heard)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("request", self.saw)
        self.page.on("dialog", lambda dialog: (self.wrong.append("dialog: " + dialog.message), dialog.dismiss()))

    def heard(self, message):
        # A browser itself complains about each answer that is a problem.
        failed = re.search(r"status of (\d+)", message.text)
        if not (failed and int(failed[1]) in self.expected) and not (0 in self.expected and "ERR_CONNECTION" in message.text):
            self.wrong.append("console: " + message.text)

    def saw(self, request):
        self.asked.append(request.url)
        if not request.url.startswith(self.address + "/"):
            self.wrong.append("asks for " + request.url)

    def open(self, route, ready):
        """Opens a route, and waits until a selector is there."""
        if self.page.url.startswith(self.address):
            self.page.evaluate("route => { location.hash = route; }", route)
        else:
            self.page.goto(f"{self.address}/{route}")
        self.page.wait_for_selector(ready, state="attached")
        self.page.wait_for_selector("main:not([aria-busy])")

    def look(self):
        """Whether the page is as it should be, for eyes, fingers and ears."""
        found = self.page.evaluate((HERE / "check.js").read_text(encoding="utf-8"), True)
        return found + self.page.evaluate((HERE / "check_console.js").read_text(encoding="utf-8"))

    def close(self):
        self.context.close()
        return self.wrong
