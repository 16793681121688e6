"""Which runs need not be read again: nothing that their verdict was made of has changed, and their marks still say it.

What a verdict was made of is kept on the run itself, as a digest in the tag ``runtriage.cursor``: the run and all runs
it was compared with (ids and the tracker's cursors), the settings, the baselines, our version, and what was to be
written. A second digest there is that of our other tags, so that a tag that somebody changed or took off is noticed.

The experiment has such a tag too: a sweep that ended after its last run and before the experiment was marked, and a run
that was deleted since, cannot be told from the runs that are there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from runtriage import __version__
from runtriage.model.baseline import BaselineSet
from runtriage.model.curve import Triage
from runtriage.model.history import RunInfo
from runtriage.model.marks import Marks, WritePlan
from runtriage.model.phrase import phrase
from runtriage.model.report import BaselineUse, Report, RunSummary, Tool, stated
from runtriage.model.texts import say, text
from runtriage.model.vocab import BaselineKind, Lang, Level
from runtriage.outputs import tags
from runtriage.pipeline import Params, fingerprint
from runtriage.sweep.outcome import Outcome

_SEALED = frozenset({
    tags.STATUS, tags.FINDINGS, tags.CAUSE, tags.FIRST_STEP, tags.REASON, tags.BASELINE, tags.CONFIG, tags.VERSION,
})
_DIGITS = 8
_LEVELS = frozenset(level.value for level in Level)
_Groups = Sequence[Sequence[RunInfo]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What verdicts are made of beside the runs.

    Attributes
    ----------
    digest
        Of settings, baselines, version and kinds of marks.
    ignore_keys
        Config keys that do not tell cohorts apart.
    alone
        Every run is judged without its siblings, against learned baselines.
    """

    digest: str
    ignore_keys: tuple[str, ...] = ()
    alone: bool = False

    def of_runs(self, groups: _Groups) -> dict[str, str]:
        """Return run id to the digest of what its verdict is made of; not for runs of which a listing cannot tell."""
        found: dict[str, str] = {}
        for infos in self.judged_together(groups):
            if all(info.cursor for info in infos):
                facts = (self.digest, sorted((info.id, info.cursor) for info in infos))
                found |= dict.fromkeys((info.id for info in infos), _digest(facts))
        return found

    def for_journal(self, groups: _Groups) -> dict[str, str]:
        """Return run id to the digest of what its verdict is made of, as far as a listing can tell."""
        found: dict[str, str] = {}
        for infos in self.judged_together(groups):
            facts = (self.digest, sorted((info.id, info.cursor or str(info.state)) for info in infos))
            found |= dict.fromkeys((info.id for info in infos), _digest(facts))
        return found

    def judged_together(self, groups: _Groups) -> Iterable[Sequence[RunInfo]]:
        """Yield the runs that must be read together, since each is part of what the others' verdicts are made of."""
        for infos in groups:
            if self.alone or not fingerprint(infos[0].config, self.ignore_keys):
                yield from ([info] for info in infos)
            else:
                yield infos


def basis_of(params: Params, baselines: BaselineSet | None, what: frozenset[str], *, files: bool) -> Basis:
    """Return what verdicts are made of.

    Parameters
    ----------
    params, baselines
        As a sweep takes them.
    what
        Kinds of marks that are written.
    files
        Whether the tracker can store files.
    """
    from runtriage.codec_baselines import encode_baselines  # noqa: PLC0415  most sweeps have none

    learned = "" if baselines is None else hashlib.sha256(encode_baselines(baselines)).hexdigest()
    settings = (params.false_alarm_budget, sorted(params.roles.items()), params.ignore_keys, params.lang)
    digest = _digest((__version__, settings, learned, sorted(what), files))
    return Basis(digest=digest, ignore_keys=params.ignore_keys, alone=baselines is not None)


def seal(made_of: str, values: Mapping[str, str]) -> str:
    """Return the value of the tag ``runtriage.cursor`` of a run with these tags."""
    ours = sorted((key, value) for key, value in values.items() if key in _SEALED or key.endswith(".z_max"))
    return f"{made_of}:{_digest(ours)}"


def seal_project(made_of: Mapping[str, str], marks: Marks) -> str:
    """Return the value of the tag ``runtriage.cursor`` of an experiment with these marks, made of these runs."""
    values = {key: value for key, value in marks.tags.items() if key != tags.CURSOR}
    return f"{_digest(sorted(made_of.items()))}:{_digest((sorted(values.items()), marks.note))}"


def is_project_sealed(made_of: Mapping[str, str], marks: Marks) -> bool:
    """Tell whether the marks of an experiment were written whole, are as they were, and speak for just these runs."""
    return marks.tags.get(tags.CURSOR) == seal_project(made_of, marks)


def split(groups: _Groups, bases: Mapping[str, str], lang: Lang = Lang.EN) -> tuple[list[Outcome], list[list[RunInfo]]]:
    """Return the outcomes of runs that need not be read again, and the groups of the others.

    Runs that are judged together are kept or read together, since each of them is part of what the others' verdicts
    are made of.

    Parameters
    ----------
    groups
        Cohorts.
    bases
        From :meth:`Basis.of_runs`.
    lang
        Language of what is told.
    """
    kept: list[Outcome] = []
    rest: list[list[RunInfo]] = []
    for infos in groups:
        same = [_is_sealed(info, bases) for info in infos]
        shared = len({bases.get(info.id) for info in infos}) < len(infos)
        if shared and not all(same):
            rest.append(list(infos))
            continue
        kept += [_as_marked(info, lang) for info, unchanged in zip(infos, same, strict=True) if unchanged]
        rest.append([info for info, unchanged in zip(infos, same, strict=True) if not unchanged])
    return kept, [infos for infos in rest if infos]


def _is_sealed(info: RunInfo, bases: Mapping[str, str]) -> bool:
    made_of = bases.get(info.id)
    found = {key: value for key, value in info.tags.items() if tags.is_own(key)}
    return made_of is not None and found.get(tags.STATUS) in _LEVELS and found.get(tags.CURSOR) == seal(made_of, found)


def _as_marked(info: RunInfo, lang: Lang) -> Outcome:
    """Return the outcome of a run as its marks tell it."""
    run = RunSummary(source=info.source, id=info.id, name=info.name or info.id, state=info.state, url=info.url)
    found = filter(None, info.tags.get(tags.FINDINGS, "").split(","))
    kinds = text("word.comma", lang).join(say(phrase("word.kind", kind_words=kind), lang) for kind in found)
    first = info.tags.get(tags.FIRST_STEP)
    if kinds and first is not None:
        kinds = say(phrase("table.since", kinds=kinds, start=first), lang)
    report = Report(
        run=run,
        verdict=Level(info.tags[tags.STATUS]),
        reason=info.tags.get(tags.REASON) or kinds or text("reason.unchanged", lang),
        baseline=_baseline(info.tags.get(tags.BASELINE, "")),
        tool=Tool(version=__version__),
        lang=stated(lang),
    )
    return Outcome(triage=Triage(report=report), plan=WritePlan(), kept=True)


def _baseline(told: str) -> BaselineUse:
    """Return what a run was compared with, as :func:`runtriage.outputs.marks.run_tags` spells it."""
    kind, _, runs = told.partition(":")
    if kind == BaselineKind.COHORT and runs.isdecimal() and len(runs) < _DIGITS:
        return BaselineUse(kind=BaselineKind.COHORT, runs=int(runs))
    return BaselineUse(kind=BaselineKind.SELF if kind == BaselineKind.SELF else BaselineKind.NONE)


def _digest(facts: object) -> str:
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()[:16]
