"""Judge every labelled corpus with the command line, score it, write the README's tables, compare with the floor.

The alert rules are scored on labelled runs too (:mod:`tests.accuracy.rules`); ``--only-rules`` does nothing else.

``python -m tests.accuracy.score CORPORA WORK``, which is what ``make score`` runs. Figures may rise, not fall: one
below its floor ends with 1. ``--raise`` lifts the floor to today's figures where they are better.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.accuracy.rules import group_table, groups, lab, lab_table

HERE = Path(__file__).resolve().parent
README = HERE.parent.parent / "README.md"
FLOOR = HERE / "floor.json"
RULES = "alert rules, fault lab"
SYNTHETIC = {
    f"synthetic, seed {seed}, spread {spread:g}": (seed, spread) for seed, spread in (
        (7, 0.0), (7, 0.03), (7, 0.10), (11, 0.03), (23, 0.03), (31, 0.10),
        (82, 0.03), (83, 0.06), (81, 0.10), (84, 0.10),
    )
}
"""Seed and run-to-run spread by name; seeds from 81 on were first looked at when nothing was changed any more."""

ALARMS = {name: 0.02 if spread >= 0.10 else 0.01 for name, (_, spread) in SYNTHETIC.items()}
"""Share of the healthy runs that may alarm: false alarms have a budget, and fewer of them are luck, no floor."""

HIGHER = ("recall", "typed", "located", "cause@1", "cause@3")


@dataclass(frozen=True)
class Corpus:
    """A labelled corpus with its reports."""

    name: str
    labels: Path
    reports: Path


def main() -> int:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--raise", dest="raise_floor", action="store_true", help="lift the floor to these figures")
    parser.add_argument("--only-rules", action="store_true", help="score the alert rules and nothing else")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    table = {} if options.only_rules else _verdicts(options.corpora, options.work)
    if table:
        _write_readme("score", _rows(table))
    table[RULES] = _rules(options.corpora, options.work)
    floor: dict[str, dict[str, float]] = json.loads(FLOOR.read_text()) if FLOOR.exists() else {}
    if options.raise_floor:
        floor |= {name: raised(floor.get(name, {}), _kept(scores)) for name, scores in table.items()}
        FLOOR.write_text(json.dumps(floor, indent=1, sort_keys=True) + "\n")
    below = list(fallen(table, floor, ALARMS))
    sys.stdout.write("\n".join(below or ["no figure is below its floor"]) + "\n")
    return 1 if below else 0


def _verdicts(corpora: Path, work: Path) -> dict[str, dict[str, float]]:
    score = corpora / "bench" / "score.py"
    table: dict[str, dict[str, float]] = {}
    for corpus in _judged(corpora, work):
        command = [sys.executable, str(score), str(corpus.labels), str(corpus.reports)]
        by_kind = subprocess.run([*command, "--by"], check=True, capture_output=True, text=True).stdout
        corpus.reports.with_suffix(".by.txt").write_text(by_kind)
        sys.stdout.write(f"== {corpus.name}\n{by_kind}\n")
        sys.stdout.flush()
        scored = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True)
        table[corpus.name] = json.loads(scored.stdout)
    return table


def _rules(corpora: Path, work: Path) -> dict[str, float]:
    """Score the alert rules, write their tables, and return what has a floor."""
    found = lab(corpora)
    by_group, by_kind = group_table(groups(corpora)), lab_table(found)
    (work / "rules.md").write_text("\n".join([*by_kind, "", *by_group]) + "\n")
    sys.stdout.write(f"== {RULES}\n{chr(10).join(by_kind)}\n\n{chr(10).join(by_group)}\n")
    _write_readme("rules", [*by_kind[:2], *(row for row in by_kind if row.startswith("| **"))])
    _write_readme("rule-groups", by_group)
    return {"fpr": found.ours[-1].false_alarms.rate, "recall": found.ours[-1].hits.rate}


def _judged(corpora: Path, work: Path) -> Iterator[Corpus]:
    for name, (seed, spread) in SYNTHETIC.items():
        folder = work / f"synthetic-{seed}-{spread:g}"
        if not (folder / "labels.jsonl").exists():
            command = [sys.executable, str(corpora / "bench" / "synth.py"), str(folder), "--seed", str(seed)]
            subprocess.run([*command, "--jitter", str(spread)], check=True, stdout=subprocess.DEVNULL)
        reports = work / f"{folder.name}.jsonl"
        _runtriage("sweep", f"files:{folder / 'runs'}", "--json", str(reports))
        yield Corpus(name, folder / "labels.jsonl", reports)
    lab = corpora / "data" / "faultlab"
    baselines, reports = work / "faultlab.baselines", work / "faultlab.jsonl"
    _runtriage("learn", f"files:{lab / 'baselines'}", "-o", str(baselines))
    _runtriage("sweep", f"files:{lab / 'candidates'}", "--baselines", str(baselines), "--json", str(reports))
    yield Corpus("small trainings with injected faults", lab / "labels.jsonl", reports)
    real = corpora / "data" / "real"
    _runtriage("sweep", f"files:{real}", "--json", str(work / "real.jsonl"))
    yield Corpus("public training runs", real / "labels.jsonl", work / "real.jsonl")


def _runtriage(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", "runtriage", *arguments], capture_output=True, text=True, check=False)
    if done.returncode not in {0, 4}:
        raise SystemExit(f"runtriage {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")


def _rows(table: dict[str, dict[str, float]]) -> list[str]:
    rows = [
        "| corpus | healthy / faulty | false alarms | recall | named right | located | cause first / in three |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, s in table.items():
        causes = f"{s['cause@1']:.2f} / {s['cause@3']:.2f}" if s["cause@1"] == s["cause@1"] else "no labels"
        rows.append(
            f"| {name} | {s['n_healthy']:.0f} / {s['n_faulty']:.0f} | {s['fpr']:.3f} | {s['recall']:.3f} "
            f"| {s['typed']:.3f} | {s['located']:.3f} | {causes} |"
        )
    return rows


def _write_readme(name: str, rows: list[str]) -> None:
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    head, rest = README.read_text().split(begin)
    README.write_text(f"{head}{begin}\n{chr(10).join(rows)}\n{end}{rest.split(end)[1]}")


def _kept(scores: dict[str, float]) -> dict[str, float]:
    return {k: round(scores[k], 4) for k in ("fpr", *HIGHER) if k in scores and scores[k] == scores[k]}


def raised(floor: dict[str, float], scores: dict[str, float]) -> dict[str, float]:
    """Return the better of floor and score by figure: a floor is never lowered."""
    both = {key: (floor.get(key, value), value) for key, value in scores.items()}
    return floor | {key: min(pair) if key == "fpr" else max(pair) for key, pair in both.items()}


def fallen(
    table: dict[str, dict[str, float]], floor: dict[str, dict[str, float]], alarms: dict[str, float]
) -> Iterator[str]:
    """Yield a line for every figure below its floor, and for false alarms above floor and allowance."""
    for name, limits in floor.items():
        if name not in table:
            continue
        for key, limit in limits.items():
            value, most = table[name][key], max(limit, alarms.get(name, 0.0))
            worse = value > most + 5e-5 if key == "fpr" else value < limit - 5e-5
            if worse:
                yield f"{name}: {key} is {value:.4f}, its floor {most if key == 'fpr' else limit:.4f}"


if __name__ == "__main__":
    raise SystemExit(main())
