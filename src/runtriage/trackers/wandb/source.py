"""Runs of one W&B project: listed, read and marked.

Proved with the real client 0.31 against the project's stand-in server only; how the real server writes NaN, nests
exported columns and partitions exports is not published, so each known variant is read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from runtriage.errors import MarkWriteError, RunNotFoundError, RunReadError
from runtriage.model.alert import Alert, Channel, Placed
from runtriage.model.history import RunHistory, RunInfo, Track
from runtriage.model.marks import Marks, WritePlan, content_digest
from runtriage.model.refs import parse_address
from runtriage.model.vocab import RunState
from runtriage.trackers.wandb import automations, wire
from runtriage.trackers.wandb import marks as own
from runtriage.trackers.wandb.bounded import Limits
from runtriage.trackers.wandb.client import WandbClient, facts_of
from runtriage.trackers.wandb.live import PAGE, Head, head, page_width
from runtriage.trackers.wandb.live import lines as live_lines
from runtriage.trackers.wandb.project import apply_project, read_project
from runtriage.trackers.wandb.rows import decoded, tracks_of_rows
from runtriage.trackers.wandb.summary import as_text, is_own, own_values, with_own
from runtriage.trackers.wandb.tails import continued, past_of

_Tracks = tuple[dict[str, Track], tuple[str, ...], int]


class WandbSource:
    """The runs of one project. Implements ``HistorySource``, ``MarkTarget`` and ``RuleTarget``.

    Host and key are found as wandb itself finds them (``WANDB_BASE_URL``, ``WANDB_API_KEY``, ``wandb login``). Nothing
    is asked before the first call that needs it. Safe to use from several threads; at most eight histories are read at
    a time.

    Parameters
    ----------
    address
        ``wandb://ENTITY/PROJECT``.
    limits
        Retries and times.
    """

    def __init__(self, address: str, *, limits: Limits | None = None) -> None:
        parsed = parse_address(address)
        self._address = parsed.canonical
        self.client = WandbClient(*parsed.parts, limits=limits)

    @property
    def address(self) -> str:
        """Canonical address."""
        return self._address

    def list_runs(self) -> Iterator[RunInfo]:
        """Yield the runs, newest first; one request per hundred runs.

        Raises
        ------
        SourceError
            The server cannot be reached, refuses, or has no such project.
        """
        seen: set[str] = set()  # runs started meanwhile push old ones onto the next page again
        for facts in self.client.list_runs():
            if facts["id"] not in seen:
                seen.add(facts["id"])
                yield self._info(facts)

    def find_run(self, run_id: str) -> RunInfo:
        """Return one run by id, or by its name when that is unique.

        Raises
        ------
        RunNotFoundError
            No such run, or several of that name.
        SourceError
            As :meth:`list_runs`.
        """
        try:
            return self._info(facts_of(self.client.run(run_id)))
        except RunNotFoundError:
            found = list(self.client.list_runs(filters={"display_name": run_id}))
        if len(found) != 1:
            what = f"{len(found)} runs have this name" if found else "there is no run of this id or name"
            raise RunNotFoundError(what, where=f"{self.address}/{run_id}")
        return self._info(found[0])

    def read(self, info: RunInfo) -> RunHistory:
        """Return every logged point of a run.

        Raises
        ------
        RunNotFoundError
            The run does not exist (any more).
        RunReadError
            The server failed on this run after retries.
        SourceError
            The server cannot be reached or refuses.
        """
        window = (0, PAGE) if info.state is RunState.RUNNING else None
        with self.client.slots:
            found = head(self.client, info.id, window)
            facts = wire.facts_of_fields(found.fields, self.client.page_of(info.id))
            fetched = self._fetched(found, facts, window)
        tracks, notes, rows = fetched()
        expected = wire.line_count(facts)
        if rows < expected:
            notes = (*notes, f"W&B counts {expected} rows of history and delivered {rows}")
        return RunHistory(info=self._info(facts), tracks=tracks, notes=(*notes, *wire.lineage(facts["internal"])))

    def read_tail(self, info: RunInfo, cached: RunHistory) -> RunHistory | None:
        """Return the same as :meth:`read`, pulling the last rows known and those behind them; raises as it does."""
        if (past := past_of(cached.info.cursor)) is None:
            return None
        window = (past.start, past.start + PAGE)
        with self.client.slots:
            found = head(self.client, info.id, window)
            facts = wire.facts_of_fields(found.fields, self.client.page_of(info.id))
            now, lineage = self._info(facts), wire.lineage(facts["internal"])
            if past_of(now.cursor) is None or not now.cursor.endswith(f":{past.digest}") or cached.notes != lineage:
                return None
            rows, unreadable = self._rows(found, facts, window)
        tracks = None if unreadable else continued(cached, past, rows, wire.line_count(facts))
        return None if tracks is None else RunHistory(info=now, tracks=tracks, notes=lineage)

    def read_marks(self, info: RunInfo) -> Marks:
        """Return our marks on a run as they are now; raises as :meth:`read`."""
        run = self.client.run(info.id)
        return self._marks(self.client.fields(info.id), self.client.files(run))

    def apply(self, info: RunInfo, plan: WritePlan) -> None:
        """Carry out a plan on a run: files first, then one mutation of just its tags and, if it has ended, its summary.

        Tags and summary are read again just before that mutation. W&B offers no conditional write: an edit by somebody
        else between that reading and the mutation, one round trip, would be lost. All other edits are kept byte for
        byte.

        Raises
        ------
        MarkWriteError
            The server fails, or the plan holds something that is not ours to write.
        AccessRefusedError, RunNotFoundError, SourceError
            As :meth:`read`.
        """
        where = f"{self.address}/{info.id}"
        own.check(plan, where)
        if not plan:
            return
        try:
            run = self.client.run(info.id)
            files = self.client.files(run)
            before = self._values(self.client.fields(run.id), files)  # the plan may remove the file that holds them
            for path, content in plan.put_files.items():
                self.client.put_file(run, path, content)
            self.client.delete_files([files[path] for path in plan.delete_files if path in files], where)
            self._write(run, plan, files, before, where)
        except RunNotFoundError:
            raise
        except RunReadError as error:
            raise MarkWriteError(error.message, where=where, hint=error.hint) from error

    def read_project_marks(self) -> Marks:
        """Return our marks on the project: the workspace view and the report."""
        return read_project(self.client)

    def apply_project(self, plan: WritePlan) -> None:
        """Carry out a plan on the project; raises as :meth:`apply`."""
        apply_project(self.client, plan)

    def channels(self) -> tuple[Channel, ...]:
        """Return the integrations of the team that automations can use."""
        return automations.channels(self.client)

    def read_alerts(self) -> tuple[Placed, ...]:
        """Return the automations of the project, ours and others'."""
        return automations.read_alerts(self.client)

    def put_alert(self, alert: Alert, before: Placed | None = None) -> None:
        """Make or change an automation of ours."""
        automations.put_alert(self.client, alert, before)

    def remove_alert(self, placed: Placed) -> None:
        """Remove an automation of ours."""
        automations.remove_alert(self.client, placed)

    def close(self) -> None:
        """Release the connection. May be called twice."""
        self.client.close()

    def _fetched(self, found: Head, facts: Mapping[str, Any], window: tuple[int, int] | None) -> Callable[[], _Tracks]:
        """Ask for all that is needed; return what decodes it, which needs no server and no slot."""
        if not wire.line_count(facts) and wire.last_step(facts) < 0:
            return lambda: ({}, (), 0)
        if not found.exported:
            lines = live_lines(self.client, found, facts, 0, window[1] if window else 0)
            return lambda: _of_lines(lines)
        if wire.run_state(facts["state"]) is not RunState.RUNNING:
            exported = self._exported(self.client.opened(found.fields))
            if exported is not None:
                return lambda: exported
        rows = self._scanned(found, facts, 0)
        return lambda: tracks_of_rows(rows)

    def _rows(
        self, found: Head, facts: Mapping[str, Any], window: tuple[int, int]
    ) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
        """Return all rows from the start of a window on, and notes about what is no row."""
        if found.exported:
            return self._scanned(found, facts, window[0]), ()
        return decoded(live_lines(self.client, found, facts, *window))

    def _scanned(self, found: Head, facts: Mapping[str, Any], start: int) -> list[dict[str, Any]]:
        stop = wire.scan_stop(facts, facts["summaryMetrics"])
        page = page_width(start, stop, max(wire.line_count(facts), 1))
        return list(self.client.scan(self.client.opened(found.fields), start=start, stop=stop, page=page))

    def _exported(self, run: Any) -> _Tracks | None:
        with tempfile.TemporaryDirectory(prefix="runtriage-") as folder:
            paths = self.client.exports(run, Path(folder))
            if paths is None:
                return None
            try:
                tables = [pq.read_table(path, use_threads=False, memory_map=False) for path in paths]
                return wire.tracks_of_table(wire.joined(tables))
            except (pa.ArrowException, OSError):
                return None  # a damaged download: the rows can be scanned

    def _info(self, facts: Mapping[str, Any]) -> RunInfo:
        said = {key: as_text(value) for key, value in facts["summaryMetrics"].items() if is_own(key)}
        values = own.values_found(facts["tags"], said)
        values.pop(own.NOTE, None)
        tags = dict.fromkeys(facts["tags"], "") | values
        return wire.run_info(facts, source=self.address, url=facts.get("url"), tags=tags, config=facts["config"])

    def _values(self, fields: Mapping[str, Any], files: Mapping[str, Any]) -> dict[str, str]:
        if wire.run_state(fields["state"]) is not RunState.RUNNING:
            said = own_values(fields["summaryMetrics"] or "{}")
            told = {} if own.ALERTS in said else self._live_values(files)
            return {k: v for k, v in told.items() if k == own.ALERTS} | said
        return self._live_values(files)

    def _live_values(self, files: Mapping[str, Any]) -> dict[str, str]:
        if own.LIVE_FILE not in files:
            return {}
        return own.decode_values(self.client.content(files[own.LIVE_FILE], self.address))

    def _marks(self, fields: Mapping[str, Any], files: Mapping[str, Any]) -> Marks:
        values = own.values_found(fields["tags"] or (), self._values(fields, files))
        running = wire.run_state(fields["state"]) is RunState.RUNNING
        shown = [path for path in files if own.is_own_path(path) and not (running and path == own.LIVE_FILE)]
        note = values.pop(own.NOTE, None)
        return Marks(tags=values, note=note, files={path: self._digest(files[path]) for path in shown})

    def _digest(self, file: Any) -> str:
        """Return the digest of a file; one that cannot be had is like none that is wanted, and is put again."""
        try:
            return content_digest(self.client.content(file, self.address))
        except RunReadError:
            return ""

    def _write(
        self, run: Any, plan: WritePlan, files: Mapping[str, Any], before: Mapping[str, str], where: str
    ) -> None:
        fields = self.client.fields(run.id)
        shown = own.values_found(fields["tags"] or (), before)  # what the plan was made from
        values = {k: v for k, v in own.after(shown, plan).items() if is_own(k) and v not in {own.GONE, ""}}
        if wire.run_state(fields["state"]) is RunState.RUNNING:
            if values and values != before:
                self.client.put_file(run, own.LIVE_FILE, own.encode_values(values))
            elif not values and own.LIVE_FILE in files:
                self.client.delete_files([files[own.LIVE_FILE]], where)
            fields = self.client.fields(run.id)
        changed: dict[str, Any] = {}
        tags = own.merged_tags(
            fields["tags"] or (), values, live=wire.run_state(fields["state"]) is RunState.RUNNING
        )
        if tags != list(fields["tags"] or ()):
            changed["tags"] = tags
        if wire.run_state(fields["state"]) is not RunState.RUNNING:
            text = fields["summaryMetrics"] or "{}"
            if (new := with_own(text, values)) != text:
                changed["summaryMetrics"] = new
        if changed:
            self.client.upsert(fields["id"], changed, where=where)


def _of_lines(lines: list[str]) -> _Tracks:
    rows, unreadable = decoded(lines)
    tracks, notes, count = tracks_of_rows(rows)
    return tracks, (*unreadable, *notes), count
