"""Opens pages of `doppel report` in a real browser, at the width of a desk and of a phone, light and dark, with two fonts.

    build/venv/bin/python tests/browser/test_report.py BUILD_DIR

Each page must be legible, with nothing cut off (check.js says what that means), ask for nothing but its own file, write
nothing to the console, and tell the figures that `doppel dedup` or `doppel trim` told. What is folded must be found by a
search, opened with the keyboard, and printed. Screenshots are left in BUILD_DIR/browser.
"""
import contextlib
import json
import os
import pathlib
import re
import random
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

from playwright.sync_api import TimeoutError, sync_playwright

import corpus
import fonts

HERE = pathlib.Path(__file__).parent
# How pages are looked at: the first one in every way, the others in two, and these, or all in a full run, with the
# second font in one.
WAYS = ((1280, "light"), (390, "dark"), (1280, "dark"), (390, "light"))
WITH_SECOND_FONT = ("usual", "evidence", "lines", "shared")
FULL = os.environ.get("DOPPEL_SUITE") == "full"

# Milliseconds: other tests may keep the machine busy.
PATIENCE = 120000


def prose_of(rng, count):
    return [{"id": i, "text": corpus.prose(rng, 40)} for i in range(count)]


def alike(rng, count):
    """Half of the words of a document differ from each other's: similarities of all sizes."""
    text = corpus.prose(rng, 300)
    return [{"id": f"d{i}", "url": f"http://h{i % 40}.example/", "text": corpus.edited(rng, text, i % 60)} for i in range(count)]


def long_texts(rng):
    """A text that is longer than is compared, and one that has nothing in common with its namesake."""
    text = corpus.prose(rng, 6000)
    return [{"id": "long", "title": "Much longer than the others", "text": text * 30},
            {"id": "longer", "title": "Much longer than the others", "text": text * 30 + " and more"},
            {"id": "other", "title": "Much longer than the others", "text": corpus.prose(rng, 9000)}]


def with_footers(rng, count):
    """Texts with lines that others have: at their end, in the middle, and hardly anything else."""
    lines = [corpus.prose(rng, rng.randrange(6, 60)) for _ in range(8)] + [title for _, title in corpus.HOSTILE]
    for i in range(count):
        own = [corpus.prose(rng, rng.randrange(1, 200)) for _ in range(rng.randrange(3))]
        text = own + rng.choices(lines, k=rng.randrange(6)) + own[:1] * rng.randrange(2) + lines[:1]
        yield {"id": f"d{i}" if i % 3 else f"https://news.example/story/d{i}", "text": "\n".join(text),
               "url": f"https://news.example/story/{i}.html" if i % 2 else "javascript:alert(1)"}


def borrowed(rng):
    """Texts that share a long passage, one with words replaced, and one that is all of another."""
    passage = corpus.prose(rng, 700)
    return [{"id": f"essay {i} <b>", "text": " ".join([corpus.prose(rng, 60 * i), text, corpus.prose(rng, 200)])}
            for i, text in enumerate([passage, passage, corpus.edited(rng, passage, 60), passage[:1500]])]


def in_pieces(rng):
    """Two texts that share a long passage and 80 short ones, among long words and lines of hyphens."""
    shared = [corpus.prose(rng, 400), "w" * 10000, *(corpus.prose(rng, 20) for _ in range(80))]
    return [{"id": i, "text": "\n".join(part + "\n" + corpus.prose(rng, 30) + " -" * 100 for part in shared)} for i in range(2)]


def runs():
    """(name, documents, command with options)"""
    rng = random.Random(7)
    usual = list(corpus.groups(rng)) + list(corpus.hostile(rng))
    yield "usual", usual, ["dedup"]
    yield "nothing", [], ["dedup"]
    yield "unique", prose_of(rng, 30), ["dedup"]
    yield "one", prose_of(rng, 1), ["dedup"]
    yield "identical", [{"id": i, "text": "the same words again and again"} for i in range(3000)], ["dedup"]
    yield "wide", alike(rng, 400), ["dedup", "--similarity", "0.3", "--keep", "longest"]
    yield "simhash", alike(rng, 200), ["dedup", "--method", "simhash", "--distance", "20"]
    yield "evidence", long_texts(rng) + list(corpus.groups(rng)), ["dedup", "--by", "content,url,title", "--link", "any"]
    yield "lines", [*with_footers(rng, 200), *usual], ["trim", "--min-words", "2"]
    yield "passages", [*long_texts(rng), *usual], ["trim", "--unit", "passage", "--words", "10", "--drop-share", "0.5"]
    yield "untouched", prose_of(rng, 3), ["trim", "--unit", "sentence", "--run", "3"]
    yield "shared", borrowed(rng) + usual, ["overlap"]
    yield "not shared", prose_of(rng, 3), ["overlap"]
    yield "compared", borrowed(rng)[1:3], ["compare"]
    yield "pieces", in_pieces(rng), ["compare"]


