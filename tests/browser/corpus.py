"""The documents that the page of tests/browser is made of: pages of made-up prose on several hosts, with identical and
edited copies, and titles, ids and texts that would break a careless page.

    python3 corpus.py FILE.jsonl
"""
import json
import random
import sys

WORDS = """river morning copper the of and a lantern quiet harbour that with over under window paper engine garden their when
winter letter market slow bright between stone bridge until every ticket station yellow another music small road answer
before friend across field open silver later since against carry write listen evening people water corner story light
follow number house little north again country table simple hundred early reason distance measure copy original page""".split()

HOSTS = ["news.example", "mirror.example", "daily-reader.example", "blog.example.org",
         "a-very-long-host-name-that-goes-on-and-on-and-on.subdomain.of.another.example.net"]

HOSTILE = [
    ("<script>document.title='owned'</script>", "\"><img src=x onerror=alert(1)>"),
    ("abc\u202egnp.exe", "</title></style><style>*{display:none}</style>"),
    ("\u0000\u0007\u009b[31m id", "&lt;not an entity&gt; & <b>bold</b>"),
    ("x" * 300, "W" * 400),
    ("\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd", "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645"),
]


def prose(rng, count):
    words = [rng.choice(WORDS) for _ in range(count)]
    for i in range(0, count, 11):
        words[i] = words[i].capitalize()
        if i:
            words[i - 1] += "."
    return " ".join(words) + "."


def edited(rng, text, changes):
    words = text.split()
    for _ in range(changes):
        at = rng.randrange(len(words))
        kind = rng.randrange(3)
        if kind == 0:
            words[at] = rng.choice(WORDS)
        elif kind == 1:
            words[at:at] = [rng.choice(WORDS) for _ in range(2)]
        else:
            del words[at]
    return " ".join(words)


def page(number, host, title, text):
    return {"id": f"page-{number}", "url": f"https://{host}/story/{number}.html", "title": title, "text": text}


def groups(rng):
    """Stories, of which the first have the most copies."""
    number = 0
    for story in range(120):
        text, title = prose(rng, rng.randrange(150, 420)), prose(rng, 6).title()
        copies = [14, 9, 9, 6, 5, 4, 3, 3, 2, 2][story] if story < 10 else rng.choice([0, 0, 0, 1, 2])
        for copy in range(copies + 1):
            host = HOSTS[0] if copy == 0 else rng.choice(HOSTS)
            changed = text if copy % 3 == 1 else edited(rng, text, rng.randrange(0, 5) if copy else 0)
            number += 1
            yield page(number, host, title, changed)


def hostile(rng):
    for name, title in HOSTILE:
        text = prose(rng, 80) + " " + title + " " + name
        for copy in range(10):
            yield {"id": f"{name} {copy}", "url": f"http://{HOSTS[copy % 2]}/{copy}?q={title}", "title": title,
                   "text": edited(rng, text, 1) if copy % 2 else text}
    sentence = "\u654f\u6377\u7684\u68d5\u8272\u72d0\u72f8\u8df3\u8fc7\u61d2\u72d7\u7136\u540e\u7761\u89c9\u4e86" * 4
    for copy in range(8):
        yield {"id": f"zh-{copy}", "title": "\u72d0\u72f8", "text": sentence + ("\u72d7" * copy)}


def main():
    rng = random.Random(4)
    documents = list(groups(rng)) + list(hostile(rng))
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        for document in documents:
            file.write(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
