"""Closed vocabularies: the words reports, marks and the command line share. Each is spelt here and nowhere else."""

from __future__ import annotations

from enum import StrEnum


class RunState(StrEnum):
    """What the tracker says of a run, folded to the distinctions we act on."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    KILLED = "killed"
    UNKNOWN = "unknown"


class Role(StrEnum):
    """What a metric means, whatever it is called. ``layer_grad_norm`` carries the layer's name beside it."""

    LOSS = "loss"
    VAL_LOSS = "val_loss"
    LR = "lr"
    GRAD_NORM = "grad_norm"
    GRAD_NORM_CLIPPED = "grad_norm_clipped"
    CLIP_RATE = "clip_rate"
    LAYER_GRAD_NORM = "layer_grad_norm"
    PARAM_NORM = "param_norm"
    UPDATE_RATIO = "update_ratio"
    LOSS_SCALE = "loss_scale"
    SKIPPED_STEPS = "skipped_steps"
    ATTENTION_LOGIT = "attention_logit"
    TOKENS = "tokens"
    SEQ_LEN = "seq_len"
    DATA_SOURCE = "data_source"
    EPOCH = "epoch"
    STEP = "step"


class Lang(StrEnum):
    """Languages in which reports are written."""

    EN = "en"
    ZH = "zh"


class FindingKind(StrEnum):
    """The forms of an abnormal curve."""

    NON_FINITE = "non_finite"
    LOSS_SPIKE = "loss_spike"
    GRAD_SPIKE = "grad_spike"
    DIVERGENCE = "divergence"
    OSCILLATION = "oscillation"
    STEP_UP = "step_up"
    STEP_DOWN = "step_down"
    PLATEAU = "plateau"
    VANISHING_GRADIENT = "vanishing_gradient"
    CLIP_SATURATION = "clip_saturation"
    LR_DISCONTINUITY = "lr_discontinuity"
    RESUME_DISCONTINUITY = "resume_discontinuity"
    LOSS_SCALE_COLLAPSE = "loss_scale_collapse"
    SCOPE_CHANGE = "scope_change"
    LAYER_IMBALANCE = "layer_imbalance"
    BASELINE_DRIFT = "baseline_drift"
    OVERFIT = "overfit"
    WARMUP_RISE = "warmup_rise"
    LOGGING_GAP = "logging_gap"


class Severity(StrEnum):
    """How much a finding matters, in rising order."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Level(StrEnum):
    """The verdict on a run, in rising order of trouble; ``withheld`` stands outside the order."""

    HEALTHY = "healthy"
    WATCH = "watch"
    SUSPICIOUS = "suspicious"
    BROKEN = "broken"
    WITHHELD = "withheld"


class Outcome(StrEnum):
    """What became of a finding by the end of the history."""

    RECOVERED = "recovered"
    DIVERGED = "diverged"
    ONGOING = "ongoing"


class Explanation(StrEnum):
    """Why a finding is by design and never raises the verdict."""

    LR_DECAY = "lr_decay"
    WARMUP = "warmup"
    DATA_SWITCH = "data_switch"
    EPOCH_BOUNDARY = "epoch_boundary"
    SHARED_BATCH = "shared_batch"
    RESUME = "resume"
    BATCH_NOISE = "batch_noise"


class CauseId(StrEnum):
    """Candidate causes. An id is never reused for another meaning."""

    BAD_BATCH = "bad_batch"
    LR_TOO_LARGE = "lr_too_large"
    LR_TOO_SMALL = "lr_too_small"
    NUMERICAL_OVERFLOW = "numerical_overflow"
    ATTENTION_LOGIT_GROWTH = "attention_logit_growth"
    WEIGHT_GROWTH = "weight_growth"
    BAD_INITIALISATION = "bad_initialisation"
    SCHEDULER_RESET = "scheduler_reset"
    OPTIMIZER_STATE_LOST = "optimizer_state_lost"
    DATA_ORDER_CHANGED = "data_order_changed"
    DATA_SWITCH = "data_switch"
    REPEATED_DATA = "repeated_data"
    MISLABELLED_DATA = "mislabelled_data"
    FROZEN_MODULES = "frozen_modules"
    CAPACITY_OR_DONE = "capacity_or_done"
    CLIP_TOO_LOW = "clip_too_low"
    CLIPPING_HIDES_EXPLOSION = "clipping_hides_explosion"
    LAYER_FAULT = "layer_fault"
    LOGGING_SCOPE_CHANGED = "logging_scope_changed"
    LOSS_REDUCTION_CHANGED = "loss_reduction_changed"
    MODEL_REINITIALISED = "model_reinitialised"
    CODE_BUG = "code_bug"
    UNKNOWN = "unknown"


class BaselineKind(StrEnum):
    """What a run was compared with."""

    COHORT = "cohort"
    SELF = "self"
    NONE = "none"


LEVEL_ORDER: tuple[Level, ...] = (Level.HEALTHY, Level.WATCH, Level.SUSPICIOUS, Level.BROKEN)
"""Levels that can be compared, mildest first; :attr:`Level.WITHHELD` is not among them."""


def at_least(level: Level, threshold: Level) -> bool:
    """Tell whether ``level`` is as bad as ``threshold``; a withheld verdict never is.

    Examples
    --------
    >>> at_least(Level.BROKEN, Level.SUSPICIOUS), at_least(Level.WITHHELD, Level.WATCH)
    (True, False)
    """
    return level in LEVEL_ORDER and LEVEL_ORDER.index(level) >= LEVEL_ORDER.index(threshold)
