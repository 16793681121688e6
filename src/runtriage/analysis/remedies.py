"""For each cause: how to confirm or refute it, and what to try once it is confirmed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runtriage.model.vocab import CauseId


@dataclass(frozen=True, slots=True)
class Remedy:
    """Checks and remedies of one cause, each a sentence."""

    verify: tuple[str, ...]
    try_: tuple[str, ...]


REMEDIES: Mapping[CauseId, Remedy] = {
    CauseId.BAD_BATCH: Remedy(
        ("Replay from the last checkpoint with the same batch, then without: the spike must come back, then not.",
         "Look at the samples of the step: length, empty or garbled text, label range, source."),
        ("Filter the offending samples, or skip the step; keep gradient clipping on.",),
    ),
    CauseId.LR_TOO_LARGE: Remedy(
        ("Replay from before the onset with the lr at a third: the form must weaken or vanish.",
         "Compare update-to-weight ratio and grad norm with a healthy sibling just before the onset."),
        ("Lower the peak lr 2 to 5 times, or lengthen the warm-up.",),
    ),
    CauseId.LR_TOO_SMALL: Remedy(
        ("Raise the lr 3 times from an early checkpoint for some hundred steps: the loss must fall faster.",
         "Check that the logged lr is what the optimizer's parameter groups really hold."),
        ("Restore the cohort's lr; check warm-up length and decay target.",),
    ),
    CauseId.NUMERICAL_OVERFLOW: Remedy(
        (
            "Replay the step in fp32 (or bf16): it must stay finite.",
            "Log the largest activation and attention logit around the step."
        ),
        ("Use bf16, or a lower initial loss scale; normalise queries and keys; clip the logits.",),
    ),
    CauseId.ATTENTION_LOGIT_GROWTH: Remedy(
        ("Log the largest attention logit per layer: it must climb ahead of the loss.",
         "Replay with query/key normalisation from the same checkpoint: the climb must stop."),
        ("Normalise queries and keys, or cap the logits; lower the lr of the attention projections.",),
    ),
    CauseId.WEIGHT_GROWTH: Remedy(
        ("Compare parameter norms with a healthy sibling at the same step, layer by layer.",
         "Check that weight decay reaches the parameters that grow."),
        ("Restore weight decay or normalisation; lower the lr from the last healthy checkpoint.",),
    ),
    CauseId.BAD_INITIALISATION: Remedy(
        (
            "Compare activation and gradient scale per layer at step 0 with a healthy sibling.",
            "Restart with another seed: the form must change."
        ),
        ("Restore the cohort's initialisation; check residual scaling and which weights a checkpoint really loaded.",),
    ),
    CauseId.SCHEDULER_RESET: Remedy(
        ("Compare the scheduler's last epoch or step in the checkpoint with the log at the jump.",
         "Look for a resume at that step: the job log tells."),
        ("Restore the scheduler state on resume, or set its step explicitly before the first update.",),
    ),
    CauseId.OPTIMIZER_STATE_LOST: Remedy(
        ("Check that the checkpoint holds the optimizer's moments and that they were loaded (no missing-key warning).",
         "Resume once more with and without the optimizer state: only without it the form must come back."),
        ("Resume from a checkpoint with optimizer state, or warm up again for some hundred steps.",),
    ),
    CauseId.DATA_ORDER_CHANGED: Remedy(
        ("Compare sample ids or the sampler's state just before and after the seam.",),
        ("Save and restore the sampler (epoch, index, generator state) with the checkpoint.",),
    ),
    CauseId.DATA_SWITCH: Remedy(
        ("Log the data source per step; evaluate the checkpoints before and after on one fixed batch of each source.",
         "Validation on the old source must not move at the step if only the mixture did."),
        ("If it was planned, log it so that it is explained next time; else restore the mixture.",),
    ),
    CauseId.REPEATED_DATA: Remedy(
        (
            "Hash the sample ids of a window and look for repeats.",
            "Training loss falls and validation does not: compare the two."
        ),
        ("Fix the sampler, add data, or stop earlier.",),
    ),
    CauseId.MISLABELLED_DATA: Remedy(
        ("Score a sample of recent batches with an earlier checkpoint: its loss on them must be high as well.",),
        ("Trace the shard that came in at the onset and take it out.",),
    ),
    CauseId.FROZEN_MODULES: Remedy(
        (
            "Count the parameters with requires_grad and compare with a healthy sibling.",
            "Look for layers whose gradient is exactly zero.",
        ),
        ("Unfreeze, or rebuild the optimizer after changing which parameters train; check adapter rank and scale.",),
    ),
    CauseId.CAPACITY_OR_DONE: Remedy(
        ("Compare the final level with the cohort's and with validation: at the same level it is simply done.",),
        ("Nothing if it is done; otherwise a larger model or more data.",),
    ),
    CauseId.CLIP_TOO_LOW: Remedy(
        ("Log the norm before clipping and the share of clipped steps; compare the limit with the cohort's.",),
        ("Raise the clip value to about the 90 % point of the healthy norm.",),
    ),
    CauseId.CLIPPING_HIDES_EXPLOSION: Remedy(
        ("Look at the norm before clipping, per layer, from some hundred steps before the onset.",
         "Replay without the layer that carries it, or with half the lr: the norm must come down."),
        ("Treat what explodes (data, layer, lr): clipping only hides it.",),
    ),
    CauseId.LAYER_FAULT: Remedy(
        ("Log grad norms per layer around the onset: one layer must carry the change.",),
        ("Check that layer's initialisation, precision, lr group and inputs.",),
    ),
    CauseId.LOGGING_SCOPE_CHANGED: Remedy(
        ("Compare the factor with world size, its square root and accumulation steps; ask what the logged norm is of.",
         "Compute the norm once by hand on a checkpoint."),
        ("Log the metric contract (rank or global, before or after clipping) with the run.",),
    ),
    CauseId.LOSS_REDUCTION_CHANGED: Remedy(
        ("Evaluate one fixed batch with the code before and after: the factor must show there.",
         "Compare the factor with accumulation steps, sequence length and world size."),
        ("Fix the reduction, and log it with the run.",),
    ),
    CauseId.MODEL_REINITIALISED: Remedy(
        (
            "Compare a parameter checksum before and after the step.",
            "Look in the job log for a restart without a checkpoint."
        ),
        ("Resume from the last checkpoint before the step.",),
    ),
    CauseId.CODE_BUG: Remedy(
        ("Run one batch in a debugger: masks that remove every token, division by zero, a logarithm of zero.",),
        ("Guard the denominator; assert that the loss is finite before the update.",),
    ),
    CauseId.UNKNOWN: Remedy(
        ("Compare config, code version and data version with a healthy sibling; replay from before the onset.",),
        ("Log more around such steps: per-layer norms, sample ids, data source.",),
    ),
}
"""Every cause has an entry; a test holds the table to that."""
