"""The table of figures: printed, and written as CSV."""
import csv
import datetime
import os

CPU_CLOCK = os.environ.get("BENCH_CLOCK") == "cpu"  # as in bench/measure.h
FIELDS = ["date", "machine", "command", "what", "value", "best", "unit", "budget", "predicted", "peer", "ratio"]
SMALLER_IS_BETTER = ("MiB", "MB", "B", "s", "ms", "us", "ns", "% of")


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith(("model name", "Model"))]
    except OSError:
        names = []
    return f"{names[0] if names else os.uname().machine}, {len(os.sched_getaffinity(0))} cores"


class Table:
    """The figures, in the order they were measured."""

    def __init__(self):
        self.rows = []
        self.fixed = {"date": datetime.date.today().isoformat(), "machine": processor()}

    def add(self, what, value, unit, **more):
        """value, best, budget and predicted (by the plan) in units of `unit`; peer and ratio: what it compares with."""
        self.rows.append({**dict.fromkeys(FIELDS, ""), **self.fixed, "what": what, "value": value, "unit": unit, **more})

    def show(self):
        print(f"\n{'what':<58} {'median':>9} {'best':>9} {'unit':<5} {'budget':>7}          plan  compared")
        for row in self.rows:
            number = [f"{row[key]:9.4g}" if row[key] != "" else " " * 9 for key in ("value", "best")]
            budget, verdict = " " * 7, "     "
            if row["budget"] != "":
                budget = f"{row['budget']:7.4g}"
                verdict = "met  " if met(row) else "BELOW"
            plan = f"{row['predicted'] / row['value']:4.2f}" if row["predicted"] != "" else " " * 4
            ratio = f"{row['ratio']:.3g} x {row['peer']}" if row["ratio"] != "" else ""
            if row["what"].startswith("peer: "):
                ratio = f"doppel: {row['ratio']:.3g} x"
            print(f"{row['what']:<58} {number[0]} {number[1]} {row['unit']:<5} {budget}  {verdict}   {plan}  {ratio}"
                  .rstrip())

    def keep(self, path):
        """Takes over the lines of an earlier run that this one has not measured."""
        measured = {(row["command"], row["what"]) for row in self.rows}
        with open(path, newline="", encoding="utf-8") as file:
            old = [row for row in csv.DictReader(file) if (row["command"], row["what"]) not in measured]
        self.rows = [{**dict.fromkeys(FIELDS, ""), **row} for row in old] + self.rows

    def write(self, path):
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            for row in self.rows:
                if CPU_CLOCK:
                    row = {**row, "command": "BENCH_CLOCK=cpu " + row["command"]}
                writer.writerow({key: f"{value:.4g}" if isinstance(value, float) else value
                                 for key, value in row.items()})


def met(row):
    return row["value"] <= row["budget"] if row["unit"] in SMALLER_IS_BETTER else row["value"] >= row["budget"]