def make_page(doppel, folder, documents, command):
    """Gives the path of the page and the summary of the run."""
    inputs = folder / "in.jsonl"
    inputs.write_text("".join(json.dumps(d) + "\n" for d in documents), encoding="utf-8")
    page = folder / "report.html"
    own_page = command == ["overlap"]
    if command == ["compare"]:
        texts = [folder / f"a-long-name-of-the-text-number-{i}.txt" for i in range(2)]
        for path, document in zip(texts, documents):
            path.write_text(document["text"], encoding="utf-8")
        subprocess.run([doppel, "compare", *texts, "--html", page], check=True, capture_output=True)
        return page, {"compared": 2}
    done = subprocess.run([doppel, *command, inputs, "-o", folder / "out.jsonl", "--json",
                           *(["--html", page] if own_page else ["--work", folder / "run"])],
                          check=True, capture_output=True, text=True)
    if own_page:
        return page, json.loads(done.stdout)
    subprocess.run([doppel, "report", "--work", folder / "run", "-o", page], check=True)
    return page, json.loads(done.stdout)


def look(browser, address, width, scheme, picture):
    """Gives what is wrong with a page, and its text."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(PATIENCE)
    page, found, asked = context.new_page(), [], []
    page.on("console", lambda message: found.append("console: " + message.text))
    page.on("pageerror", lambda error: found.append(f"error: {error}"))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.screenshot(path=picture, full_page="usual" in picture.name)
    script = (HERE / "check.js").read_text(encoding="utf-8")
    found += page.evaluate(script)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    found += ["all open: " + what for what in page.evaluate(script) if what not in found]
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g)[0] < 128")
    if dark != (scheme == "dark"):
        found.append(f"the ground is not {scheme}")
    found += ["asks for " + url for url in asked if url != address]
    text = page.evaluate("document.body.innerText")
    context.close()
    return found, text


def check_ways(page):
    """Contents lead somewhere; addresses of the web, and no others, are links; the corpus and the day are named."""
    html = page.read_text(encoding="utf-8")
    for anchor in re.findall(r'href="#([^"]*)"', html):
        if f'id="{anchor}"' not in html:
            yield f"the contents lead to #{anchor}, which is not there"
    links = re.findall(r"<a (?!href=\"#)[^>]*>", html)
    if not any("https://news.example/story/" in link for link in links):
        yield "addresses are not links"
    yield from (f"a bad link: {link}" for link in links if not re.fullmatch(r'<a rel="noopener noreferrer" href="https?://[^"]*">', link))
    head = html[:html.index("<main>")]
    if "in.jsonl</bdi>" not in head or not re.search(r", \d{4}-\d\d-\d\d</p>", head):
        yield "the head does not name the corpus and the day"


# Words of a fold of a kind that can be seen nowhere, and the number of the first fold they are in.
HIDDEN = """selector => {
  const all = [...document.querySelectorAll('details')], seen = document.body.innerText;
  for (const fold of document.querySelectorAll(selector)) {
    const texts = document.createTreeWalker(fold, NodeFilter.SHOW_TEXT);
    for (let text; (text = texts.nextNode());) {
      const words = text.data.trim().split('\\n')[0].split(' ').slice(0, 6).join(' ');
      if (words.length > 5 && !seen.includes(words) && !text.parentElement.closest('summary'))
        return [words, all.findIndex(f => f.textContent.includes(words) &&
          ![...f.querySelectorAll('details')].some(inner => inner.textContent.includes(words)))];
    }
  }
}"""
# Whether a fold and those around it are open; whether its words can be seen.
CHAIN = """n => {
  const open = [];
  for (let fold = document.querySelectorAll('details')[n]; fold; fold = fold.parentElement.closest('details')) open.push(fold.open);
  return open.every(o => o);
}"""
SEEN = "selector => [...document.querySelectorAll(selector)].map(e => e.checkVisibility())"


def check_found(context, address, selector):
    """A search for words that are folded opens what they are in."""
    page = context.new_page()
    page.goto(address)
    found = page.evaluate(HIDDEN, selector)
    if not found:
        yield f"has no {selector} with words that are folded"
        return
    words, number = found
    # A link to a text reveals it as Ctrl-F does.
    search = context.new_page()
    search.goto(f"{address}#:~:text={urllib.parse.quote(words, safe='').replace('-', '%2D')}")
    try:
        search.wait_for_function(CHAIN, arg=number, timeout=30000)
    except TimeoutError:
        yield f"a search for {words!r} does not open {selector}"
    if search.evaluate("""n => { const fold = document.querySelectorAll('details')[n];
          return fold.matches('.cut[open]') && getComputedStyle(fold, '::details-content').display !== 'inline' }""", number):
        yield "an open fold breaks its line"
    page.close()
    search.close()


def check_keyboard(context, address):
    """Tab reaches a fold in a text, Enter opens and closes it."""
    page = context.new_page()
    page.goto(address)
    fold = page.locator("details.group[open] > .inside details.cut:not(details:not([open]) *)").first
    fold.locator("> summary").focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    for state in (True, False):
        page.keyboard.press("Enter")
        if fold.evaluate("d => d.open && document.activeElement.parentElement === d") != state:
            yield f"Enter does not {'open' if state else 'close'} a fold"
    page.close()


def check_print(context, address):
    """Paper has what differs or is shared, whole; words that are the same in both stay folded."""
    page = context.new_page()
    page.goto(address)
    page.emulate_media(media="print")
    if not all(page.evaluate(SEEN, "details.group:not(.all) > .inside, details.more > div, details.cut mark, details.about li")):
        yield "what is folded is not printed"
    if any(page.evaluate(SEEN, "details.cut:not(.same) > summary")):
        yield "paper has notes that can only be pressed"
    if not all(page.evaluate(SEEN, "details.cut.same > summary")):
        yield "equal words are neither printed nor counted"
    page.close()


def check_folds(browser, address, selectors):
    context = browser.new_context(viewport={"width": 390, "height": 900})
    context.set_default_timeout(PATIENCE)
    for selector in selectors:
        yield from check_found(context, address, selector)
    if "details.cut" in selectors:
        yield from check_keyboard(context, address)
    yield from check_print(context, address)
    context.close()


# By run: what must be found though it is folded.
FOLDS = {"usual": ("details.cut.same", "details.group:not([open]) details.cut.same", "details.group.all"),
         "wide": ("details.cut:not(.same)",), "lines": ("details.cut",), "shared": ("details.cut",),
         "pieces": ("details.cut", "details.more")}

def parts_of(summary):
    """The figures that a page has, and its headings."""
    if "compared" in summary:
        return [], ["Shared passages", "How to read this page"]
    if "pairs" in summary:
        return [], [f"{summary['pairs']} pair" if summary["pairs"] else "No two of", "How to read this page"]
    if "kept" in summary:
        largest = ["The largest groups"] if summary["groups"] else []
        return ["documents", "kept", "removed", "groups"], ["In and out", "How similar, and how many", *largest, "Inputs",
                                                           "The plan and its timings"]
    repeats = ["What repeats most", "Documents before and after"] if summary["documentsCut"] else []
    lost = ["Dropped and emptied documents"] if summary["dropped"] + summary["emptied"] else []
    return (["documents", "documentsCut", "wordsCut", "spans", "dropped", "emptied"],
            ["In and out", "How much is cut", *repeats, *lost, "Inputs", "The settings and timings"])


def check_figures(text, summary):
    """The page says what the run said."""
    names, headings = parts_of(summary)
    for name in names:
        if f"{summary[name]:,}\n" not in text + "\n":
            yield f"does not say that {name} is {summary[name]:,}"
    for heading in headings:
        if heading not in text:
            yield f"has no part \"{heading}\""


def check_run(browsers, doppel, pictures, run):
    name, documents, command = run
    with tempfile.TemporaryDirectory() as folder:
        page, summary = make_page(doppel, pathlib.Path(folder), documents, command)
        for family, browser in browsers.items():
            first = browser is next(iter(browsers.values()))
            if not first and not FULL and name not in WITH_SECOND_FONT:
                continue
            for width, scheme in (WAYS if name == "usual" else WAYS[:2]) if first else WAYS[1:2]:
                picture = pictures / f"{name}-{width}-{scheme}-{family.split()[0]}.png"
                found, text = look(browser, page.as_uri(), width, scheme, picture)
                for what in [*found, *check_figures(text, summary)]:
                    yield f"{name}, {width} px, {scheme}, {family}: {what}"
        if name in FOLDS:
            yield from (f"{name}: {what}" for what in check_folds(next(iter(browsers.values())), page.as_uri(), FOLDS[name]))
        if name in ("usual", "lines"):
            yield from (f"{name}: {what}" for what in check_ways(page))
        if name == "usual":
            if "<h3>All groups</h3>" not in page.read_text(encoding="utf-8"):
                yield "usual: not all groups can be found"
            yield from ("usual: does not show " + repr(title) for _, title in corpus.HOSTILE if title[:150] not in text)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    pictures = build / "browser"
    shutil.rmtree(pictures, ignore_errors=True)
    pictures.mkdir(parents=True)
    wrong = []
    with sync_playwright() as playwright, contextlib.ExitStack() as stack:
        browsers = {family: stack.enter_context(fonts.browser_with(playwright, family)) for family in fonts.FONTS}
        for run in runs():
            wrong += check_run(browsers, build / "doppel", pictures, run)
    print("\n".join(wrong) or f"every page is as it should be; {pictures} has pictures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
