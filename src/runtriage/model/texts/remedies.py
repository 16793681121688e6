"""How to check a cause, and what to try once it is confirmed."""

from __future__ import annotations

from collections.abc import Mapping

_CHECKS: Mapping[str, tuple[str, str]] = {
    "check.batch_replay": (
        "Replay from the last checkpoint with the same batch, then without: the spike must come back, then not.",
        "从上一个检查点重放：带上同一个 batch 时尖峰应当重现，去掉它则不应出现。",
    ),
    "check.batch_samples": (
        "Look at the samples of the step: length, empty or garbled text, label range, source.",
        "查看这一步的样本：长度、空文本或乱码、标签范围、数据来源。",
    ),
    "check.lr_third": (
        "Replay from before the onset with the lr at a third: the form must weaken or vanish.",
        "从异常开始之前重放，学习率降为三分之一：异常应当减弱或消失。",
    ),
    "check.update_ratio": (
        "Compare update-to-weight ratio and grad norm with a healthy sibling just before the onset.",
        "与健康的同组 run 比较异常开始前的更新/权重比和梯度范数。",
    ),
    "check.lr_triple": (
        "Raise the lr 3 times from an early checkpoint for some hundred steps: the loss must fall faster.",
        "从较早的检查点起把学习率提高到 3 倍，训练几百步：损失应当下降得更快。",
    ),
    "check.lr_groups": (
        "Check that the logged lr is what the optimizer's parameter groups really hold.",
        "核对记录的学习率是否就是优化器各参数组实际使用的值。",
    ),
    "check.fp32": (
        "Replay the step in fp32 (or bf16): it must stay finite.", "用 fp32（或 bf16）重放这一步：结果应当保持有限。",
    ),
    "check.activations": (
        "Log the largest activation and attention logit around the step.",
        "记录这一步前后激活值和注意力 logits 的最大值。",
    ),
    "check.logits_climb": (
        "Log the largest attention logit per layer: it must climb ahead of the loss.",
        "逐层记录注意力 logits 的最大值：它应当先于损失上升。",
    ),
    "check.qk_norm": (
        "Replay with query/key normalisation from the same checkpoint: the climb must stop.",
        "从同一检查点重放并对 query/key 做归一化（QK-norm）：上升应当停止。",
    ),
    "check.param_norms": (
        "Compare parameter norms with a healthy sibling at the same step, layer by layer.",
        "与健康的同组 run 在同一步逐层比较参数范数。",
    ),
    "check.weight_decay": (
        "Check that weight decay reaches the parameters that grow.",
        "确认权重衰减（weight decay）作用到了正在膨胀的参数。",
    ),
    "check.init_scale": (
        "Compare activation and gradient scale per layer at step 0 with a healthy sibling.",
        "在第 0 步与健康的同组 run 逐层比较激活值和梯度的量级。",
    ),
    "check.other_seed": (
        "Restart with another seed: the form must change.",
        "换一个随机种子重新启动：异常的形态应当改变。",
    ),
    "check.scheduler_state": (
        "Compare the scheduler's last epoch or step in the checkpoint with the log at the jump.",
        "把检查点里学习率调度器的 last_epoch 或 step 与突变处的日志对照。",
    ),
    "check.resume_log": ("Look for a resume at that step: the job log tells.", "查作业日志：这一步是否发生过续训。"),
    "check.moments": (
        "Check that the checkpoint holds the optimizer's moments and that they were loaded (no missing-key warning).",
        "确认检查点里存有优化器的一阶、二阶动量，并且已被加载（没有 missing key 警告）。",
    ),
    "check.resume_again": (
        "Resume once more with and without the optimizer state: only without it the form must come back.",
        "分别带着和不带优化器状态再续训一次：只有不带时异常才应当重现。",
    ),
    "check.sample_ids": (
        "Compare sample ids or the sampler's state just before and after the seam.",
        "比较接缝前后的样本 id 或采样器状态。",
    ),
    "check.source_per_step": (
        "Log the data source per step; evaluate the checkpoints before and after on one fixed batch of each source.",
        "逐步记录数据来源；用每个来源的一个固定 batch 评估前后两个检查点。",
    ),
    "check.old_source": (
        "Validation on the old source must not move at the step if only the mixture did.",
        "如果只是数据配比改变，旧数据源上的验证损失在这一步不应变化。",
    ),
    "check.hash_samples": (
        "Hash the sample ids of a window and look for repeats.", "对一段区间的样本 id 做哈希，查找重复。",
    ),
    "check.train_val": (
        "Training loss falls and validation does not: compare the two.", "训练损失下降而验证损失不降：对照两者。",
    ),
    "check.earlier_checkpoint": (
        "Score a sample of recent batches with an earlier checkpoint: its loss on them must be high as well.",
        "用较早的检查点给近期的若干 batch 打分：其损失也应当偏高。",
    ),
    "check.requires_grad": (
        "Count the parameters with requires_grad and compare with a healthy sibling.",
        "统计 requires_grad 的参数量，并与健康的同组 run 比较。",
    ),
    "check.zero_layers": ("Look for layers whose gradient is exactly zero.", "查找梯度恰好为零的层。"),
    "check.final_level": (
        "Compare the final level with the cohort's and with validation: at the same level it is simply done.",
        "把最终水平与对照组及验证损失比较：水平相同就说明只是已经收敛。",
    ),
    "check.before_clipping": (
        "Log the norm before clipping and the share of clipped steps; compare the limit with the cohort's.",
        "记录裁剪前的范数和被裁剪的步数占比；把裁剪阈值与对照组比较。",
    ),
    "check.norm_per_layer": (
        "Look at the norm before clipping, per layer, from some hundred steps before the onset.",
        "从异常开始前几百步起，逐层查看裁剪前的范数。",
    ),
    "check.without_layer": (
        "Replay without the layer that carries it, or with half the lr: the norm must come down.",
        "去掉（或冻结）引起异常的层重放，或把学习率减半重放：范数应当降下来。",
    ),
    "check.one_layer": (
        "Log grad norms per layer around the onset: one layer must carry the change.",
        "记录异常开始前后逐层的梯度范数：变化应当集中在某一层。",
    ),
    "check.scope_factor": (
        "Compare the factor with world size, its square root and accumulation steps; ask what the logged norm is of.",
        "把倍数与 world size、其平方根以及梯度累积步数比较；弄清记录的范数是对什么求的。",
    ),
    "check.norm_by_hand": ("Compute the norm once by hand on a checkpoint.", "在某个检查点上手动计算一次范数。"),
    "check.fixed_batch": (
        "Evaluate one fixed batch with the code before and after: the factor must show there.",
        "用改动前后的代码各评估同一个固定 batch：倍数应当在这里出现。",
    ),
    "check.reduction_factor": (
        "Compare the factor with accumulation steps, sequence length and world size.",
        "把倍数与梯度累积步数、序列长度和 world size 比较。",
    ),
    "check.checksum": ("Compare a parameter checksum before and after the step.", "比较这一步前后参数的校验和。"),
    "check.restart": (
        "Look in the job log for a restart without a checkpoint.", "查作业日志：是否有未加载检查点的重启。",
    ),
    "check.debugger": (
        "Run one batch in a debugger: masks that remove every token, division by zero, a logarithm of zero.",
        "在调试器里跑一个 batch：排查屏蔽掉全部 token 的 mask、除以零、对零取对数。",
    ),
    "check.versions": (
        "Compare config, code version and data version with a healthy sibling; replay from before the onset.",
        "与健康的同组 run 比较配置、代码版本和数据版本；从异常开始之前重放。",
    ),
}

