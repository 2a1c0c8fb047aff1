"""Makes docs/pictures/console*.png, overlap.png and report.png: the console, a page of `doppel overlap`, and a report.

    build/venv/bin/python tests/browser/pictures.py BUILD_DIR

Pages are shown with documents that are made up, and with the licence of this project and a changed copy of it. Of each
main page there is a sheet: at the width of a desk and of a phone, light and dark, with the two fonts of fonts.py. Some
pages are there once more, in one of these ways, larger. To look at them is the point: this tests nothing.
"""
import base64
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time
import zlib

from playwright.sync_api import sync_playwright

import corpus
import fonts
from serving import HERE, Watched, post, serving

ROOT = HERE.parent.parent
WIDTHS = (1180, 390)
SCHEMES = ("light", "dark")
# The pages that are there once more: their height, light and at the width of a desk, and what the file is called.
LARGER = {"verdict": (1180, "console"), "file": (1330, "console-file"), "groups": (1120, "console-groups")}
# Of a page, in a sheet.
SCALE, SHOWN = 0.5, 1300


# ---- what the pages show ----

def licence():
    """The text of LICENSE, a line a paragraph."""
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n") if part.strip())


def changed(text):
    """A copy with a beginning of its own, some other words, and two paragraphs elsewhere."""
    parts = text.split("\n\n")
    moved, parts[10:12] = parts[10:12], []
    parts[24:24] = moved
    text = "This program is free to use under the terms below.\n\n" + "\n\n".join(parts)
    for old, new in (("perpetual, worldwide", "unlimited, worldwide"), ("institute patent litigation", "start patent litigation"),
                     ("reasonable and customary use", "usual use"), ("AS IS", "as it is")):
        text = text.replace(old, new, 1)
    return text


def file():
    """JSONL: some documents have copies, from identical ones to some that are hardly any more."""
    rng, made = random.Random(11), []
    for number in range(400):
        text, title = corpus.prose(rng, 160), corpus.prose(rng, 4).title()
        for copy in range(1 + (number % 3 == 0) * min(int(rng.paretovariate(1.1)), 24)):
            edits = 0 if rng.random() < 0.1 else min(int(rng.expovariate(1 / 7)), 24)
            made.append(json.dumps({"id": f"page-{number}" + f"~{copy}" * (copy > 0), "title": title, "text": corpus.edited(rng, text, copy and edits)}))
    return ("\n".join(made) + "\n").encode()


