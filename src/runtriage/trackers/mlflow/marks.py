"""Our marks on a run and on an experiment, in MLflow's words: tags, a block of the note, files, one saved view.

Beside the marks themselves, two tags of our own keep what MLflow cannot tell: which content the stored files have, and
which note was wanted where a shorter one had to be written. They come and go with what they describe.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from runtriage.errors import AccessRefusedError, MarkWriteError, RunNotFoundError
from runtriage.model.marks import OWN_PREFIX, USER_KEYS, Marks, WritePlan
from runtriage.trackers.mlflow import artifacts, note
from runtriage.trackers.mlflow.client import ApiError, MlflowClient
from runtriage.trackers.mlflow.wire import RunRecord

NOTE_TAG = "mlflow.note.content"
FILES_RECORD = f"{OWN_PREFIX}kept.files"
NOTE_RECORD = f"{OWN_PREFIX}kept.note"
RECORDS = frozenset({FILES_RECORD, NOTE_RECORD})

TAGS_PER_REQUEST = 100
VALUE_LIMIT = 8000
_KEY = re.compile(r"[\w\-. :/]{1,250}")
_SHOWN = 3


class RunMarks:
    """Our marks on one run.

    Parameters
    ----------
    run
        The run as it is now.
    client
        The server.
    """

    def __init__(self, run: RunRecord, client: MlflowClient) -> None:
        self._run = run
        self._client = client
        self._store = artifacts.ArtifactStore(run, client)

    def read(self) -> Marks:
        """Return the marks as they are.

        Raises
        ------
        SourceError
            As :meth:`MlflowClient.get`.
        """
        tags = self._run.tags
        return Marks(
            tags=own_tags(tags, RECORDS),
            note=note_found(tags, NOTE_RECORD),
            files=self._store.found(artifacts.read_record(tags.get(FILES_RECORD))),
        )

    def apply(self, plan: WritePlan, *, reread: Callable[[], RunRecord]) -> None:
        """Carry out a plan: files first, since the note shows them; then tags and note at once; then what goes.

        Parameters
        ----------
        plan
            The changes.
        reread
            Returns the run once more, asked just before the note is merged.

        Raises
        ------
        MarkWriteError
            Something in the plan is not ours or does not fit (nothing is written then), or the server fails. If only
            files failed, everything else is written first.
        AccessRefusedError, SourceUnreachableError
            As :meth:`MlflowClient.get`.
        RunNotFoundError
            The run is gone.
        """
        check_tags(plan, RECORDS, VALUE_LIMIT)
        for path in (*plan.put_files, *plan.delete_files):
            artifacts.check_path(path)
        try:
            failure, stored = self._put_files(plan.put_files)
            now = reread().tags
            change = TagChange(dict(plan.set_tags), [key for key in plan.delete_tags if key in now])
            merge_note(change, now, plan, record=NOTE_RECORD, limit=note.NOTE_LIMIT)
            self._merge_record(change, now, plan, stored)
            self._write(change)
            self._delete_files(plan.delete_files)
        except ApiError as error:
            raise self._failure(error) from error
        if failure is not None:
            raise failure

    def _put_files(self, files: Mapping[str, bytes]) -> tuple[MarkWriteError | None, list[str]]:
        """Store files; return what went wrong, and what was stored before that."""
        if files and self._store.reason is not None:
            return MarkWriteError(f"the panel is not stored: {self._store.reason}", where=self._run.id), []
        stored: list[str] = []
        for path, content in files.items():
            try:
                self._store.put(path, content)
            except ApiError as error:
                return self._failure(error), stored
            except AccessRefusedError as error:  # some proxies refuse uploads only; other refusals show next
                return MarkWriteError(f"the panel is not stored: {error.message}", where=error.where), stored
            stored.append(path)
        return None, stored

    def _delete_files(self, paths: Iterable[str]) -> None:
        gone = [path for path in paths if self._store.reason is None]
        for path in gone:
            self._store.delete(path)
        if gone:
            self._store.tidy()

    def _merge_record(self, change: TagChange, now: Mapping[str, str], plan: WritePlan, stored: Iterable[str]) -> None:
        record = artifacts.read_record(now.get(FILES_RECORD))
        record = {path: known for path, known in record.items() if path not in plan.delete_files}
        record |= {path: artifacts.kept(plan.put_files[path]) for path in stored}
        change.put(FILES_RECORD, artifacts.write_record(record), now)

    def _write(self, change: TagChange) -> None:
        pairs = [{"key": key, "value": value} for key, value in change.sets.items()]
        for start in range(0, len(pairs), TAGS_PER_REQUEST):
            batch = pairs[start : start + TAGS_PER_REQUEST]
            self._client.send("runs/log-batch", {"run_id": self._run.id, "metrics": [], "params": [], "tags": batch})
        for key in change.deletes:
            delete_tag(self._client, "runs/delete-tag", {"run_id": self._run.id, "key": key})

    def _failure(self, error: ApiError) -> MarkWriteError:
        if error.code == "RESOURCE_DOES_NOT_EXIST":
            raise RunNotFoundError("the run does not exist", where=self._run.id) from error
        return MarkWriteError(error.message, where=error.where, hint=error.hint)


class TagChange:
    """Tags to set and to delete on something, gathered before anything is sent."""

    def __init__(self, sets: dict[str, str], deletes: list[str]) -> None:
        self.sets = sets
        self.deletes = deletes

    def put(self, key: str, value: str | None, now: Mapping[str, str]) -> None:
        """Want a value, or None for no tag; nothing is gathered if that is how it is."""
        if value is None and key in now:
            self.deletes.append(key)
        elif value is not None and value != now.get(key):
            self.sets[key] = value


def merge_note(change: TagChange, now: Mapping[str, str], plan: WritePlan, *, record: str, limit: int) -> None:
    """Gather what a plan changes about the note, and about the record of what was wanted."""
    present = now.get(NOTE_TAG)
    if plan.set_note is not None:
        merged = note.put_block(present, plan.set_note, limit=limit)
        written = note.take_apart(merged or "").block
        memory = None if written == plan.set_note else note.remember(plan.set_note, written)
        change.put(NOTE_TAG, merged, now)
        change.put(record, memory if memory is None or len(memory) <= limit else None, now)
    elif plan.delete_note:
        change.put(NOTE_TAG, note.remove_block(present), now)
        change.put(record, None, now)


def note_found(tags: Mapping[str, str], record: str) -> str | None:
    """Return our block of a note; the one that was wanted if it had to be cut and is still there as it was cut.

    An empty one where somebody took the block out, until our record of it is gone too: clearing leaves no trace.
    """
    present = note.take_apart(tags.get(NOTE_TAG, "")).block
    return note.recall(tags[record], present) or "" if record in tags else present


def own_tags(tags: Mapping[str, str], records: frozenset[str]) -> dict[str, str]:
    """Return the tags that are marks of ours."""
    return {key: value for key, value in tags.items() if _ours(key, records)}


def check_tags(plan: WritePlan, records: frozenset[str], limit: int) -> None:
    """Refuse a plan that touches tags of others, or tags that MLflow would refuse or cut.

    Raises
    ------
    MarkWriteError
        It does.
    """
    foreign = [key for key in (*plan.set_tags, *plan.delete_tags) if not _ours(key, records)]
    if foreign:
        raise MarkWriteError(f"the plan touches tags that are not ours: {', '.join(map(repr, foreign[:_SHOWN]))}")
    for key, value in plan.set_tags.items():
        if not _KEY.fullmatch(key):
            raise MarkWriteError(f"MLflow takes no tag of this name: {key[:250]!r}")
        if len(value) > limit:
            raise MarkWriteError(f"the tag {key} has {len(value):,} characters, and MLflow keeps {limit:,}")


def delete_tag(client: MlflowClient, path: str, body: Mapping[str, str]) -> None:
    """Delete a tag, or do nothing if it is gone; raises as :meth:`MlflowClient.get`."""
    try:
        client.send(path, body)
    except ApiError as error:
        if error.code != "RESOURCE_DOES_NOT_EXIST":
            raise


def _ours(key: str, records: frozenset[str]) -> bool:
    return key.startswith(OWN_PREFIX) and key not in USER_KEYS and key not in records
