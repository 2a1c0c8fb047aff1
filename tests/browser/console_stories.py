"""What people do with the console: each function is a story that yields what went wrong."""
import bz2
import gzip
import io
import json
import pathlib
import random
import re
import subprocess
import tempfile
import textwrap
import time
import urllib.request
import zipfile
from urllib.parse import quote

import corpus
from serving import Watched, post, until

FIRST = """The museum of clocks has bought a tower clock of 1743 that was thought to be lost. It was found in a barn, \
in eleven boxes, by a farmer who was looking for a ladder. The clock is as tall as a door and was made for a chapel that \
burned down in 1811. Its bell is missing; its pendulum is not. From June on visitors can see how it is put together."""
SECOND = FIRST.replace("a farmer", "a student") + " Entry is free."


def marks(page):
    """[[number, text]] of the passages on each of the two sides."""
    page.wait_for_selector(".shaded.columns mark")
    return page.evaluate("""() => [...document.querySelectorAll(".shaded .side")].map(side =>
        [...side.querySelectorAll("mark")].map(mark => [mark.querySelector("button").textContent,
            mark.childNodes[1].textContent]).sort((a, b) => a[0] - b[0]))""")


def changes(page):
    """What only A has, and what only B has, as it is marked."""
    page.wait_for_selector(".texts")
    return tuple(page.evaluate("""tag => [...document.querySelectorAll(".hunk " + tag)].map(e => e.lastChild.textContent.trim())""", tag)
                 for tag in ("del", "ins"))


def get(address, path):
    with urllib.request.urlopen(address + path, timeout=60) as answer:
        return json.load(answer)


def is_shown(page, text, what):
    if text not in page.inner_text("main"):
        yield f"{what}: does not say {text!r}"


def verdict(page):
    """[kind, sentence] of the verdict, once it is there."""
    page.wait_for_selector("#verdict > span")
    return [" ".join(part.split()) for part in page.locator("#verdict > span").all_inner_texts()]


def percent(share):
    return f"{100 * share:.1f} %".replace(".0 %", " %")


def try_it(page, text, button, title="", url=""):
    page.fill(".source textarea", text)
    page.get_by_label("Title", exact=True).fill(title)
    page.get_by_label("URL", exact=True).fill(url)
    page.get_by_role("button", name=button, exact=True).click()
    page.wait_for_selector(".busy", state="detached")


def newcomer(browser, address, pictures):
    """Opens the page for the first time, adds two versions of an article."""
    watched = Watched(browser, address)
    page = watched.page
    watched.open("", "h1:text-is('Overview')")
    page.wait_for_selector("h2:text-is('This index is empty')")
    page.click("text=Check two versions of an article")
    page.wait_for_selector("h1:text-is('Check a document')")
    try_it(page, FIRST, "Check and add", "A lost clock is found", "https://paper.example/clock")
    if verdict(page) != ["New", "No known document is more than 30 % similar."]:
        yield f"the verdict on the first version: {verdict(page)}"
    try_it(page, SECOND, "Check", "Clock of 1743 found in a barn", "https://other.example/clock")
    known = post(address, "/v1/compare", {"a": {"text": FIRST}, "b": {"text": SECOND}})
    if verdict(page) != ["Copy", f"{percent(known['containmentAB'])} of A lost clock is found is here: 2 shared passages."]:
        yield f"the verdict on the second version: {verdict(page)}"
    if changes(page) != (["farmer"], ["student", "Entry is free."]):
        yield f"the differences are not those of the two: {changes(page)}"
    yield from is_shown(page, "a copy from 80 %", "the scale")
    if page.text_content(".scale .value") != f"{percent(known['similarity'])} similar":
        yield f"the scale says {page.text_content('.scale .value')!r}"
    page.click(".fold >> nth=0")
    yield from is_shown(page, "a tower clock of 1743", "what was folded")
    page.screenshot(path=pictures / "newcomer.png", full_page=True, caret="initial")
    page.get_by_role("button", name="Add it", exact=True).click()
    page.wait_for_selector(".said")
    yield from is_shown(page, "Counted as a copy of its original, and stored as https://other.example/clock", "the second version, added")
    page.get_by_role("button", name="Undo", exact=True).click()
    page.wait_for_selector("text=Removed. Its original still counts it as a copy.")
    if "other.example" in json.dumps(get(address, "/v1/documents")):
        yield "what was undone is still there"
    # What is no URL is not sent.
    asked = len(watched.asked)
    for button in ("Check", "Check and add"):
        try_it(page, FIRST, button, url="other.example/clock")
        yield from is_shown(page, "An address begins with https://", "a URL without its scheme")
    if len(watched.asked) != asked:
        yield f"a URL without its scheme: {watched.asked[asked:]}"
    # Stored once, and not with another text at the same URL.
    for text, said in ((SECOND, "and stored as"), (SECOND + " So is parking.", "and not stored itself")):
        try_it(page, text, "Check and add", url="https://other.example/clock")
        yield from is_shown(page, f"Counted as a copy of its original, {said}", "a URL that is added twice")
    # A third one is new, but not unlike the first: that is said at once, and the list does not have the document itself.
    try_it(page, " ".join(FIRST.split()[:45]) + " All else that is said here is quite different from that, and goes on for some time.", "Check and add")
    kind, said = verdict(page)
    if kind != "New" or not said.startswith("The nearest is A lost clock is found: ") or page.text_content(".scale .value") not in said:
        yield f"the verdict on the third version: {verdict(page)}, {page.text_content('.scale .value')!r}"
    nearest = page.locator("section:has(> h2:text-is('The nearest documents')) li").all_inner_texts()
    if len(nearest) != 1 or "A lost clock is found" not in nearest[0]:
        yield f"the nearest documents of the third version: {nearest}"
    yield from watched.look()
    # The same text twice is a repeat, not a copy that was lost; what was added can be removed again.
    again = "Some other words about clocks and towers that nobody has put down in this way before."
    try_it(page, again, "Check and add")
    yield from is_shown(page, "Added as", "a text that is new")
    try_it(page, again, "Check and add")
    yield from is_shown(page, "The same document again", "a text that is added twice")
    page.click(".verdict h2 a")
    page.wait_for_selector("h2:text-is('Copies')")
    yield from is_shown(page, "1 copy counted, but not in the index: added again under the same id, or removed since.", "a text that is added twice")
    page.get_by_role("button", name="Remove this document").click()
    page.get_by_role("button", name="Remove", exact=True).click()
    page.wait_for_selector(".done:has-text('Removed: ')")
    watched.open("#/check", "h1:text-is('Check a document')")
    try_it(page, again, "Check and add")
    page.get_by_role("button", name="Undo", exact=True).click()
    page.wait_for_selector(".said:text-is('Removed.')")
    watched.open("#/overview", ".tile b")
    if page.is_visible(".welcome"):
        yield "the overview still says that the index is empty"
    yield from watched.close()


