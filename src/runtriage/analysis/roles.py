"""What a metric means, from what it is called.

A table of patterns with precedence: the first pattern that matches a normalised name decides the role, and among
several metrics with one role the pattern that stands higher wins (so ``loss`` beats ``train_loss_epoch``). Spellings
were counted over some thousands of public runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from runtriage.model.vocab import Role

_SEPARATORS = re.compile(r"[\s\-./:]+")

_TABLE: tuple[tuple[Role, str], ...] = (
    (Role.STEP, r"(train_|trainer_)?global_step|_step|iter|iteration|num_updates|current_steps|step"),
    (Role.EPOCH, r"(train_)?epochs?"),
    (
        Role.VAL_LOSS,
        r"(eval|val|valid|validation|dev)_loss|loss_(eval|val|valid|validation)|(lm_loss_)?validation_loss|tel"
    ),
    (Role.VAL_LOSS, r"test_loss"),
    (Role.LOSS, r"loss|lm_loss|train_loss|train_loss_step|training_loss|loss_train|total_loss|losses_total_loss|trl"),
    (Role.LOSS, r"train_lm_loss|train_total_loss|train_loss_local|train_loss_total"),
    (Role.LOSS, r"train_train_loss|train_loss_epoch"),
    (Role.LR, r"lr|learning_rate|train_lr|train_learning_rate|optim_lr"),
    (Role.LR, r"lr_(adam|adamw|sgd|pg0|group0|0).*|(train_)?lr_0"),
    (Role.GRAD_NORM_CLIPPED, r"(train_)?(grad_?norm|gnorm)_(post_?clip|clipped|after_clip.*)|clipped_grad_?norm"),
    (Role.GRAD_NORM, r"(train_)?(grad_?norm|gradient_norm|gnorm|global_grad_norm|grad_norm_total)"),
    (
        Role.GRAD_NORM,
        r"(train_|optim_)?(grad_?norm|total_grad_norm)_(pre_?clip|unclipped|before_clip.*)|total_grad_norm"
    ),
    (Role.GRAD_NORM, r"(train_)?grad_norm_(square|squared|sq)"),
    (Role.CLIP_RATE, r"(train_)?(clip_fired|clip_rate|clipped|clip_frac(tion)?|clip_coef_fired|grad_clipped)"),
    (Role.LAYER_GRAD_NORM, r"(train_)?(grad_norms?|gradient_norms?|gradients?)_(?P<layer>.+)"),
    (Role.PARAM_NORM, r"(train_)?(param(eter)?s?_norm|weight_norm|model_norm)"),
    (Role.UPDATE_RATIO, r"(train_)?(update_ratio|update_to_weight(_ratio)?|update_weight_ratio|update_norm_ratio)"),
    (Role.LOSS_SCALE, r"(train_)?(loss_scale|grad_scale|scaler_scale|amp_scale)"),
    (Role.SKIPPED_STEPS, r"(number_of_)?skipped_(steps?|iterations)|overflow(_steps)?|skipped"),
    (Role.ATTENTION_LOGIT, r"(train_)?(attn|attention)_logits?(_max)?|max_attn(_logits?)?"),
    (Role.TOKENS, r"(consumed|total|train|seen)_tokens|tokens(_seen)?|num_tokens|consumed_samples"),
    (Role.SEQ_LEN, r"(train_)?(seq(uence)?_?len(gth)?(_max)?|actual_seqlen)"),
    (Role.DATA_SOURCE, r"(train_)?(data_source|dataset_id|data_stage|curriculum_stage)"),
)
_COMPILED = tuple((role, re.compile(pattern)) for role, pattern in _TABLE)
_SQUARED = re.compile(r"norm_(square|squared|sq)$")


def normalise(name: str) -> str:
    """Fold case and separators: ``lm loss``, ``LM-Loss`` and ``lm_loss`` are one name.

    Examples
    --------
    >>> normalise("train/Grad-Norm")
    'train_grad_norm'
    """
    return _SEPARATORS.sub("_", name.strip().lower()).strip("_") or name


def role_of(name: str, overrides: Mapping[str, str] | None = None) -> tuple[str, int]:
    """Return the role of a metric name and its precedence (smaller is better); ``("", -1)`` for none.

    Parameters
    ----------
    name
        Metric name as logged.
    overrides
        Exact names to roles; they beat the table.
    """
    if overrides and name in overrides:
        return overrides[name], 0
    folded = name if name == "_step" else normalise(name)
    for rank, (role, pattern) in enumerate(_COMPILED, start=1):
        if match := pattern.fullmatch(folded):
            if role is Role.LAYER_GRAD_NORM:
                return f"{role}/{match['layer']}", rank
            return role, rank
    return "", -1


def is_squared(name: str) -> bool:
    """Tell whether a norm is logged squared (``grad_norm_square``); its logarithm is then halved."""
    return _SQUARED.search(normalise(name)) is not None
