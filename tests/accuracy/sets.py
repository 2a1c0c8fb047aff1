"""sets.py - the figures of one labelled set: every method and setting, and what is required of them.

`figures(s, report)` gives rows for results.csv and calls report(text) for each requirement that is not met.
"""
import re

from measure import NO_TEXT, wrong

THRESHOLDS = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95]
SHINGLES = [f"{unit}={n}" for unit in ("words", "chars") for n in (3, 4, 5, 7, 9)] + ["chars=20"]
SIMHASH = [f"simhash64:{features}:weight={weight}" for features in ("words=5", "words=3", "words=1")
           for weight in ("tf", "set", "tf2")] + ["simhash128:words=5:weight=tf", "article"]
DISTANCES = [3, 6, 9, 12]
SHARES = [0.005, 0.05]  # of the groups; shingles that more have are boilerplate
BOILERPLATE_THRESHOLDS = [0.2, 0.3, 0.5, 0.7, 0.8, 0.9]
FRAMED = 0.8  # groups that shingles are counted by are at least so alike, whatever is asked for


def row(s, method, settings, figures, answer=None):
    return {"set": s.name, "documents": s.count, "method": method, "settings": settings, **figures,
            "candidates": answer.summary["candidates"] if answer else None,
            "command": answer.command if answer else "all_pairs"}


def check_similarity(s, truth, answer, threshold, report):
    """At least 99 % of the pairs at or above the threshold, none below, and the similarity itself."""
    near, missed, extra, unequal = wrong(truth, answer, threshold)
    if len(missed) > 0.01 * near:
        report(f"{s.name}: {answer.command}: {len(missed)} of {near} pairs were missed")
    if extra:
        report(f"{s.name}: {answer.command}: {len(extra)} pairs are not near, e.g. {min(extra)}")
    if unequal:
        report(f"{s.name}: {answer.command}: {len(unequal)} similarities are wrong, e.g. {unequal[0]}")


def by_similarity(s, truth, settings, thresholds, report, *options):
    """Exact similarity by comparing each with each, and method auto, at some thresholds and at the best one."""
    best, best_figures = s.best(truth)
    rows, best_auto = [], 0
    for threshold in sorted({*thresholds, best}):
        exact = s.score(set(truth.near(threshold)))
        answer = s.answer("--similarity", threshold, *options)
        check_similarity(s, truth, answer, threshold, report)
        figures = s.score(set(answer.pairs))
        best_auto = max(best_auto, figures["f1"] or 0)
        name = f"{settings} similarity={threshold}" + (" (best)" if threshold == best else "")
        rows += [row(s, "all pairs", name, exact), row(s, "auto", name, figures, answer)]
    if best_auto < (best_figures["f1"] or 0) - 0.01:
        report(f"{s.name}: {settings}: the best F1 of auto is {best_auto:.3f}, of exact similarity "
               f"{best_figures['f1']:.3f}")
    return rows


def by_shingles(s, report):
    rows = []
    for features in SHINGLES:
        recipe = f"simhash64:{features}"
        thresholds = THRESHOLDS if features == "words=5" else [0.5, 0.8]
        rows += by_similarity(s, s.truth(recipe), features, thresholds, report, "--recipe", recipe)
    return rows


def by_labels(s):
    """At the default threshold, with only the labels as truth: similar pages of different origin count as wrong."""
    answer = s.answer("--similarity", 0.8)
    figures = s.score(set(answer.pairs), s.labelled)
    return [row(s, "auto", "words=5 similarity=0.8 by labels alone", figures, answer)] if s.labelled else []


def by_boilerplate(s, report):
    """Frequent shingles left out: which those are depends on the groups, and so on thresholds above FRAMED."""
    rows = []
    for share in SHARES:
        for threshold in BOILERPLATE_THRESHOLDS:
            truth = s.truth(share=share, near=max(threshold, FRAMED))
            settings = f"words=5 boilerplate={share} similarity={threshold}"
            answer = s.answer("--similarity", threshold, "--boilerplate", share)
            check_similarity(s, truth, answer, threshold, report)
            rows += [row(s, "all pairs", settings, s.score(set(truth.near(threshold)))),
                     row(s, "auto", settings, s.score(set(answer.pairs)), answer)]
    return rows


