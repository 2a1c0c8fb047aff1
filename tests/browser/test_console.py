"""Uses the console of `doppel serve` as people do, in a real browser.

    build/venv/bin/python tests/browser/test_console.py BUILD_DIR

Someone new opens the page, adds two versions of an article, and sees the verdict and what the two share; then every
other page, at the width of a desk and of a phone, light and dark, with two fonts (check.js and check_console.js say what a
page must be like), with the keyboard alone, with tokens, with documents that try to break out, from pages of other
sites, and with a server that is gone.
Nothing may be written to the console, and no request may leave the server. Screenshots are left in BUILD_DIR/console.
"""
import os
import pathlib
import random
import shutil
import sys

from playwright.sync_api import Error, sync_playwright

import console_stories as stories
import console_trouble as trouble
import corpus
import fonts
from serving import Watched, post, serving

# How pages are looked at.
WAYS = ((1280, "light"), (390, "dark"), (360, "light"))
# With the second font.
FEWER_WAYS = ((360, "dark"),)
if os.environ.get("DOPPEL_SUITE") == "full":
    WAYS += ((1280, "dark"), (390, "light"))
    FEWER_WAYS += ((1280, "light"), (390, "light"))
ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth".split()


def fill(address):
    """Stories, the last with the most copies."""
    rng = random.Random(5)
    for number, ordinal in enumerate(ORDINALS):
        text = corpus.prose(rng, 160)
        title = f"The {ordinal} story of all stories" if number == 3 else corpus.prose(rng, 7)
        for copy in range(1 + number):
            name = f"story-{number}" + (f"~{copy}" if copy else "")
            host = corpus.HOSTS[copy % len(corpus.HOSTS)]
            post(address, "/v1/documents", {"id": name, "url": f"https://{host}/{name}", "title": title if not copy else corpus.prose(rng, 7),
                                            "text": corpus.edited(rng, text, copy % 3)})


def visit(watched, name):
    """Opens a page and does what brings all of it."""
    page = watched.page
    if name == "overview":
        watched.open("#/overview", ".bar")
        if (1280, "light") == watched.way:
            page.wait_for_selector(".curve", state="attached")
    elif name == "check":
        watched.open("#/check", "h1:text-is('Check a document')")
        for example, button in (("an article", "Check and add"), ("its second version", "Check")):
            page.get_by_role("button", name=example, exact=True).click()
            page.get_by_role("button", name=button, exact=True).click()
            page.wait_for_selector(".busy", state="detached")
        page.wait_for_selector(".hunk")
    elif name == "compare":
        watched.open("#/compare", "h1:text-is('Compare two texts')")
        page.click("text=two versions of an article")
        page.get_by_role("button", name="Compare", exact=True).click()
        page.wait_for_selector(".hunk")
    elif name == "dedup":
        watched.open("#/dedup", "h1:text-is('Deduplicate a file')")
        stories.upload(page)
        page.wait_for_selector(".example .hunk")
        page.click("details.group summary")
        page.click(".group .documents button")
        page.wait_for_selector(".group mark")
    elif name == "groups":
        watched.open("#/groups", "details.group")
        page.click("details.group summary")
        page.click(".group .documents button")
        page.wait_for_selector(".group mark")
    elif name == "find":
        watched.open("#/find?q=story-9", ".place h2")
    elif name == "document":
        watched.open("#/document/story-9~1", "h2:text-is('Text')")
    else:
        watched.open("#/index", "h1:text-is('Index default')")
        page.click("text=Create an index")


def looks(browser, address, pictures, ways=WAYS, font=""):
    """Every page in every way."""
    for width, scheme in ways:
        watched = Watched(browser, address, width, scheme)
        for name in ("overview", "check", "compare", "dedup", "groups", "find", "document", "index"):
            visit(watched, name)
            watched.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            found = watched.look()
            if watched.page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g)[0] < 128") != (scheme == "dark"):
                found.append(f"the ground is not {scheme}")
            watched.page.screenshot(path=pictures / f"{name}-{width}-{scheme}{font}.png", full_page=True, caret="initial")
            yield from (f"{name}, {width} px, {scheme}{font}: {what}" for what in found)
        yield from watched.close()


def told(name, found):
    """What a story yields; one that cannot go on ends with what it waited for."""
    try:
        for what in found:
            yield f"{name}: {what}"
    except Error as error:
        yield f"{name}: {error}"


def run(browser, other, doppel, pictures):
    """`other` is a browser with another font."""
    with serving(doppel, "--keep-text", "--on-duplicate", "store", "--max-runs", "64") as (address, server):
        yield from told("newcomer", stories.newcomer(browser, address, pictures))
        fill(address)
        yield from told("looks", looks(browser, address, pictures))
        yield from told("looks", looks(other, address, pictures, FEWER_WAYS, "-noto"))
        yield from told("large, other font", trouble.large(other, address))
        for story in (stories.compare, stories.alignment, stories.large_texts, stories.broken_lines, stories.files, stories.dedup, stories.runs, stories.fields, stories.folder, stories.groups, stories.find, stories.index, stories.live, stories.keyboard,
                      trouble.hostile, trouble.large, trouble.other_sites):
            yield from told(story.__name__, story(browser, address))
        yield from told("commands", stories.commands(browser, address, doppel))
        yield from told("server_gone", trouble.server_gone(browser, address, server))
    with serving(doppel) as (address, _):
        yield from told("not_kept", stories.not_kept(browser, address))
    with serving(doppel, tokens=f"reader read {trouble.READER}\nowner admin {trouble.OWNER}\n") as (address, _):
        yield from told("signed_in", trouble.signed_in(browser, address))


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    pictures = build / "console"
    shutil.rmtree(pictures, ignore_errors=True)
    pictures.mkdir(parents=True)
    with sync_playwright() as playwright, fonts.browser_with(playwright, "DejaVu Sans") as browser, \
            fonts.browser_with(playwright, "Noto Sans") as other:
        wrong = list(run(browser, other, build / "doppel", pictures))
    print("\n".join(wrong) or f"the console is as it should be; {pictures} has pictures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