def not_kept(browser, address):
    """An index that does not keep texts: what was added from this tab can still be compared."""
    watched = Watched(browser, address)
    page = watched.page
    watched.open("#/check", "h1:text-is('Check a document')")
    try_it(page, FIRST, "Check and add")
    try_it(page, SECOND, "Check")
    if not all(changes(page)):
        yield "the version that was added before is not shown"
    page.reload()
    page.wait_for_selector("h1:text-is('Check a document')")
    try_it(page, SECOND, "Check")
    yield from is_shown(page, "does not keep texts (--keep-text)", "without the text")
    # What is said where there is no text at all.
    for text, button, said in (("", "Check and add", "No text was given"), ("", "Check", "No text was given"), (SECOND[:90], "Check", "The original was added without text")):
        try_it(page, text, button, url="https://paper.example/no-text")
        yield from is_shown(page, said, "without any text")
        if "--keep-text" in page.inner_text(".place"):
            yield f"without any text: speaks of texts that are kept: {page.inner_text('.place')!r}"
    try_it(page, FIRST, "Check and add", url="https://paper.example/other-url")
    yield from is_shown(page, "Counted as a copy of its original, and not stored itself", "an index that counts copies")
    if page.get_by_role("button", name="Undo", exact=True).count():
        yield "offers to undo what was only counted"
    watched.open("#/groups", ".lead:has-text('The texts of copies are kept only with --keep-text --on-duplicate store.')")
    yield from watched.close()


def compare(browser, address):
    """Texts with characters of two units, and a page."""
    watched = Watched(browser, address)
    page = watched.page
    watched.open("#/compare", "h1:text-is('Compare two texts')")
    a, b = page.locator(".source textarea").all()
    a.fill("\U0001f980\U0001f980 Ünïcode wörds \U0001f40c stand before the very same seven words. 彼は本を読んだ")
    b.fill("<html><body><p>Here stand before the very same seven words. <b>And</b> more \U0001f40c.</p></body></html>")
    page.get_by_role("button", name="Compare", exact=True).click()
    (kind, said), measured = verdict(page), page.text_content(".scale .value")
    if kind != "Not copies" or not said.startswith(f"A and B are {measured}") or not said.endswith(": 1 shared passage."):
        yield f"compare: the sentence and its scale do not say the same: {said!r}, {measured!r}"
    page.get_by_label("shared text").check()
    page.click("summary:has-text('All measures')")
    if marks(page) != [[["1", "stand before the very same seven words"]]] * 2:
        yield f"the passages are not where they should be: {marks(page)}"
    page.focus(".shaded .number")
    page.keyboard.press("Enter")
    if page.evaluate("document.activeElement === document.querySelectorAll('.shaded .number')[1]") is not True:
        yield "the number of a passage does not lead to the other side"
    for measure in ("Similarity", "A in B", "Distance", "Cosine", "Angle", "Euclidean distance", "Edit distance", "Same words"):
        yield from is_shown(page, measure, "compare")
    page.get_by_label("differences").check()
    if not all(changes(page)):
        yield "differences are not shown"
    a.fill("")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_selector(".problem")
    yield from is_shown(page, "One side is empty", "compare")
    # No copies, but a paragraph in common.
    rng = random.Random(15)
    passage = corpus.prose(rng, 90)
    for area in (a, b):
        area.fill(f"{corpus.prose(rng, 200)} {passage} {corpus.prose(rng, 200)}")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_selector("#verdict .kind:text-matches('^Not copies, but they share a passage of 9[0-9] words$')")
    yield from watched.close()


def alignment(browser, address):
    """Text that moved, and a long stretch that only one side has; the picture, the keys and the panes lead through both."""
    watched = Watched(browser, address)
    page = watched.page
    rng = random.Random(8)
    parts = [corpus.prose(rng, 400) for _ in range(6)]
    own = " ".join(f"own{i}" for i in range(900))
    watched.open("#/compare", "h1:text-is('Compare two texts')")
    a, b = page.locator(".source textarea").all()
    a.fill("\n\n".join(parts))
    b.fill("\n\n".join([own, parts[0], parts[4], *parts[1:4], parts[5].replace("e", "E", 1) + " And an end."]))
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_selector(".hunk")
    for said in ("903 words only in B", "400 words moved", "… 750 more words …", "… 380 more words …"):
        yield from is_shown(page, said, "alignment")
    page.click("text=750 more words")
    if changes(page)[1][0] != own or page.locator(".hunk .moved").count() != 2:
        yield "alignment: what only one side has, or what moved, is not marked"
    # The words that are only in B are at its beginning, what moved after them; the last words are a difference of their own.
    box, where = page.locator("svg.alignment").bounding_box(), lambda: page.inner_text(".where")
    page.mouse.click(box["x"] + box["width"] - 2, box["y"] + box["height"] - 3)
    if where() != "4 of 4" or not page.locator(".hunk").last.evaluate("hunk => hunk.classList.contains('current')"):
        yield f"alignment: a click at the end leads to {where()!r}"
    if not page.get_attribute(".alignment .current", "d"):
        yield "alignment: the picture does not mark where one is"
    for key, said in (("n", "1 of 4"), ("n", "2 of 4"), ("p", "1 of 4"), ("p", "4 of 4")):
        page.keyboard.press(key) if page.evaluate("document.activeElement.closest('.texts')") else page.locator(".hunks").press(key)
        if where() != said:
            yield f"alignment: {key} leads to {where()!r}, not {said!r}"
    yield from watched.look()
    # Panes scroll together: what both have stays level.
    page.get_by_label("shared text").check()
    tops = """() => [...document.querySelectorAll(".side")].map(side =>
        [...side.querySelectorAll("mark")].map(mark => [mark.dataset.number, mark.offsetTop - side.scrollTop]))"""
    page.locator(".side").first.hover()
    page.mouse.wheel(0, 900)
    until(page, "() => [...document.querySelectorAll('.side')].every(side => side.scrollTop > 800)")
    left, right = page.evaluate(tops)
    beside, height = dict(right), page.locator(".side").first.bounding_box()["height"]
    top, number = max((top, number) for number, top in left if top < height / 3)
    if abs(top - beside[number]) > 30:
        yield f"alignment: what both have is at {top} and {beside[number]} pixels"
    yield from watched.look()
    yield from watched.close()


def lines(seed=9, stories=150):
    """A file of pages, some with edited copies."""
    rng, made = random.Random(seed), []
    for number in range(stories):
        text = corpus.prose(rng, 120)
        for copy in range(1 + (number % 5 == 0) * (1 + number % 4)):
            made.append(json.dumps({"id": f"page-{number}" + f"~{copy}" * (copy > 0), "title": corpus.prose(rng, 5), "text": corpus.edited(rng, text, 2 * copy)}))
    return ("\n".join(made) + "\n").encode()


def upload(page, body=None, name="pages.jsonl"):
    page.set_input_files("input[type=file]:not([webkitdirectory])", {"name": name, "mimeType": "application/jsonl", "buffer": body or lines()})


def figures(page):
    """What the page of a run counts, once it has all of it."""
    until(page, "() => document.querySelector('.tile') && [...document.querySelectorAll('.tile b')].every(one => one.textContent !== '–')")
    return page.locator(".tile b").all_inner_texts()