_REMEDIES: Mapping[str, tuple[str, str]] = {
    "try.filter_samples": (
        "Filter the offending samples, or skip the step; keep gradient clipping on.",
        "过滤有问题的样本，或跳过这一步；保持梯度裁剪开启。",
    ),
    "try.lower_peak_lr": (
        "Lower the peak lr 2 to 5 times, or lengthen the warm-up.", "把峰值学习率降低 2 到 5 倍，或延长预热。",
    ),
    "try.cohort_lr": (
        "Restore the cohort's lr; check warm-up length and decay target.",
        "恢复对照组的学习率；检查预热长度和衰减终点。",
    ),
    "try.bf16": (
        "Use bf16, or a lower initial loss scale; normalise queries and keys; clip the logits.",
        "改用 bf16，或降低损失缩放因子的初值；对 query/key 做归一化；对 logits 做截断。",
    ),
    "try.qk_norm": (
        "Normalise queries and keys, or cap the logits; lower the lr of the attention projections.",
        "对 query/key 做归一化，或给 logits 设上限；降低注意力投影层的学习率。",
    ),
    "try.weight_decay": (
        "Restore weight decay or normalisation; lower the lr from the last healthy checkpoint.",
        "恢复权重衰减或归一化；从最近的健康检查点起降低学习率。",
    ),
    "try.cohort_init": (
        "Restore the cohort's initialisation; check residual scaling and which weights a checkpoint really loaded.",
        "恢复对照组的初始化方式；检查残差缩放，以及检查点实际加载了哪些权重。",
    ),
    "try.scheduler_state": (
        "Restore the scheduler state on resume, or set its step explicitly before the first update.",
        "续训时恢复学习率调度器状态，或在第一次更新之前显式设置它的 step。",
    ),
    "try.optimizer_state": (
        "Resume from a checkpoint with optimizer state, or warm up again for some hundred steps.",
        "从带优化器状态的检查点续训，或重新预热几百步。",
    ),
    "try.sampler_state": (
        "Save and restore the sampler (epoch, index, generator state) with the checkpoint.",
        "把采样器（epoch、下标、随机数发生器状态）随检查点一起保存和恢复。",
    ),
    "try.log_source": (
        "If it was planned, log it so that it is explained next time; else restore the mixture.",
        "如果是计划内的切换，请记入日志，下次便能自动解释；否则恢复原来的数据配比。",
    ),
    "try.fix_sampler": ("Fix the sampler, add data, or stop earlier.", "修复采样器、增加数据，或提前停止。"),
    "try.trace_shard": (
        "Trace the shard that came in at the onset and take it out.", "找出异常开始时引入的数据分片并剔除。",
    ),
    "try.unfreeze": (
        "Unfreeze, or rebuild the optimizer after changing which parameters train; check adapter rank and scale.",
        "解除冻结，或在改变可训练参数之后重建优化器；检查 adapter 的秩和缩放。",
    ),
    "try.nothing_if_done": (
        "Nothing if it is done; otherwise a larger model or more data.",
        "如果已经收敛，无需处理；否则换更大的模型或增加数据。",
    ),
    "try.raise_clip": (
        "Raise the clip value to about the 90 % point of the healthy norm.",
        "把裁剪阈值提高到健康梯度范数的 90 % 分位附近。",
    ),
    "try.treat_explosion": (
        "Treat what explodes (data, layer, lr): clipping only hides it.",
        "处理爆炸的根源（数据、层、学习率）：裁剪只是把它掩盖起来。",
    ),
    "try.fix_layer": (
        "Check that layer's initialisation, precision, lr group and inputs.",
        "检查该层的初始化、精度、学习率分组和输入。",
    ),
    "try.log_contract": (
        "Log the metric contract (rank or global, before or after clipping) with the run.",
        "把指标口径（单 rank 还是全局，裁剪前还是裁剪后）随 run 一起记录。",
    ),
    "try.fix_reduction": ("Fix the reduction, and log it with the run.", "修正归约方式，并随 run 一起记录。"),
    "try.last_checkpoint": ("Resume from the last checkpoint before the step.", "从这一步之前的最后一个检查点续训。"),
    "try.guard": (
        "Guard the denominator; assert that the loss is finite before the update.",
        "保护分母不为零；在更新之前断言损失为有限值。",
    ),
    "try.log_more": (
        "Log more around such steps: per-layer norms, sample ids, data source.",
        "在这类步附近多记录一些信息：逐层范数、样本 id、数据来源。",
    ),
}

REMEDIES: Mapping[str, tuple[str, str]] = {**_CHECKS, **_REMEDIES}
"""Key to English and Chinese."""
