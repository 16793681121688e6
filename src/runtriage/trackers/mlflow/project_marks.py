"""Our marks on an experiment: tags, a block of its note, and one saved view of its runs page.

The view is wanted as the tag ``runtriage.view`` (see :mod:`~runtriage.trackers.mlflow.view`), which is kept on the
experiment too, so that what was asked for can be read back. A view that a person has changed since is theirs.
"""

from __future__ import annotations

from collections.abc import Mapping

from runtriage.errors import MarkWriteError
from runtriage.model.marks import OWN_PREFIX, Marks, WritePlan
from runtriage.trackers.mlflow.client import ApiError, MlflowClient
from runtriage.trackers.mlflow.marks import TagChange, check_tags, delete_tag, merge_note, note_found, own_tags
from runtriage.trackers.mlflow.view import VIEW_TAG, compile_view, created_at, state_digest
from runtriage.trackers.mlflow.wire import Experiment

VIEW_KEY = f"{OWN_PREFIX}view"
NOTE_RECORD = f"{OWN_PREFIX}kept.note"
VIEW_RECORD = f"{OWN_PREFIX}kept.view"
CURSOR_KEY = f"{OWN_PREFIX}cursor"
"""Says that all the rest is written, and is therefore written last."""

RECORDS = frozenset({NOTE_RECORD, VIEW_RECORD})
VALUE_LIMIT = 20_000
"""Characters an experiment tag holds."""


class ProjectMarks:
    """Our marks on one experiment.

    Parameters
    ----------
    experiment
        The experiment as it is now.
    client
        The server.
    """

    def __init__(self, experiment: Experiment, client: MlflowClient) -> None:
        self._experiment = experiment
        self._tags = experiment.tags
        self._client = client

    def read(self) -> Marks:
        """Return the marks as they are; the view is empty unless it is there, and recorded, as we would write it.

        An empty one is written anew by a plan that wants a view, and removed by one that wants none. A view that a
        person has changed counts as there. So does one of which only our record is left, until nothing wants it.
        """
        tags = own_tags(self._tags, RECORDS)
        left = self._view_is_ours() or VIEW_RECORD in self._tags
        if not self._has_view(tags[VIEW_KEY]) if VIEW_KEY in tags else left:
            tags[VIEW_KEY] = ""
        return Marks(tags=tags, note=note_found(self._tags, NOTE_RECORD))

    def apply(self, plan: WritePlan, *, now_ms: int) -> None:
        """Carry out a plan.

        Parameters
        ----------
        plan
            The changes.
        now_ms
            Milliseconds since the epoch, for the view.

        Raises
        ------
        MarkWriteError
            Something in the plan is not ours or does not fit (nothing is written then), or the server fails.
        AccessRefusedError, SourceUnreachableError
            As :meth:`MlflowClient.get`.
        """
        check_tags(plan, RECORDS, VALUE_LIMIT)
        if plan.put_files or plan.delete_files:
            raise MarkWriteError("an MLflow experiment has no files")
        change = TagChange(dict(plan.set_tags), [key for key in plan.delete_tags if key in self._tags])
        merge_note(change, self._tags, plan, record=NOTE_RECORD, limit=VALUE_LIMIT)
        self._merge_view(change, plan, now_ms)
        try:
            self._write(change.sets, change.deletes)
        except ApiError as error:
            raise MarkWriteError(error.message, where=error.where, hint=error.hint) from error

    def _merge_view(self, change: TagChange, plan: WritePlan, now_ms: int) -> None:
        theirs = VIEW_TAG in self._tags and not self._view_is_ours()
        if VIEW_KEY in plan.set_tags:
            compiled = compile_view(plan.set_tags[VIEW_KEY], created_at(self._tags.get(VIEW_TAG)) or now_ms)
            if len(compiled) > VALUE_LIMIT:
                raise MarkWriteError(f"the view to be saved is too large: MLflow keeps {VALUE_LIMIT:,} characters")
            if not theirs:
                change.put(VIEW_TAG, compiled, self._tags)
                change.put(VIEW_RECORD, state_digest(compiled), self._tags)
        elif VIEW_KEY in plan.delete_tags:
            if not theirs:
                change.put(VIEW_TAG, None, self._tags)
            change.put(VIEW_RECORD, None, self._tags)

    def _has_view(self, wanted: str) -> bool:
        if VIEW_TAG not in self._tags:
            return False
        if not self._view_is_ours():
            return True
        shown = state_digest(self._tags[VIEW_TAG])
        return shown == self._compiled_digest(wanted) == self._tags.get(VIEW_RECORD)

    def _view_is_ours(self) -> bool:
        """Tell whether the view is as we wrote it; the record is written last, so it may lag behind by one writing."""
        if VIEW_TAG not in self._tags:
            return False
        shown = state_digest(self._tags[VIEW_TAG])
        return shown in (self._tags.get(VIEW_RECORD), self._compiled_digest(self._tags.get(VIEW_KEY)))

    def _compiled_digest(self, wanted: str | None) -> str | None:
        try:
            return None if wanted is None else state_digest(compile_view(wanted, 0))
        except MarkWriteError:
            return None

    def _write(self, sets: Mapping[str, str], deletes: list[str]) -> None:
        place = {"experiment_id": self._experiment.id}
        first = {key: value for key, value in sets.items() if key != CURSOR_KEY}
        last = {key: value for key, value in sets.items() if key == CURSOR_KEY}
        self._set(first)
        for key in deletes:
            delete_tag(self._client, "experiments/delete-experiment-tag", {**place, "key": key})
        self._set(last)

    def _set(self, values: Mapping[str, str]) -> None:
        for key, value in values.items():
            body = {"experiment_id": self._experiment.id, "key": key, "value": value}
            self._client.send("experiments/set-experiment-tag", body)