def dedup(browser, address):
    """A file is analysed, a threshold chosen, the result downloaded; a run is opened again, and deleted."""
    watched = Watched(browser, address)
    watched.expected = (404,)
    page = watched.page
    watched.open("#/dedup", "h1:text-is('Deduplicate a file')")
    upload(page)
    page.wait_for_selector(".example .hunk")
    documents = len(lines().splitlines())
    tiles = lambda: [int(text.replace(",", "")) for text in figures(page)]
    at_80 = tiles()
    if at_80[0] != documents or at_80[1] + at_80[2] != documents or not at_80[2]:
        yield f"the counts do not fit: {at_80}"
    groups = lambda: page.locator("details.group").all_inner_texts()
    largest = groups()
    # The bars from the threshold on are the documents that are removed; clusters are the groups.
    bars = lambda kind: sum(int(text.split(": ")[1].split()[0]) for text in page.locator(f".plot rect.{kind} title").all_text_contents())
    clusters = lambda: [int(text) for text in page.locator(".clusters li").all_inner_texts()]
    if bars("goes") != at_80[2] or not bars("stays"):
        yield f"the bars from 80 % on are {bars('goes')} documents, not {at_80[2]}"
    sizes = [int(text.split(" documents")[0].split()[-1]) for text in largest]
    if clusters()[:len(sizes)] != sizes or len(clusters()) != min(24, at_80[3]):
        yield f"the clusters are {clusters()}, the groups {sizes}"
    page.locator(".clusters button").nth(9).click()
    opened = page.locator("details.group[open]")
    if opened.count() != 1 or page.evaluate("document.activeElement.closest('details.group').open") is not True:
        yield "a cluster does not open its group"
    opened.locator("summary").click()
    page.locator(".plot").click(position={"x": page.locator(".plot").bounding_box()["width"] - 42, "y": 40})
    if page.locator("input[type=range]").get_attribute("aria-valuetext").split(":")[0] != "99 %":
        yield f"a press on the chart chooses {page.locator('input[type=range]').get_attribute('aria-valuetext')}"
    page.wait_for_selector("text=groups of two or more at 99 %")
    page.locator("input[type=range]").fill("80")
    page.wait_for_selector("text=groups of two or more at 80 %")
    # A copy of a group opens with what it shares with the kept one shaded, and closes again.
    page.locator("details.group summary").first.click()
    row = page.locator("details.group .documents li").first
    row.get_by_role("button", name="Show", exact=True).click()
    page.wait_for_selector(".group mark")
    shared = row.locator(".shaded mark").first.evaluate("mark => mark.childNodes[1].textContent")
    texts = {one["id"]: one["text"] for one in map(json.loads, lines().splitlines())}
    kept = texts[page.locator("details.group summary").first.inner_text().split("Kept: ")[1].strip()]
    copy = texts[row.locator(".soft").first.inner_text().strip()]
    if len(shared.split()) < 10 or shared not in kept or shared not in copy:
        yield f"a copy of a group: {shared!r} is not in both"
    yield from is_shown(page, "are also in the kept document", "a copy of a group")
    row.get_by_role("button", name="Hide", exact=True).click()
    if row.locator("mark").first.is_visible():
        yield "a copy of a group does not close"
    page.locator("details.group summary").first.click()
    page.locator("input[type=range]").fill("100")
    page.wait_for_selector("text=groups of two or more at 100 %")
    at_100 = tiles()
    if bars("goes") != at_100[2]:
        yield f"the bars do not follow the slider: {bars('goes')}, not {at_100[2]}"
    if not at_100[2] < at_80[2] or not at_100[3] < at_80[3] or at_100[1] + at_100[2] != documents:
        yield f"the slider does not show what is removed: {at_80} {at_100}"
    if not largest or len(groups()) != min(at_100[3], 8) or groups() == largest:
        yield f"the slider does not move the groups: {largest} {groups()}"
    yield from is_shown(page, "doppel dedup pages.jsonl -o kept.jsonl --removed removed.jsonl --similarity 1.00", "the command")
    page.locator("input[type=range]").fill("80")
    page.wait_for_selector("text=groups of two or more at 80 %")
    if tiles() != at_80 or groups() != largest:
        yield f"the slider does not bring the groups back: {largest} {groups()}"
    for button, count in (("Download kept", at_80[1]), ("Download removed", at_80[2])):
        with page.expect_download() as download:
            page.get_by_role("button", name=button).click()
        with open(download.value.path(), "rb") as got:
            if len(got.read().splitlines()) != count:
                yield f"{button}: not {count} lines"
    page.reload()
    page.wait_for_selector(".example .hunk")
    if tiles() != at_80:
        yield "a run that is opened again is another one"
    yield from watched.look()
    # All groups, a page at a time.
    more = page.get_by_role("button", name="Show more groups")
    for shown in [f"{number} of {at_80[3]}" for number in range(8, at_80[3], 16)]:
        page.wait_for_selector(f".pages >> text={shown}")
        more.click()
    more.wait_for(state="hidden")
    if at_80[3] <= 24 or len(groups()) != at_80[3] or len(set(groups())) != at_80[3]:
        yield f"not all {at_80[3]} groups are listed: {len(groups())}"
    # Why a document is removed.
    copy_id = "page-145~1"
    for asked, said in ((copy_id, f"{copy_id} is removed at 80 %: it is "), ("page-145", "page-145 is kept at 80 %, and "),
                        ("page-1", "page-1 is kept: at 80 % it is not a copy of any other document."), ("<no such>", "No document in this file has the id <no such>.")):
        page.get_by_label("Why was a document removed?").fill(asked)
        page.keyboard.press("Enter")
        page.wait_for_selector(f".why h3:has-text('{said}')")
        if (page.locator(".why mark").count() > 0) != (asked == copy_id):
            yield f"why {asked}: the two texts"
        if asked == copy_id and len(set(page.locator(".why .about mark").inner_text().split()[0:3:2])) != 2:
            yield f"why {asked}: the two texts are the same: {page.locator('.why .about').inner_text()!r}"
    yield from watched.look()
    page.get_by_role("button", name="Delete now").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Delete now").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    page.wait_for_selector(".tile", state="detached")
    # Documents with the same id are told apart by their numbers.
    upload(page, json.dumps({"id": "twice", "text": FIRST}).encode() + b"\n" + json.dumps({"id": "twice", "text": FIRST}).encode(), "twice.jsonl")
    page.get_by_label("Why was a document removed?").fill("twice")
    page.keyboard.press("Enter")
    page.wait_for_selector(".why h3:has-text('twice (document 2) is removed at 80 %: it is 100 % similar to twice (document 1), which is kept.')")
    # A bar that would dwarf all others is cut, and has its number.
    rng = random.Random(10)
    texts = [corpus.prose(rng, 60)] * 41 + [corpus.edited(rng, corpus.prose(random.Random(number // 2), 60), number % 2) for number in range(20)]
    upload(page, "".join(json.dumps({"text": text}) + "\n" for text in texts).encode(), "many.jsonl")
    page.wait_for_selector(".plot text.count >> text='40'", state="attached")
    page.wait_for_selector(".example .hunk")
    yield from watched.look()
    upload(page, b"words without any record\n", "broken.jsonl")
    page.wait_for_selector(".problem")
    yield from is_shown(page, "This file cannot be used", "a file that is none of its kind")
    # A file that is refused, small or large, and a server that is full: in its own words, and in no others.
    watched.expected = (404, 415, 503)
    for size in (9, 1 << 22):
        upload(page, b"PK\x03\x04" + bytes(size), "table.xlsx")
        page.wait_for_selector(".problem:has(h2:text-is('This file cannot be read')):has-text('save the spreadsheet as CSV')")
    page.route("**/v1/runs?*", lambda route: route.fulfill(status=503, json={"type": "urn:doppel:problem:full", "title": "Full", "status": 503, "detail": "8 runs are held"}))
    upload(page, b"{}", "next.jsonl")
    page.wait_for_selector(".problem:has-text('8 runs are held')")
    if "does not respond" in page.inner_text(".problem") or "Sending" in page.inner_text("main"):
        yield f"a full server: {page.inner_text('main')!r}"
    yield from watched.close()


def runs(browser, address):
    """The files that the server still has: they can be opened and deleted; the next file of a tab takes the place of its last."""
    watched = Watched(browser, address)
    page = watched.page
    names = lambda: [run["name"] for run in get(address, "/v1/runs")["runs"]]
    request = urllib.request.Request(f"{address}/v1/runs?name=from-a-program.jsonl", lines(), {"Content-Type": "application/octet-stream"})
    urllib.request.urlopen(request, timeout=60).close()
    watched.open("#/dedup", "h1:text-is('Deduplicate a file')")
    for name in ("one.jsonl", "two.jsonl"):
        upload(page, b'{"text": "one two three four five six"}\n{"id": 2, "text": ""}\n' * 2, name)
        page.wait_for_selector(f"h2:has-text('{name}')")
        page.wait_for_selector(".command")
        if page.input_value("input[type=file] >> nth=0"):
            yield "the same file cannot be chosen again"
    yield from is_shown(page, "2 documents have no words and are kept.", "a file with empty documents")
    if "one.jsonl" in names() or "two.jsonl" not in names():
        yield f"the server has {names()}"
    page.click("nav >> text=Deduplicate")
    listed = page.locator("li:has-text('from-a-program.jsonl')")
    listed.wait_for()
    if " removed · sent " not in listed.inner_text():
        yield f"a listed file: {listed.inner_text()!r}"
    yield from watched.look()
    listed.get_by_role("link").click()
    page.wait_for_selector(".example .hunk")
    page.click("nav >> text=Deduplicate")
    for name in ("from-a-program.jsonl", "two.jsonl"):
        page.get_by_role("button", name=f"Delete {name}").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
        page.wait_for_selector(f"main li:has-text('{name}')", state="detached")
    if {"from-a-program.jsonl", "two.jsonl"} & set(names()):
        yield f"deleted files are still there: {names()}"
    yield from watched.close()


def commands(browser, address, doppel):
    """The commands that can be copied give the files that are downloaded, whatever the file is called."""
    watched = Watched(browser, address)
    watched.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = watched.page
    watched.open("#/dedup", "h1:text-is('Deduplicate a file')")
    table = "key;question;answer\n" + "".join(f"{number};what {corpus.prose(random.Random(number // 2), 30)};{corpus.prose(random.Random(number // 4), 30)}\n" for number in range(8))
    for name, kept in (("-it's a [table] {1}.csv", "-it's a [table] {1}-kept.csv"), ("plain.tsv", "plain-kept.tsv")):
        body = table.replace(";", "\t" if name.endswith(".tsv") else ";").encode()
        upload(page, body, name)
        page.get_by_label("question", exact=True).check()
        page.get_by_label("answer", exact=True).check()
        page.get_by_label("Document id").select_option("key")
        page.get_by_role("button", name="Find copies").click()
        page.wait_for_selector("text=Text fields: question, answer. Id field: key.")
        page.wait_for_selector("text=4 groups of two or more")
        with page.expect_download() as download:
            page.get_by_role("button", name="Download kept").click()
        got = pathlib.Path(download.value.path()).read_bytes()
        if not download.value.suggested_filename.endswith("-kept" + name[-4:]) or got.splitlines() != [body.splitlines()[i] for i in (0, 1, 3, 5, 7)]:
            yield f"{name}: the download is {download.value.suggested_filename}: {got!r}"
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, name).write_bytes(body)
            for what, output in (("command", "kept" + name[-4:]), ("curl", kept)):
                page.get_by_role("button", name=f"Copy as {what}").click()
                page.wait_for_selector("button:text-is('Copied')")
                command = page.evaluate("navigator.clipboard.readText()")
                page.wait_for_selector(f"button:text-is('Copy as {what}')")
                ran = subprocess.run(command.replace("doppel dedup", f"{doppel} dedup", 1), shell=True, cwd=folder, capture_output=True, text=True, check=False)
                made = pathlib.Path(folder, output)
                if ran.returncode or not made.exists() or made.read_bytes() != got:
                    yield f"{command}: {ran.stderr}"
    # Where the browser gives no access to the clipboard, what was asked for is shown instead, to be selected.
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed')); }")
    for what, begins in (("curl", "curl -f -T plain.tsv"), ("command", "doppel dedup plain.tsv")):
        page.get_by_role("button", name=f"Copy as {what}").click()
        page.wait_for_selector("button:text-is('Select and copy the line above')")
        if not page.inner_text(".command").startswith(begins):
            yield f"copy as {what} without a clipboard shows {page.inner_text('.command')!r}"
        page.wait_for_selector(f"button:text-is('Copy as {what}')")
    # A terminal may take control characters for keys: those in the name of a field are escaped.
    for key in ("a\x03\x1b[201~\ny", "it's\\\t\x7f'"):
        command = page.evaluate("async textKey => (await import('/console/terminal.js')).asCommand({file: {name: 'a.csv'}, keys: {textKey}}, 0.8)", key)
        ran = subprocess.run(["bash", "-c", 'doppel() { printf "%s\\0" "$@"; }\n' + command], capture_output=True, text=True, check=False)
        if not command.isprintable() or key not in ran.stdout.split("\0"):
            yield f"{command!r} has not the field {key!r}"
    yield from watched.close()


def table():
    """A CSV file whose text is in a column of another name, with cells of several lines and names that would break out."""
    rng, rows = random.Random(6), [["number", "say, \"what\"", *(one for one, _ in corpus.HOSTILE if "\0" not in one)]]
    for number in range(8):
        rows.append([str(number), corpus.prose(random.Random(number // 2), 40) + "\nEnd", *(corpus.prose(rng, 2) for _ in rows[0][2:])])
    return "\n".join(",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows).encode() + b"\n"


def fields(browser, address):
    """A table without a text: its columns and their values are shown, one is chosen, and another one afterwards."""
    watched = Watched(browser, address, 390)
    page = watched.page
    command = lambda: page.inner_text(".command")
    watched.open("#/dedup", "h1:text-is('Deduplicate a file')")
    upload(page, table(), "table.csv")
    page.wait_for_selector("h2:text-is('Which field contains the text?')")
    yield from watched.look()
    chosen = page.evaluate("document.querySelector('.fields input:checked').labels[0].textContent.trim()")
    if chosen != 'say, "what"':
        yield f"fields: not the longest is proposed, but {chosen!r}"
    for said in ("No field of table.csv is named text or html", corpus.prose(random.Random(0), 40)[:100], "the line number"):
        yield from is_shown(page, said, "fields")
    page.get_by_label("number", exact=True).check()
    page.get_by_role("button", name="Find copies").click()
    page.wait_for_selector(".problem:has-text('A field with a comma in its name cannot be combined with others')")
    page.get_by_label("number", exact=True).uncheck()
    page.get_by_label("Document id").select_option("number")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=4 groups of two or more")
    if command() != "doppel dedup table.csv -o kept.csv --removed removed.jsonl --similarity 0.80 --text-key 'say, \"what\"' --id-key number":
        yield f"fields: the command is {command()}"
    if figures(page) != ["8", "4", "4", "4"]:
        yield f"fields: {figures(page)}"
    page.reload()
    page.wait_for_selector(".command")
    if "--id-key number" not in command():
        yield f"fields, opened again: the command is {command()}"
    # The file is no longer here, but on the server; which is not sent it again.
    uploads = lambda: sum("/v1/runs?" in url for url in watched.asked)
    sent = uploads()
    page.get_by_role("button", name="Choose other fields").click()
    page.get_by_role("button", name="Find copies").click()
    page.wait_for_selector(".problem:has-text('Choose one or more fields.')")
    page.get_by_label("number", exact=True).check()
    page.get_by_role("button", name="Find copies").click()
    page.wait_for_selector("text=--text-key number --id-key number")
    if figures(page)[0] != "8" or uploads() != sent:
        yield "fields: another one cannot be read once the file is not here"
    # What only the server can unpack: it says which fields there are.
    upload(page, bz2.compress(b'{"key": "1", "body": "one two three four five six"}\n{"key": "2", "body": "seven"}\n'), "packed.jsonl.bz2")
    page.get_by_role("button", name="Choose the field with the text").click()
    if page.evaluate("document.querySelector('.fields input:checked').labels[0].textContent.trim()") != "body":
        yield "fields of a packed file: the longest is not proposed"
    sent = uploads()
    page.get_by_role("button", name="Find copies").click()
    page.wait_for_selector("text=--text-key body")
    if uploads() != sent:
        yield "fields of a packed file: it is sent again"
    upload(page, gzip.compress(b'[{"id": 7, "meta": {"name": "first", "body": "one two three four five six"}}, {"id": 8, "meta": {"name": "other", "body": "seven"}}]'), "nested.json.gz")
    page.wait_for_selector("h2:text-is('Which field contains the text?')")
    page.get_by_label("meta.body").check()
    page.get_by_role("button", name="Find copies").click()
    page.wait_for_selector("text=--text-key meta.body")
    page.get_by_role("button", name="Choose other fields").click()
    page.get_by_label("meta.name").check()
    page.get_by_role("button", name="Find copies").click()
    page.wait_for_selector("text=--text-key meta.name,meta.body")
    # The usual fields are not asked for; a document without an id is FILE:LINE.
    upload(page, b'{"text": "one two three four five six"}\n' * 2, "usual.jsonl")
    page.wait_for_selector("text=Text field: text. Id: the line number.")
    page.wait_for_selector("text=2 documents, 1 removed. Kept: usual.jsonl:1")
    yield from watched.close()


def docx(text):
    with io.BytesIO() as made:
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr("word/document.xml", f"<w:document xmlns:w='w'><w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body></w:document>")
        return made.getvalue()


def drop(page, place, files):
    """Drops files on an element: {name: bytes}."""
    page.evaluate("""([place, files]) => {
        const data = new DataTransfer();
        for (const [name, body] of files) data.items.add(new File([new Uint8Array(body)], name));
        document.querySelector(place).dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
    }""", [place, [[name, list(body)] for name, body in files.items()]])


def essays():
    """A folder with files of many kinds: six of them have nine documents; four cannot be read."""
    rng = random.Random(12)
    one, other = corpus.prose(rng, 90), corpus.prose(rng, 90)
    return {
        "alice.txt": one.encode(),
        "alice.docx": docx(one),
        ".notes.txt": corpus.prose(rng, 60).encode(),
        "bob's essay (2).txt.gz": gzip.compress(other.encode()),
        "sub/some.jsonl": "".join(json.dumps({"text": text}) + "\n" for text in (one, corpus.prose(rng, 50), other)).encode(),
        "sub/table.csv": f"id,text\n1,{corpus.prose(rng, 30)}\n2,{other}\n".encode(),
        "book.xlsx": b"PK\x03\x04" + bytes(200),
        "bin.dat": b"ab\0cd" * 50,
        "broken.docx": b"no Word document",
        "cut.bin": bytes(range(256)),
    }


def run_copied(page, what, doppel, folder):
    """Carries out a command that the page copies; gives what it says."""
    page.get_by_role("button", name=f"Copy as {what}").click()
    page.wait_for_selector("button:text-is('Copied')")
    command = page.evaluate("navigator.clipboard.readText()")
    page.wait_for_selector(f"button:text-is('Copy as {what}')")
    ran = subprocess.run(command.replace("doppel dedup", f"{doppel} dedup", 1), shell=True, cwd=folder, capture_output=True, text=True, check=False)
    return command, ran


def same_as_commands(page, doppel, folder, kept, curl_kept):
    """The downloads and the files that the two commands write are the same."""
    got = {}
    for name in ("kept", "removed"):
        with page.expect_download() as download:
            page.get_by_role("button", name=f"Download {name}").click()
        got[name] = pathlib.Path(download.value.path()).read_bytes()
    for what, outputs in (("command", {"kept": kept, "removed": "removed.jsonl"}), ("curl", {"kept": curl_kept})):
        command, ran = run_copied(page, what, doppel, folder)
        for name, output in outputs.items():
            made = pathlib.Path(folder, output)
            if ran.returncode or not made.exists() or made.read_bytes() != got[name]:
                yield f"{command}: {name}: not what was downloaded; {ran.stderr}"


def folder(browser, address, doppel):
    """The files of a folder are read by the server as the command reads them; what cannot be read is listed."""
    watched = Watched(browser, address)
    watched.expected = (404,)
    watched.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = watched.page
    watched.open("#/dedup", "h1:text-is('Deduplicate a file')")
    with tempfile.TemporaryDirectory() as here:
        for name, body in essays().items():
            path = pathlib.Path(here, "essays", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
        page.set_input_files("input[webkitdirectory]", pathlib.Path(here, "essays"))
        page.wait_for_selector("text=Download kept")
        page.wait_for_selector("h2:text-is('Not read: 4 files or records')")
        if figures(page) != ["9", "5", "4", "2"]:
            yield f"a folder: {figures(page)}"
        listed = page.inner_text("table.unread")
        for name, why in (("essays/bin.dat", "binary, not text"), ("essays/book.xlsx", ""), ("essays/broken.docx", "not a Word document"), ("essays/cut.bin", "binary, not text")):
            if name not in listed or why not in listed:
                yield f"a folder: {name} is not listed as {why!r}: {listed!r}"
        # A file is found by its name without its folder.
        page.get_by_label("Why was a document removed?").fill("alice.txt")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="essays/alice.txt", exact=True).click()
        page.wait_for_selector(".why h3:text-matches('^essays/alice.txt is (kept|removed) at 80 %')")
        yield from watched.look()
        yield from same_as_commands(page, doppel, here, "kept.jsonl", "essays-kept.jsonl")
        # Opened again, it shows the same command.
        shown = page.inner_text(".command")
        page.reload()
        page.wait_for_selector("text=Download kept")
        if page.inner_text(".command") != shown or not shown.startswith("doppel dedup essays -o kept.jsonl"):
            yield f"a folder, opened again: {page.inner_text('.command')!r} after {shown!r}"
        # The command may read a PDF, so there is none.
        pathlib.Path(here, "essays", "x.pdf").write_bytes(b"%PDF-1.4 nonsense")
        page.set_input_files("input[webkitdirectory]", pathlib.Path(here, "essays"))
        page.wait_for_selector("h2:text-is('Not read: 5 files or records')")
        page.wait_for_selector("text=No command is shown")
        if page.locator(".command").count():
            yield f"a folder with a PDF: {page.inner_text('.command')!r}"
    # Nothing of it can be read: the reason of each file is shown.
    watched.open("#/overview", "h1:text-is('Overview')")
    drop(page, "h1", {"bin.dat": b"a\0b", "x.pdf": b"%PDF-1.4 nonsense"})
    page.wait_for_selector("h2:text-is('These files cannot be used')")
    yield from is_shown(page, "x.pdf", "files that cannot be read")
    drop(page, ".drop", {f"{number:02}.bin": b"a\0b" for number in range(15)})
    page.wait_for_selector("h2:text-is('Not read: 15 files or records')")
    page.get_by_role("button", name="Show 15").click()
    if page.locator("table.unread tbody tr").count() != 15:
        yield f"files that cannot be read: {page.locator('table.unread tbody tr').count()} of 15 are shown"
    yield from watched.close()


def several_files(browser, address, doppel):
    """Files that are dropped together: texts; and tables, whose columns can be chosen, and whose rows stay rows."""
    watched = Watched(browser, address)
    watched.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = watched.page
    watched.open("#/overview", "h1:text-is('Overview')")
    drop(page, "h1", {"first.txt": FIRST.encode(), "second.txt": SECOND.encode(), "n" * 120 + "é.txt": b"One of a long name."})
    page.wait_for_selector("h1:text-is('Deduplicate a file')")
    page.wait_for_selector(".example .hunk")
    yield from is_shown(page, "second.txt", "dropped files")
    if figures(page)[0] != "3":
        yield "dropped files: not three documents"
    rng = random.Random(13)
    rows = [corpus.prose(rng, 30) for _ in range(6)]
    tables = {"-b.csv": "sku,body\n" + "".join(f"b{number},{text}\n" for number, text in enumerate(rows[:3])),
              "a b.csv": "sku,body\n" + "".join(f"{number},{text}\n" for number, text in enumerate(rows)),
              "kept.csv": "sku,body\n" + f"k,{corpus.prose(rng, 30)}\n"}
    drop(page, ".drop", {name: body.encode() for name, body in tables.items()})
    page.wait_for_selector("h2:text-is('Which field contains the text?')")
    page.get_by_label("Document id").select_option("sku")
    page.get_by_role("button", name="Find copies").click()
    page.wait_for_selector("text=Text field: body. Id field: sku.")
    page.wait_for_selector("text=Download kept")
    if figures(page) != ["10", "7", "3", "3"]:
        yield f"tables: {figures(page)}"
    with tempfile.TemporaryDirectory() as here:
        for name, body in tables.items():
            pathlib.Path(here, name).write_text(body, encoding="utf-8")
        yield from same_as_commands(page, doppel, here, "new-kept.csv", "files-kept.csv")
    # One of several files lacks the field: it is named, and left out.
    pair = {"good.jsonl": (json.dumps({"text": FIRST}) + "\n").encode() * 2, "other.csv": f"id,description\n1,{rows[0]}\n".encode()}
    drop(page, ".drop", pair)
    page.wait_for_selector(".problem:has-text('other.csv has no field named text or html.')")
    yield from watched.look()
    page.get_by_label("text", exact=True).uncheck()
    page.get_by_label("description", exact=True).check()
    page.get_by_role("button", name="Find copies").click()
    page.wait_for_selector(".problem:has-text('good.jsonl has no field named description.')")
    page.get_by_role("button", name="Leave this file out").click()
    page.wait_for_selector("text=Text field: description.")
    page.wait_for_selector("text=doppel dedup other.csv")
    drop(page, ".drop", pair)
    page.get_by_role("button", name="Leave this file out").click()
    page.wait_for_selector("text=doppel dedup good.jsonl")
    # What only the server can unpack: it names the file.
    drop(page, ".drop", {"good.jsonl": json.dumps({"text": FIRST}).encode(), "other.csv.bz2": bz2.compress(f"id,description\n1,{rows[0]}\n".encode())})
    page.wait_for_selector(".problem:has-text('other.csv.bz2: the header has no column')")
    if "textKey" in page.inner_text("main"):
        yield f"files without a text: {page.inner_text('main')!r}"
    upload(page, json.dumps([{"text": FIRST}, {"text": corpus.prose(random.Random(1), 60)}]).encode(), "essays.json")
    page.wait_for_selector("code:text-is('doppel overlap essays.json')")
    yield from watched.close()


def large_texts(browser, address):
    """500 KB a side are compared and laid out within a second or so; buttons lead from one difference to the next."""
    watched = Watched(browser, address)
    page = watched.page
    rng = random.Random(7)
    one = " ".join(f"{rng.choice(corpus.WORDS)}{rng.randrange(300)}" for _ in range(60000))
    other = corpus.edited(rng, one, 300)
    watched.open("#/compare", "h1:text-is('Compare two texts')")
    for area, text in zip(page.locator(".source textarea").all(), (one, other)):
        area.evaluate("(area, text) => { area.value = text; }", text)
    began = time.monotonic()
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_selector(".hunk")
    took = time.monotonic() - began
    if took > 20:  # other tests may keep the machine busy
        yield f"it takes {took:.1f} s to compare {len(one)} characters"
    for step, said in (("Next", "1 of"), ("Next", "2 of"), ("Previous", "1 of")):
        page.get_by_role("button", name=step, exact=True).click()
        yield from is_shown(page, said, step)
    if len(changes(page)[1]) < 50:
        yield "most differences are not shown"
    # One word in six: some of the differences are laid out at a time, wherever one is.
    words = one.split()
    words[::6] = [f"other{i}" for i in range(10000)]
    page.locator(".source textarea").last.evaluate("(area, text) => { area.value = text; }", " ".join(words))
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_selector("text=10,000 words only in B")
    stops = 0
    for step in ("Next", "Previous", "Previous", "Next", "Next"):
        page.get_by_role("button", name=step, exact=True).click()
        number, stops = (int(part.replace(",", "")) for part in page.inner_text(".where").split(" of "))
        mine = page.locator(".hunk.current ins").first.evaluate("e => Number(e.lastChild.textContent.trim().slice(5))")
        if abs(mine - 10000 * (number - 1) / stops) > 60:
            yield f"one word in six: {step} leads to other{mine} as {number} of {stops}"
        laid = page.locator(".hunks *").count()
        if laid > 6000:
            yield f"one word in six: {laid} elements after {step}"
    page.get_by_role("button", name="Previous", exact=True).click()
    page.get_by_role("button", name="Show earlier: ").click()
    shown = page.locator(".hunk").count()
    if page.inner_text(".hunks > .more >> nth=0") != f"Show earlier: {stops - shown:,} differences" or shown < 2:
        yield f"one word in six: {shown} of {stops} are shown after {page.inner_text('.hunks > .more >> nth=0')!r}"
    # Nothing in common: all is different, and most of it folded.
    page.locator(".source textarea").last.evaluate("(area, text) => { area.value = text; }", " ".join(f"other{i}" for i in range(60000)))
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_selector("text=60,000 words only in B")
    if verdict(page) != ["Not copies", "A and B have nothing in common."] or len(page.inner_text(".hunks")) > 5000:
        yield f"nothing in common: {verdict(page)}, {len(page.inner_text('.hunks'))} characters"
    yield from watched.close()


def broken_lines(browser, address):
    """Lines that were broken at a width, as in mail, are shown as paragraphs; lines of code, of lists and of verse stay."""
    watched = Watched(browser, address)
    page = watched.page
    prose = [corpus.prose(random.Random(seed), 80).lower() for seed in (1, 2)]
    code = "\n".join(f"    value_{i} = compute(value_{i}, {i})" for i in range(12))
    watched.open("#/compare", "h1:text-is('Compare two texts')")
    a, b = page.locator(".source textarea").all()
    for given, lines in (("\n\n".join(textwrap.fill(one, 66, subsequent_indent="  ") for one in prose), 3), (code, 12)):
        a.fill(given + " and some end")
        b.fill(given + " and another end")
        page.get_by_role("button", name="Compare", exact=True).click()
        page.wait_for_selector(".hunk")
        page.get_by_label("shared text").check()
        shown = page.locator(".side").first.evaluate("e => e.textContent.replace(/^1/, '').split('\\n').length")
        if shown != lines:
            yield f"broken lines: {shown} lines, not {lines}"
        page.get_by_label("differences").check()
        if changes(page) != (["some"], ["another"]):
            yield f"broken lines: the differences are {changes(page)}"
        page.evaluate("document.querySelector('.place').replaceChildren()")
    yield from watched.close()


def files(browser, address):
    """A file that is chosen, and one that is dropped."""
    watched = Watched(browser, address)
    page = watched.page
    watched.open("#/check", "h1:text-is('Check a document')")
    page.set_input_files("input[type=file]", {"name": "a.html", "mimeType": "text/html", "buffer": b"<!doctype html><p>chosen file"})
    until(page, "() => document.querySelector('textarea').value.includes('chosen file')")
    yield from is_shown(page, "a page", "a chosen file")
    page.evaluate("""() => {
        const data = new DataTransfer();
        data.items.add(new File(["dropped file"], "b.txt"));
        document.querySelector(".source").dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
    }""")
    until(page, "() => document.querySelector('textarea').value === 'dropped file'")
    # One of several documents is offered to be deduplicated.
    for name, body in (("table.csv", b"id,text\n1,one two three\n"), ("two.txt", b'{"text": "one two three"}\n{"text": "four five six"}\n')):
        page.set_input_files("input[type=file]", {"name": name, "mimeType": "text/plain", "buffer": body})
        page.wait_for_selector(f".offer:has-text('{name} contains several documents.')")
        if page.input_value("textarea") != "dropped file" or page.input_value("input[type=file]"):
            yield f"{name}: is read as one document"
    yield from watched.look()
    page.get_by_role("button", name="Use it as one text").click()
    until(page, "() => document.querySelector('textarea').value.includes('four five six') && !document.querySelector('.offer').hasChildNodes()")
    page.set_input_files("input[type=file]", {"name": "table.csv", "mimeType": "text/csv", "buffer": b"id,text\n1,one two three\n2,one two three\n"})
    page.get_by_role("button", name="Deduplicate this file").click()
    page.wait_for_selector("text=2 documents, 1 removed. Kept: 1")
    # The server reads files as the command does; what cannot be read is refused, with the reason.
    watched.open("#/check", "h1:text-is('Check a document')")
    area = page.locator("textarea")
    for name, body, text in (("c.docx", docx("the text of Word"), "the text of Word\n"), ("d.txt.gz", gzip.compress(b"unpacked text"), "unpacked text"),
                             ("e.jsonl.bz2", bz2.compress(b'{"text": "one record"}\n'), None)):
        page.set_input_files("input[type=file]", {"name": name, "mimeType": "application/octet-stream", "buffer": body})
        if text:
            until(page, "text => document.querySelector('textarea').value === text", text)
        else:
            page.wait_for_selector(f".offer:has-text('{name} contains several documents.')")
    watched.expected = (400,)
    for name, body, why in (("bin.dat", b"ab\0cd" * 50, "binary, not text"), ("x.pdf", b"%PDF-1.4 nonsense", "PDF"), ("b.docx", b"nonsense", "not a Word document")):
        page.set_input_files("input[type=file]", {"name": name, "mimeType": "application/octet-stream", "buffer": body})
        page.wait_for_selector(f".offer .problem:has-text('{name}: '):has-text('{why}')")
        if area.input_value() != "unpacked text":
            yield f"{name} was taken for a text: {area.input_value()!r}"
    yield from watched.look()
    watched.open("#/compare", "h1:text-is('Compare two texts')")
    essay = corpus.prose(random.Random(14), 80)
    for number, (name, body) in enumerate((("alice.txt", essay.encode()), ("alice.docx", docx(essay)))):
        page.locator("input[type=file]").nth(number).set_input_files({"name": name, "mimeType": "application/octet-stream", "buffer": body})
        until(page, "number => document.querySelectorAll('textarea')[number].value.length > 100", number)
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_selector("text=A and B have exactly the same words.")
    for number, name in enumerate(("alice.txt", "alice.docx")):
        under = page.locator(".under").nth(number)
        if not under.inner_text().endswith(f"80 words, from {name}"):
            yield f"a chosen file is not named: {under.inner_text()!r}"
        page.locator("textarea").nth(number).fill("typed")
        if name in under.inner_text():
            yield f"a text that was typed is said to be from {name}"
    # No figure reaches the threshold that it is below.
    shown = page.evaluate("async () => { const {share} = await import('/console/format.js'); return [[0.72966, 0.73], [0.72999999, 0.73], [0.73, 0.73], [0.5, 0.8], [0.99999]].map(of => share(...of)); }")
    if shown != ["72.97 %", "just below 73 %", "73.0 %", "50.0 %", "99.99 %"]:
        yield f"similarities are shown as {shown}"
    yield from watched.close()


def groups(browser, address):
    watched = Watched(browser, address)
    page = watched.page
    watched.open("#/groups", "details.group")
    page.click("details.group summary")
    page.wait_for_selector(".group .documents button")
    page.click(".group .documents button")
    page.wait_for_selector(".group .shaded mark")
    copy, marked = page.evaluate("() => [document.querySelector('.side').textContent, [...document.querySelectorAll('.side mark')].map(m => m.childNodes[1].textContent)]")
    if not marked or any(len(text.split()) < 5 for text in marked) or sum(map(len, marked)) >= len(copy):
        yield f"groups: what both have is not shaded: {marked}"
    page.get_by_label("differences").check()
    if not any(changes(page)):
        yield "groups: no difference is marked"
    yield from is_shown(page, "by content", "groups")
    yield from is_shown(page, "Show a copy to see what it shares with its original.", "groups")
    # A copy by its title may be far below the threshold: that it is one by its title is seen at once.
    common = corpus.prose(random.Random(70), 45)
    for number in range(12):
        post(address, "/v1/documents", {"id": f"titled-{number}", "title": "The clock of the chapel in the eleven boxes", "text": f"{common} {corpus.prose(random.Random(71 + number), 15)}"})
    page.reload()
    page.wait_for_selector("details.group")
    page.locator("summary:has-text('eleven boxes')").click()
    page.wait_for_selector("details[open] .score")
    scores = page.locator("details[open] .score").all_inner_texts()
    if not scores or any(not re.fullmatch(r"[0-9.]+ %, by title", score) for score in scores):
        yield f"groups: copies by title have {scores}"
    yield from watched.look()
    yield from watched.close()


def find(browser, address):
    watched = Watched(browser, address)
    watched.expected = (404,)
    page = watched.page
    watched.open("#/find", "h1:text-is('Find a document')")
    for wanted, said in (("story-3", "Found by its id"), ("HTTPS://news.example/story-3?utm_source=x", "Found by its URL"),
                         ("The third story of all stories", "Found by its title"), ("no such thing", "Nothing found")):
        page.fill("input[type=search]", wanted)
        page.keyboard.press("Enter")
        try:
            page.wait_for_selector(f".place h2:has-text('{said}')", timeout=10000)
        except Exception:
            yield f"find {wanted!r}: not {said!r} but {page.inner_text('.place')!r}"
    if page.locator(".place a").count():
        yield f"find a title that is not known: {page.inner_text('.place')!r}"
    page.fill("input[type=search]", "news.example/story-3")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="find https://news.example/story-3").click()
    page.wait_for_selector(".place h2:has-text('Found by its URL')")
    page.fill("input[type=search]", "story-3~1")
    page.keyboard.press("Enter")
    page.wait_for_selector(".place li:has-text('a copy of story-3')")
    watched.open(f"#/document/{quote('story-3~1')}", "h2:text-is('Copies of its original')")
    yield from is_shown(page, "This is a copy of The third story of all stories. All copies of that document:", "a copy")
    kind, said = verdict(page)
    if kind != "Copy" or not re.fullmatch(r"\d+(\.\d+)? % of The third story of all stories is here: \d+ shared passages?\.", said) or not any(changes(page)):
        yield f"a copy: its page says {kind!r}, {said!r}, and shows the differences {changes(page)}"
    if page.locator("section:has(> h2:text-is('Copies of its original')) li").count() != 3 or page.locator("li:has-text('this one')").count() != 1:
        yield "a copy: not all copies of its original are listed"
    watched.open("#/document/story-3", "h1:has-text('third story')")
    yield from is_shown(page, "Similar documents", "a document")
    page.get_by_role("button", name="Remove this document").click()
    page.keyboard.press("Enter")  # The focus is on Cancel.
    page.wait_for_selector("dialog", state="detached")
    page.get_by_role("button", name="Remove this document").click()
    page.get_by_role("button", name="Remove", exact=True).click()
    page.wait_for_selector("h1:text-is('Find a document')")
    yield from is_shown(page, "Removed: The third story of all stories.", "a document that was removed")
    watched.open("#/document/story-3", ".problem")
    yield from is_shown(page, "It may have been removed", "a document that is gone")
    yield from watched.close()


def index(browser, address):
    watched = Watched(browser, address)
    watched.expected = (409,)
    page = watched.page
    watched.open("#/index", "h1:text-is('Index default')")
    for said in ("runs of 5 words", "A copy shares at least 80", "are kept, compressed"):
        yield from is_shown(page, said, "index")
    for verb, said in (("Back up now", "Backed up to default-"), ("Remove expired", "0 documents removed"), ("Compact", "Compacted.")):
        page.get_by_role("button", name=verb, exact=True).click()
        if verb == "Compact":
            page.get_by_role("dialog").get_by_role("button", name="Compact").click()
        page.wait_for_selector(f".done:has-text('{said}')")
    page.click("text=Create an index")
    page.get_by_label("Name", exact=True).fill("news")
    page.get_by_role("button", name="Create").click()
    page.wait_for_selector("h1:text-is('Index news')")
    page.select_option("#index", label="default")
    page.wait_for_selector("h1:text-is('Index default')")
    page.get_by_role("button", name="Drop the index news").click()
    page.get_by_role("button", name="Drop it", exact=True).click()
    page.wait_for_selector("#chooser", state="hidden")
    yield from watched.close()


# What the chart of the last day says: "The last day: 11 new and 46 copies in the last day".
LAST_DAY = "() => [...document.querySelectorAll('figure.chart')].find(f => f.textContent.startsWith('The last day'))?.querySelector('svg > title')?.textContent"


def last_day(page):
    until(page, f"() => Boolean(({LAST_DAY})())")
    return page.evaluate(LAST_DAY)


def live(browser, address):
    """The overview follows what happens, and rests while nobody sees it."""
    watched = Watched(browser, address)
    page = watched.page
    watched.open("#/overview", ".tile b")
    before = page.inner_text(".tile b")
    post(address, "/v1/documents", {"id": "live", "text": "words that nobody has ever put into this order before today"})
    until(page, "before => document.querySelector('.tile b').textContent !== before", before)
    before = last_day(page)
    post(address, "/v1/check", {"text": "words that were never checked before by anyone at all"})
    until(page, f"before => ({LAST_DAY})() !== before", before)
    for how in ("document.querySelector('.state button').click()", "Object.defineProperty(document, 'hidden', {value: true})"):
        page.evaluate(how)
        page.wait_for_timeout(300)
        asked = len(watched.asked)
        page.wait_for_timeout(2200)
        if len(watched.asked) != asked:
            yield "the overview goes on: " + how
        page.evaluate("document.querySelector('.state button').click()")
    yield from watched.close()


def keyboard(browser, address):
    """What has the focus can be seen; the first thing is a way past the navigation; the switch of colours is kept."""
    watched = Watched(browser, address)
    page = watched.page
    watched.open("#/check", "h1:text-is('Check a document')")
    page.keyboard.press("Tab")
    if page.evaluate("document.activeElement.id") != "skip" or page.locator("#skip").bounding_box()["y"] < 0:
        yield "the first stop is not the way to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    if not page.evaluate("document.activeElement.closest('main')"):
        yield "the way to the content does not lead there"
    page.reload()
    page.wait_for_selector("h1:text-is('Check a document')")
    for _ in range(18):
        page.keyboard.press("Tab")
        bare = page.evaluate("""() => { const e = document.activeElement, s = getComputedStyle(e);
            return e !== document.body && s.outlineStyle === "none" && e.outerHTML.slice(0, 80); }""")
        if bare:
            yield "the focus cannot be seen on " + bare
    page.focus("#theme")
    page.keyboard.press("Space")
    page.reload()
    page.get_by_role("button", name="Dark", pressed=True).wait_for()
    if page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g)[0] > 128"):
        yield "the switch of colours is not kept"
    yield from watched.close()