def day(route):
    """A day of an index, with an hour in which no server ran."""
    now, step, rng = int(time.time()) // 900 * 900, 900, random.Random(2)
    points = []
    for i in reversed(range(96)):
        new, copies = (int(rng.uniform(0.7, 1) * (900 + 700 * math.sin((i + offset) / 15))) for offset in (0, 6))
        verdicts = {"unique": new, "url": copies // 9, "content": copies // 2, "title": 0}
        if i not in (60, 61, 62, 63):
            points.append({"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - step * i)), "seconds": step, "checks": new + copies, "adds": 0,
                           "verdictsBy": verdicts, "documents": 1, "copies": 1})
    route.fulfill(json={"index": "default", "stored": True, "step": 15, "points": points})


# Essays on a bridge: the second takes over a paragraph of the first.
PASSAGE = """The old bridge was built in 1871, when the mill still gave work to half the town. For ninety years it carried
everything that crossed the river: carts and cattle at first, then buses and lorries that nobody had thought of when its
arches were drawn. Twice it was closed by floods, and twice it was opened again within a week, because the town could not
do without it. When the new road came, the traffic left, and with the traffic went the money for repairs. What stayed was
a narrow path over the water, a row of benches, and the question of what a bridge is for when nobody needs to cross it.
The council has asked that question three times since, and has answered it differently each time: as a monument, as a
cost, and in the end as a place where people meet."""
ESSAYS = {
    "essay-1.txt": "I walk over our bridge every morning, and I have never asked how old it is. For this essay I did. " + PASSAGE +
                   " I think the third answer is the right one, and I would like to explain why in my own words.",
    "essay-2.txt": "Every town has something that it is proud of. Ours has a bridge, a river and a football club. " + PASSAGE +
                   " My grandmother remembers the second flood. She says that the water stood in the market for two days.",
    "essay-3.txt": "The football club of our town was founded by workers of the mill. Its first field was a meadow beside the "
                   "river, and each spring the players had to clear it of what the water had left there.",
}


def overlap_page(doppel):
    """The page of `doppel overlap essays --html`."""
    with tempfile.TemporaryDirectory() as folder:
        essays = pathlib.Path(folder, "essays")
        essays.mkdir()
        for name, text in ESSAYS.items():
            (essays / name).write_text(" ".join(text.split()), encoding="utf-8")
        subprocess.run([doppel, "overlap", "essays", "--html", "page.html"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return pathlib.Path(folder, "page.html").read_text(encoding="utf-8")


# What copies of the story of the bridge have in place of its words.
EDITS = (("half the town", "most of the town"), ("Twice it was closed", "Three times it was closed"), (" at first", ""), ("a row of benches", "two rows of benches"),
         ("and with the traffic went the money for repairs", "and the money for repairs went with it"), ("The council has asked", "The council, which owns it, has asked"))


def stories():
    """The story of the bridge, with the most copies, and others."""
    for copy in range(20):
        text = " ".join(PASSAGE.split())
        for old, new in EDITS[copy // 2 % 5:][:2] if copy % 2 else ():
            text = text.replace(old, new, 1)
        host = corpus.HOSTS[copy % 4]
        yield {"id": "bridge" + f"~{copy}" * (copy > 0), "url": f"https://{host}/2026/bridge-{copy}.html", "title": "What a bridge is for", "text": text}
    yield from corpus.groups(random.Random(4))


def report_page(doppel):
    """The page of `doppel report` on stories."""
    with tempfile.TemporaryDirectory() as folder:
        lines = [json.dumps(document) + "\n" for document in stories()]
        pathlib.Path(folder, "stories.jsonl").write_text("".join(lines), encoding="utf-8")
        for command in (["dedup", "stories.jsonl", "-o", "kept.jsonl", "--work", "run"], ["report", "--work", "run", "-o", "page.html"]):
            subprocess.run([doppel, *command, "--quiet"], cwd=folder, check=True)
        return pathlib.Path(folder, "page.html").read_text(encoding="utf-8")


def fill(address):
    for document in stories():
        post(address, "/v1/documents", document)
    post(address, "/v1/documents", {"id": "apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0", "title": "Apache License 2.0", "text": licence()})


# ---- the pages ----

def verdict(watched):
    page = watched.page
    watched.open("#/check", "h1:text-is('Check a document')")
    page.fill(".source textarea", changed(licence()))
    page.get_by_role("button", name="Check", exact=True).click()
    page.wait_for_selector(".hunk")


def compare(watched):
    page = watched.page
    watched.open("#/compare", "h1:text-is('Compare two texts')")
    for area, text in zip(page.locator(".source textarea").all(), (licence(), changed(licence()))):
        area.fill(text)
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_selector(".hunk")
    for _ in range(3):
        page.get_by_role("button", name="Next", exact=True).click()


def dropped(watched):
    page = watched.page
    watched.open("#/dedup", "h1:text-is('Deduplicate a file')")
    page.set_input_files("input[type=file]:not([webkitdirectory])", {"name": "pages.jsonl", "mimeType": "application/jsonl", "buffer": file()})
    page.wait_for_selector(".example .hunk")


def groups(watched):
    page = watched.page
    watched.open("#/groups", "details.group")
    page.locator("details.group summary").first.click()
    page.locator(".group .documents button").nth(2).click()
    page.wait_for_selector(".group mark")
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")


def overview(watched):
    watched.page.route("**/v1/history*", day)
    watched.open("#/overview", ".bar")
    watched.page.wait_for_selector(".curve", state="attached")


PAGES = {"verdict": verdict, "compare": compare, "file": dropped, "groups": groups, "overview": overview}


def shot(browser, address, show, width, height, scheme):
    watched = Watched(browser, address, width, scheme)
    watched.page.set_viewport_size({"width": width, "height": height})
    show(watched)
    watched.page.mouse.move(0, 0)
    watched.page.wait_for_timeout(300)
    taken = watched.page.screenshot()
    wrong = watched.close()
    if wrong:
        sys.exit("\n".join(wrong))
    return taken


def shot_of(browser, html, width, height):
    page = browser.new_page(viewport={"width": width, "height": height})
    page.set_content(html)
    taken = page.screenshot()
    page.close()
    return taken


# ---- small PNG files ----

# Gives the size of a picture, the 256 colours that stand for most of it (each is the mean of those that agree in five
# bits a channel), and the number of one for each pixel.
PALETTE = """async source => {
  const picture = await createImageBitmap(await (await fetch(source)).blob()), {width, height} = picture;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(picture, 0, 0);
  const pixels = context.getImageData(0, 0, width, height).data, cells = new Map();
  const cellOf = i => (pixels[i] >> 3 << 10) | (pixels[i + 1] >> 3 << 5) | pixels[i + 2] >> 3;
  for (let i = 0; i < pixels.length; i += 4) {
    const key = cellOf(i);
    if (!cells.has(key)) cells.set(key, [0, 0, 0, 0]);
    const cell = cells.get(key);
    for (let c = 0; c < 3; c++) cell[c] += pixels[i + c];
    cell[3]++;
  }
  const means = new Map([...cells].map(([key, [r, g, b, n]]) => [key, [r / n, g / n, b / n].map(Math.round)]));
  const chosen = [...cells].sort((x, y) => y[1][3] - x[1][3]).slice(0, 256).map(([key]) => means.get(key));
  const away = (x, y) => (x[0] - y[0]) ** 2 + (x[1] - y[1]) ** 2 + (x[2] - y[2]) ** 2;
  const numbers = new Map([...means].map(([key, mean]) =>
    [key, chosen.reduce((best, colour, i) => (away(colour, mean) < away(chosen[best], mean) ? i : best), 0)]));
  let text = "";
  for (let i = 0; i < pixels.length; i += 4) text += String.fromCharCode(numbers.get(cellOf(i)));
  return {width, height, colours: chosen, pixels: btoa(text)};
}"""


def data_url(png):
    return "data:image/png;base64," + base64.b64encode(png).decode()


def smaller(browser, png):
    """The same picture with at most 256 colours."""
    page = browser.new_page()
    made = page.evaluate(PALETTE, data_url(png))
    page.close()
    pixels, width = base64.b64decode(made["pixels"]), made["width"]
    rows = b"".join(b"\0" + pixels[at:at + width] for at in range(0, len(pixels), width))
    parts = ((b"IHDR", struct.pack(">IIBBBBB", width, made["height"], 8, 3, 0, 0, 0)),
             (b"PLTE", bytes(value for colour in made["colours"] for value in colour)),
             (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts)


def sheet(browser, rows, scale=SCALE):
    """Pictures beside and below each other, each at `scale` of its size. rows: [[(png, width)]]"""
    page = browser.new_page(viewport={"width": 200, "height": 200})
    page.set_content("<style>body { margin: 0 } main { display: inline-grid; gap: 14px; padding: 14px; background: #8a919c } div { display: flex; gap: 14px }"
                     " img { display: block }</style><main>" + "".join(
                         "<div>" + "".join(f"<img width={width * scale} src='{data_url(png)}'>" for png, width in row) + "</div>" for row in rows) + "</main>")
    page.wait_for_function("[...document.images].every(image => image.complete)")
    made = page.locator("main").screenshot()
    page.close()
    return made


def main():
    doppel = pathlib.Path(sys.argv[1]).resolve() / "doppel"
    pictures = ROOT / "docs" / "pictures"
    with sync_playwright() as playwright, serving(doppel, "--keep-text", "--on-duplicate", "store", "--max-runs", "64") as (address, _):
        fill(address)
        rows = {name: [] for name in PAGES}
        for family in fonts.FONTS:
            with fonts.browser_with(playwright, family) as browser:
                for name, show in PAGES.items():
                    rows[name].append([(shot(browser, address, show, width, SHOWN, scheme), width) for scheme in SCHEMES for width in WIDTHS])
                    if family == "Noto Sans" and name in LARGER:
                        height, file_name = LARGER[name]
                        (pictures / f"{file_name}.png").write_bytes(smaller(browser, shot(browser, address, show, 1180, height, "light")))
        with fonts.browser_with(playwright, "Noto Sans") as browser:
            for name, made in rows.items():
                (pictures / f"console-all-{name}.png").write_bytes(smaller(browser, sheet(browser, made)))
            (pictures / "report.png").write_bytes(smaller(browser, shot_of(browser, report_page(doppel), 1000, 1440)))
            made = [(shot_of(browser, overlap_page(doppel), width, 900), width) for width in (860, WIDTHS[1])]
            (pictures / "overlap.png").write_bytes(smaller(browser, sheet(browser, [made], 1)))


if __name__ == "__main__":
    main()