def by_simhash(s, report):
    """Exactly the pairs within so many bits."""
    rows = []
    for recipe in SIMHASH:
        truth = s.truth(recipe)
        for distance in DISTANCES:
            answer = s.answer("--method", "simhash", "--distance", distance, "--recipe", recipe)
            fingerprints = truth.fingerprints
            near = {(a, b) for b in range(s.count) for a in range(b) if truth.words[a] and truth.words[b]
                    and truth.may_be_near(a, b) and (fingerprints[a] ^ fingerprints[b]).bit_count() <= distance}
            if near != answer.pairs.keys():
                report(f"{s.name}: {answer.command}: not exactly the pairs within {distance} bits")
            rows.append(row(s, "simhash", f"{recipe} distance={distance}", s.score(set(answer.pairs)), answer))
    return rows


def by_minhash_and_digest(s, report):
    rows = []
    for bands, rows_each in ((9, 13), (14, 8), (20, 5), (32, 4)):
        answer = s.answer("--method", "minhash", "--bands", bands, "--rows", rows_each, "--similarity", 0.8)
        if wrong(s.truth(), answer, 0.8)[2]:
            report(f"{s.name}: {answer.command}: pairs are reported that are not near")
        settings = f"words=5 similarity=0.8 bands={bands} rows={rows_each}"
        rows.append(row(s, "minhash", settings, s.score(set(answer.pairs)), answer))
    answer = s.answer("--method", "exact")
    return rows + [row(s, "exact", "digest", s.score(set(answer.pairs)), answer)]


def by_content(s, report):
    """A set with pages: what reading them finds, beside the text that came with them. Nothing may be lost up to 0.9;
    above, a frame that pages share also lifts the similarity of copies."""
    rows, truths = [], {}
    for content in ("main", "all"):
        truths[content] = s.truth("page", content, NO_TEXT)
        options = "--content", content, "--text-key", NO_TEXT
        rows += by_similarity(s, truths[content], f"words=5 content={content}", THRESHOLDS, report, *options)
    for threshold in (t for t in THRESHOLDS if t <= 0.9):
        lost = (s.truth().near(threshold).keys() & s.labelled) - truths["main"].near(threshold).keys()
        if lost:
            report(f"{s.name}: content=main loses {len(lost)} labelled pairs at {threshold}, e.g. {min(lost)}")
    frames = {content: frame_pairs(s, truth) for content, truth in truths.items()}
    if frames["main"] > frames["all"] / 2:
        report(f"{s.name}: content=main leaves {frames['main']} of {frames['all']} template pairs")
    for content, count in frames.items():
        rows.append(row(s, "template pairs", f"words=5 content={content}", {"pairs": count}))
    return rows


def frame_pairs(s, truth):
    """Pairs that share little but their frame: without a label, at 0.5 to 0.8."""
    return sum(0.5 <= similarity < 0.8 and pair not in s.true for pair, similarity in truth.similarity.items())


def by_ascii(s, report):
    """Text that was first reduced to a-z, 0-9 and white space, as is often done: what is left, and what is found."""
    plain = s.reduced(lambda text: re.sub(r"[^a-z0-9\s]", "", text.lower()))
    answer = plain.answer("--similarity", 0.8)
    if wrong(plain.truth(), answer, 0.8)[2]:
        report(f"{s.name}: {answer.command}: pairs are reported that are not near")
    fewer = [words for words, before in zip(plain.truth().words, s.truth().words) if words < before / 2]
    return [row(s, "auto", "words=5 similarity=0.8 of ASCII", s.score(set(answer.pairs)), answer),
            row(s, "words lost", "documents that ASCII takes half of the words of", {"pairs": len(fewer)})]


def figures(s, report):
    if not s.true:
        return by_ascii(s, report)
    rows = by_shingles(s, report) + by_simhash(s, report) + by_minhash_and_digest(s, report)
    rows += by_labels(s) + by_boilerplate(s, report) + by_ascii(s, report)
    return rows + by_content(s, report) if s.has_html else rows
