"""What was seen in a curve: evidence of the detectors, and the one sentence of a verdict."""

from __future__ import annotations

from collections.abc import Mapping

SEEN: Mapping[str, tuple[str, str]] = {
    "against.schedule": ("the cohort's schedule", "对照组学习率曲线"),
    "against.neighbours": ("its own neighbours", "自身前后记录"),
    "clip.lower": (
        "no clipped norm passes x {factor:.2g} of the cohort's largest, and clipping fires nearly always",
        "裁剪后的范数最大只到对照组最大值的 {factor:.2g} 倍，且几乎每一步都触发裁剪",
    ),
    "clip.pinned": (
        "the logged norm is {top:.4g} on {share:.0%} of the rows: it is logged after clipping, which always fires",
        "{share:.0%} 的记录中范数恒为 {top:.4g}：记录的是裁剪之后的值，而裁剪总在触发",
    ),
    "clip.always": (
        "clipping fires on nearly every row, on {usual:.0%} of the cohort's; norm x {factor:.2g}",
        "几乎每一步都触发裁剪，而对照组只有 {usual:.0%}；范数为对照组的 {factor:.2g} 倍",
    ),
    "gap.hole": (
        "no row between steps {start} and {end}, where one in {cadence:g} steps is usual",
        "第 {start} 步与第 {end} 步之间没有任何记录，而通常每 {cadence:g} 步就有一行",
    ),
    "layer.off": (
        "{layer}: grad norm x {factor:.2g} against the other layers, compared with {members} runs, z {z:.1f}",
        "{layer}：以 {members} 个 run 为参照，梯度范数与其他层之比变为 {factor:.2g} 倍，z 为 {z:.1f}",
    ),
    "lr.jump": (
        "lr x {factor:.3g} against {against} at step {step}",
        "第 {step} 步的学习率是{against}的 {factor:.3g} 倍",
    ),
    "level.against": (
        "{role} x {factor:.3g} against {members} runs of the same config, z {z:.1f}",
        "{role}为同配置 {members} 个 run 的 {factor:.3g} 倍，z 为 {z:.1f}",
    ),
    "level.moves": (
        (
            "the level of the loss moves x {factor:.3g} against {members} runs of the same config within a few bins, "
            "z {z:.1f}, and stays"
        ),
        "相对同配置的 {members} 个 run，损失水平在几个区间之内变为原来的 {factor:.3g} 倍（z 为 {z:.1f}），此后保持不变",
    ),
    "joint.norm": (
        "the grad norm departs from the same runs at the same place, z {z:.1f}",
        "同一处的梯度范数也偏离这些 run，z 为 {z:.1f}",
    ),
    "loss.at_once": (
        "x {factor:.3g} within a few rows of step {step}",
        "在第 {step} 步前后几行之内变为 {factor:.3g} 倍",
    ),
    "loss.gradual": ("builds up gradually from about step {step}", "大约从第 {step} 步起逐渐累积"),
    "scale.halved": (
        (
            "the loss scale of {before:g} is halved {count} times within {window:.0f} steps; the cohort's busiest such "
            "stretch has {most}"
        ),
        "损失缩放因子从 {before:g} 起，在 {window:.0f} 步之内减半 {count} 次；对照组同样长的区间里最多 {most} 次",
    ),
    "nan.rows": ("{count} of {rows} rows of {role} are not finite", "{role}的 {rows} 行记录中有 {count} 行不是有限值"),
    "nan.passing": (
        "{count} of {rows} rows of the loss are not finite", "损失的 {rows} 行记录中有 {count} 行不是有限值",
    ),
    "nan.masked": (
        "{count} of them were logged as 0.0 beside a grad norm that is not finite",
        "其中 {count} 行被记成 0.0，而同一步的梯度范数不是有限值",
    ),
    "norm.lag": (
        "the loss lags: x {factor:.3g} of the cohort's over the second half",
        "损失落后：训练后半程为对照组的 {factor:.3g} 倍",
    ),
    "norm.vanished": (
        "grad norm x {factor:.2g} of the cohort's for {count} of {bins} bins",
        "{bins} 个区间中有 {count} 个区间的梯度范数只有对照组的 {factor:.2g} 倍",
    ),
    "swing": (
        (
            "noise of the loss x {factor:.2g}, {share:.0%} of it in one spectral line, correlation of neighbouring "
            "rows {lag1:+.2f}"
        ),
        "损失的噪声变为 {factor:.2g} 倍，其中 {share:.0%} 集中在一条谱线上，相邻两行的相关系数为 {lag1:+.2f}",
    ),
    "seam.steps": (
        (
            "the step goes back {times} time(s), first to {step}; {duplicates} steps were logged more than once and "
            "the last write was kept"
        ),
        "step 回退 {times} 次，第一次退到 {step}；有 {duplicates} 个 step 被重复记录，保留最后一次写入的值",
    ),
    "seam.epoch": (
        "the epoch counter goes back from {before:.4g} to {after:.4g}", "epoch 计数从 {before:.4g} 退回到 {after:.4g}",
    ),
    "seam.anew": (
        "loss x {factor:.3g} in one row, back to where the run began (x {initial:.2g} of its initial value)",
        "损失在一行之内变为 {factor:.3g} 倍，回到训练开始时的水平（为初始值的 {initial:.2g} 倍）",
    ),
    "seam.updates": (
        "update ratio x {factor:.2g} in one row at unchanged lr and norm, then decaying",
        "学习率和梯度范数不变，更新/权重比却在一行之内变为 {factor:.2g} 倍，随后逐渐回落",
    ),
    "own.shift": (
        "loss x {factor:.3g} at step {step} and stays, {z:.1f} of its own sd",
        "损失在第 {step} 步变为 {factor:.3g} 倍并保持，幅度为自身标准差的 {z:.1f} 倍",
    ),
    "own.rise": (
        "loss x {factor:.3g} above its own minimum, {noises:.0f} of the noise before it; x {end:.3g} at the end",
        "损失升到自身最低点的 {factor:.3g} 倍，幅度为此前噪声的 {noises:.0f} 倍；结束时为 {end:.3g} 倍",
    ),
    "own.short": (
        "loss x {factor:.3g} over its minimum in a history of {rows} rows",
        "在仅有 {rows} 行的历史中，损失升到自身最低点的 {factor:.3g} 倍",
    ),
    "length.changes": (
        "the sequence length changes x {factor:.3g} at step {step} and stays",
        "序列长度在第 {step} 步变为 {factor:.3g} 倍并保持",
    ),
    "spike.rise": (
        "{role} x {factor:.3g} at step {step}, {z:.1f} local standard deviations",
        "{role}在第 {step} 步升到 {factor:.3g} 倍，偏离 {z:.1f} 个局部标准差",
    ),
    "spike.shared": (
        "{sharing} of {holders} siblings have the same excursion at this step",
        "{holders} 个同组 run 中有 {sharing} 个在这一步出现同样的偏离",
    ),
    "spike.places": ("shared excursions at steps {steps}", "各 run 共同偏离的步：{steps}"),
    "bursts.count": (
        "{count} bursts of z {z:.1f} or more from step {step} on, more than the cohort's tail allows",
        "自第 {step} 步起出现 {count} 次 z 不低于 {z:.1f} 的突发，超出同组 run 的尾部分布",
    ),
    "spike.other": ("{other} z {z:.1f} at the same place", "同一位置上{other}的 z 为 {z:.1f}"),
    "val.gap": (
        "validation over training x {factor:.3g} against the cohort's, z {z:.1f}",
        "验证损失与训练损失之比为对照组的 {factor:.3g} 倍，z 为 {z:.1f}",
    ),
    "val.both": (
        "training x {train:.3g}, validation x {val:.3g} of the cohort's",
        "训练损失为对照组的 {train:.3g} 倍，验证损失为对照组的 {val:.3g} 倍",
    ),
    "val.leaves": (
        "validation leaves the cohort by x {factor:.3g} in one step while training goes x {train:.3g} below it",
        "验证损失在相邻两次评估之间偏离到对照组的 {factor:.3g} 倍，同时训练损失降到对照组的 {train:.3g} 倍",
    ),
    "warm.rise": (
        "loss x {factor:.3g} above its own minimum while the lr warms up; the cohort's keeps falling",
        "学习率预热期间损失升到自身最低点的 {factor:.3g} 倍，而对照组一直在下降",
    ),
    "with_it": (
        "with it: {kind} in {role} from step {start} (z {z:.1f})",
        "伴随现象：{kind}（{role}，自第 {start} 步起，z 为 {z:.1f}）",
    ),
    "reason.cohort": ("{members} runs of the same config", "同配置的 {members} 个 run"),
    "reason.past": ("its own past", "自身历史"),
    "reason.within": ("Within the band of {against}.", "处于{against}的正常范围之内。"),
    "reason.explained": (
        "Within the band of {against}; a {kind_words} at step {step} is explained by {why_words}.",
        "处于{against}的正常范围之内；第 {step} 步的{kind_words}可由{why_words}解释。",
    ),
    "reason.found": (
        "{title} from step {step}{end}, against {against}{more}.",
        "自第 {step} 步起出现{title}{end}；比较对象：{against}{more}。",
    ),
    "reason.outcome": (", {outcome}", "，{outcome}"),
    "reason.more": ("; {count} more", "；另有 {count} 项发现"),
    "reason.form": ("{kind_words} in {role_words}", "{kind_words}（{role_words}）"),
    "reason.non_finite": ("{role_words} not finite", "非有限值（{role_words}）"),
    "reason.lr": ("jump of the learning rate", "学习率突变"),
    "reason.seam": ("seam of a resume in {role_words}", "续训不连续（{role_words}）"),
    "withheld.no_loss": ("No training loss is logged.", "没有记录训练损失。"),
    "withheld.failed": ("The run could not be judged: {why}", "无法判断这个 run：{why}"),
    "reason.unchanged": ("Unchanged since it was judged.", "自上次判断以来没有变化。"),
    "withheld.few": (
        "The loss has {rows} row(s); at least {least} are needed.", "损失只有 {rows} 行记录，至少需要 {least} 行。",
    ),
    "axis.true": (
        "the step axis is read from {name}, not from the tracker's row counter",
        "step 轴取自 {name}，而不是实验平台的行计数",
    ),
    "wanted.loss": (
        "the training loss is not logged: nothing can be judged without it", "没有记录训练损失，因此无从判断",
    ),
    "wanted.grad_norm": (
        "the grad norm before clipping is not logged: explosions show only once the loss moves",
        "没有记录裁剪前的梯度范数：梯度爆炸要等到损失变化时才会显现",
    ),
    "wanted.lr": (
        "the learning rate is not logged: schedule faults and planned drops cannot be told apart",
        "没有记录学习率：无法区分学习率曲线出错与计划内的衰减",
    ),
    "formed.learned": ("learned baseline of equal config", "由相同配置的 run 学得的基线"),
    "formed.siblings": ("other runs of equal config in this source", "同一来源中相同配置的其他 run"),
}
"""Key to English and Chinese."""
