"""For each cause: how to confirm or refute it, and what to try once it is confirmed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runtriage.model.vocab import CauseId


@dataclass(frozen=True, slots=True)
class Remedy:
    """Checks and remedies of one cause: keys of sentences in the catalogue."""

    verify: tuple[str, ...]
    try_: tuple[str, ...]


REMEDIES: Mapping[CauseId, Remedy] = {
    CauseId.BAD_BATCH: Remedy(("check.batch_replay", "check.batch_samples"), ("try.filter_samples",)),
    CauseId.LR_TOO_LARGE: Remedy(("check.lr_third", "check.update_ratio"), ("try.lower_peak_lr",)),
    CauseId.LR_TOO_SMALL: Remedy(("check.lr_triple", "check.lr_groups"), ("try.cohort_lr",)),
    CauseId.NUMERICAL_OVERFLOW: Remedy(("check.fp32", "check.activations"), ("try.bf16",)),
    CauseId.ATTENTION_LOGIT_GROWTH: Remedy(("check.logits_climb", "check.qk_norm"), ("try.qk_norm",)),
    CauseId.WEIGHT_GROWTH: Remedy(("check.param_norms", "check.weight_decay"), ("try.weight_decay",)),
    CauseId.BAD_INITIALISATION: Remedy(("check.init_scale", "check.other_seed"), ("try.cohort_init",)),
    CauseId.SCHEDULER_RESET: Remedy(("check.scheduler_state", "check.resume_log"), ("try.scheduler_state",)),
    CauseId.OPTIMIZER_STATE_LOST: Remedy(("check.moments", "check.resume_again"), ("try.optimizer_state",)),
    CauseId.DATA_ORDER_CHANGED: Remedy(("check.sample_ids",), ("try.sampler_state",)),
    CauseId.DATA_SWITCH: Remedy(("check.source_per_step", "check.old_source"), ("try.log_source",)),
    CauseId.REPEATED_DATA: Remedy(("check.hash_samples", "check.train_val"), ("try.fix_sampler",)),
    CauseId.MISLABELLED_DATA: Remedy(("check.earlier_checkpoint",), ("try.trace_shard",)),
    CauseId.FROZEN_MODULES: Remedy(("check.requires_grad", "check.zero_layers"), ("try.unfreeze",)),
    CauseId.CAPACITY_OR_DONE: Remedy(("check.final_level",), ("try.nothing_if_done",)),
    CauseId.CLIP_TOO_LOW: Remedy(("check.before_clipping",), ("try.raise_clip",)),
    CauseId.CLIPPING_HIDES_EXPLOSION: Remedy(("check.norm_per_layer", "check.without_layer"), ("try.treat_explosion",)),
    CauseId.LAYER_FAULT: Remedy(("check.one_layer",), ("try.fix_layer",)),
    CauseId.LOGGING_SCOPE_CHANGED: Remedy(("check.scope_factor", "check.norm_by_hand"), ("try.log_contract",)),
    CauseId.LOSS_REDUCTION_CHANGED: Remedy(("check.fixed_batch", "check.reduction_factor"), ("try.fix_reduction",)),
    CauseId.MODEL_REINITIALISED: Remedy(("check.checksum", "check.restart"), ("try.last_checkpoint",)),
    CauseId.CODE_BUG: Remedy(("check.debugger",), ("try.guard",)),
    CauseId.UNKNOWN: Remedy(("check.versions",), ("try.log_more",)),
}
"""Every cause has an entry; a test holds the table to that."""
