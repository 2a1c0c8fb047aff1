"""Draws speed-up and CPU seconds per gigabyte over threads, from what bench/cores wrote: of the machine with the most
cores, and there of the last command. Colours follow the reader's light or dark mode."""
import csv
import math
import os
import re

WIDTH, HEIGHT, TOP, PANEL_WIDTH, PANEL_HEIGHT = 860, 470, 56, 360, 300
LEFTS = (56, 480)
LEGEND_TOP, LEGEND_COLUMNS = 414, 4
NUMBERS = ("speedup", "cpu_seconds_per_gb", "mb_per_second", "temporary", "peak_mb", "anonymous_mb")
# light, dark; the dash tells lines apart where colours do not
LINES = [("#0060a8", "#58a6ff", ""), ("#c2410c", "#ff9b57", ""), ("#15803d", "#4ac776", ""), ("#9333ea", "#c792ff", ""),
         ("#a16207", "#e3b341", ""), ("#0060a8", "#58a6ff", "7 4"), ("#0060a8", "#58a6ff", "2 3"),
         ("#be185d", "#ff7eb6", ""), ("#be185d", "#ff7eb6", "7 4")]


def style():
    light = "".join(f".s{i}{{stroke:{pair[0]}}}.d{i}{{fill:{pair[0]}}}" for i, pair in enumerate(LINES))
    dark = "".join(f".s{i}{{stroke:{pair[1]}}}.d{i}{{fill:{pair[1]}}}" for i, pair in enumerate(LINES))
    return ("<style>.paper{fill:#fff}.grid{stroke:#ddd}.ideal{stroke:#888}text{fill:#222}" + light +
            "@media (prefers-color-scheme:dark){.paper{fill:#0d1117}.grid{stroke:#30363d}.ideal{stroke:#8b949e}"
            "text{fill:#e6edf3}" + dark + "}</style>")


class Panel:
    """A diagram over threads, 1 to `most`, marked at 1, 2, 4, ...; `ticks` are the marks of the other axis. `x` and `y`
    give the share of the panel's width and height for a value."""

    def __init__(self, left, title, most, ticks, x, y):
        self.left, self.parts = left, []
        self.x = lambda value: left + PANEL_WIDTH * x(value)
        self.y = lambda value: TOP + PANEL_HEIGHT * (1 - y(value))
        self.text(left, TOP - 20, title, "start", 15)
        self.text(left + PANEL_WIDTH / 2, TOP + PANEL_HEIGHT + 38, "threads")
        for threads in doubled(most):
            self.grid(self.x(threads), TOP, self.x(threads), TOP + PANEL_HEIGHT)
            self.text(self.x(threads), TOP + PANEL_HEIGHT + 18, str(threads))
        for tick in ticks:
            self.grid(left, self.y(tick), left + PANEL_WIDTH, self.y(tick))
            self.text(left - 8, self.y(tick) + 4, f"{tick:g}", "end")

    def grid(self, x1, y1, x2, y2):
        self.parts.append(f'<path class="grid" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>')

    def text(self, x, y, words, anchor="middle", size=13):
        self.parts.append(text(x, y, words, anchor, size))

    def line(self, points, kind, dash=""):
        where = "L".join(f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in points)
        self.parts.append(f'<path class="{kind}" d="M{where}" fill="none" stroke-width="2" stroke-dasharray="{dash}"/>')

    def series(self, points, number):
        self.line(points, f"s{number}", LINES[number][2])
        self.parts += [f'<circle class="d{number}" cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="3"/>'
                       for x, y in points]


def text(x, y, words, anchor, size=13):
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{words}</text>'


def doubled(most):
    return [1 << i for i in range(most.bit_length()) if 1 << i <= most]


def speed_panel(works, most):
    panel = Panel(LEFTS[0], "Speed-up against one thread", most, doubled(most),
                  lambda threads: (threads - 1) / max(most - 1, 1), lambda value: value / most)
    panel.line([(1, 1), (most, most)], "ideal", "3 4")
    panel.text(panel.x(most) - 30, panel.y(most) + 12, "linear", "end")
    for number, rows in enumerate(works.values()):
        panel.series([(row["threads"], row["speedup"]) for row in rows], number)
    return panel


def cpu_panel(works, most):
    """Documents only: a gigabyte of fingerprints is another thing."""
    shown = {name: rows for name, rows in works.items() if not name.startswith("join")}
    top = max((row["cpu_seconds_per_gb"] for rows in shown.values() for row in rows), default=1)
    step = next(step for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000) if top / step <= 8)
    ticks = [step * i for i in range(math.ceil(top / step) + 1)]
    panel = Panel(LEFTS[1], "CPU seconds per gigabyte of JSONL", most, ticks,
                  lambda threads: math.log2(threads) / max(math.log2(most), 1), lambda value: value / ticks[-1])
    for number, (name, rows) in enumerate(works.items()):
        if name in shown:
            panel.series([(row["threads"], row["cpu_seconds_per_gb"]) for row in rows], number)
    return panel


def legend(works):
    for number, name in enumerate(works):
        column, row = number % LEGEND_COLUMNS, number // LEGEND_COLUMNS
        x, y = LEFTS[0] + column * (WIDTH - LEFTS[0]) / LEGEND_COLUMNS, LEGEND_TOP + 20 * row
        yield (f'<path class="s{number}" d="M{x:.1f} {y - 4}h28" stroke-width="2" '
               f'stroke-dasharray="{LINES[number][2]}"/><circle class="d{number}" cx="{x + 14:.1f}" cy="{y - 4}" r="3"/>')
        yield text(x + 36, y, name, "start")


def core_count(row):
    return int(re.search(r"(\d+) cores", row["machine"])[1])


def read(path):
    """({work: its rows by threads}, most threads), of the machine with the most cores and its last command."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["speedup"]]
    most = max(map(core_count, rows))
    machine = [row for row in rows if core_count(row) == most][-1]
    works = {}
    for row in rows:
        if all(row[name] == machine[name] for name in ("machine", "doppel")):
            numbers = {name: float(row[name]) if row[name] else None for name in NUMBERS}
            threads = int(row["threads"])
            works.setdefault(row["work"], {})[threads] = {"threads": threads, **numbers}  # the last of several sizes
    works = {name: [some[threads] for threads in sorted(some)] for name, some in list(works.items())[:len(LINES)]}
    return works, max(row["threads"] for some in works.values() for row in some)


def draw(source, target):
    works, most = read(source)
    panels = [speed_panel(works, most), cpu_panel(works, most)]
    os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)
    with open(target, "w", encoding="utf-8") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">\n'
                   f'{style()}\n<rect class="paper" width="100%" height="100%"/>\n')
        for lines in (*(panel.parts for panel in panels), legend(works)):
            file.write("\n".join(lines) + "\n")
        file.write("</svg>\n")
