"""What may have caused a form: names of causes, and clues with the number of this run."""

from __future__ import annotations

from collections.abc import Mapping

_NAMES: Mapping[str, tuple[str, str]] = {
    "cause.bad_batch": ("Bad batch", "异常 batch"),
    "cause.lr_too_large": ("LR too large", "学习率过大"),
    "cause.lr_too_small": ("LR too small", "学习率过小"),
    "cause.numerical_overflow": ("Numerical overflow", "数值溢出"),
    "cause.attention_logit_growth": ("Attention logit growth", "注意力 logits 增长"),
    "cause.weight_growth": ("Weight growth", "权重膨胀"),
    "cause.bad_initialisation": ("Bad initialisation", "初始化不当"),
    "cause.scheduler_reset": ("Scheduler reset", "学习率调度器被重置"),
    "cause.optimizer_state_lost": ("Optimizer state lost", "优化器状态丢失"),
    "cause.data_order_changed": ("Data order changed", "数据顺序改变"),
    "cause.data_switch": ("Data switch", "数据切换"),
    "cause.repeated_data": ("Repeated data", "数据重复"),
    "cause.mislabelled_data": ("Mislabelled data", "标注错误"),
    "cause.frozen_modules": ("Frozen modules", "模块被冻结"),
    "cause.capacity_or_done": ("Capacity or done", "容量不足或已收敛"),
    "cause.clip_too_low": ("Clip too low", "裁剪阈值过低"),
    "cause.clipping_hides_explosion": ("Clipping hides explosion", "裁剪掩盖了梯度爆炸"),
    "cause.layer_fault": ("Layer fault", "个别层故障"),
    "cause.logging_scope_changed": ("Logging scope changed", "日志统计口径改变"),
    "cause.loss_reduction_changed": ("Loss reduction changed", "损失归约方式改变"),
    "cause.model_reinitialised": ("Model reinitialised", "模型被重新初始化"),
    "cause.code_bug": ("Code bug", "代码缺陷"),
    "cause.unknown": ("Unknown", "原因不明"),
}

_CLUES: Mapping[str, tuple[str, str]] = {
    "clue.grows_ahead": (
        "the grad norm already ran {x:.1f} local sd high over the ten rows before",
        "此前十行中梯度范数已经偏高 {x:.1f} 个局部标准差",
    ),
    "clue.alone": (
        "nothing announced it: grad norm {x:+.1f} local sd over the ten rows before",
        "事前没有征兆：此前十行中梯度范数只偏离 {x:+.1f} 个局部标准差",
    ),
    "clue.with_norm": (
        "the other curve spikes at the same place (z {x:.1f})", "另一条曲线在同一位置也出现尖峰（z 为 {x:.1f}）",
    ),
    "clue.once": ("it happens {x:.0f} time(s) in the run", "整个 run 中只出现 {x:.0f} 次"),
    "clue.often": (
        "{x:.0f} bins of the run hold an excursion at least half as large",
        "整个 run 中有 {x:.0f} 个区间出现幅度不低于其一半的偏离",
    ),
    "clue.stays": ("the level stays {x:.2f} log units up", "水平一直高出 {x:.2f} 个对数单位，没有回落"),
    "clue.norm_stays": ("the norm stays {x:.2f} log units up", "梯度范数一直高出 {x:.2f} 个对数单位，没有回落"),
    "clue.other_lr": (
        "log lr is {x:+.2f} against the cohort's schedule from the start",
        "从一开始，学习率的对数就比对照组的曲线相差 {x:+.2f}",
    ),
    "clue.same_lr": ("the lr is the cohort's (log ratio {x:+.2f})", "学习率与对照组一致（对数比 {x:+.2f}）"),
    "clue.from_start": ("it is there from the first steps", "从最初几步就已存在"),
    "clue.attention": (
        "attention logits rise {x:.2f} log units over the cohort's", "注意力 logits 比对照组高出 {x:.2f} 个对数单位",
    ),
    "clue.settles": (
        "the loss settles {x:.2f} log units up, neither coming back nor running away",
        "损失稳定在高出 {x:.2f} 个对数单位处，既不回落也不继续发散",
    ),
    "clue.keeps_growing": ("and keep growing", "并且仍在继续增长"),
    "clue.norm_jumps": ("the grad norm jumps with it, by {x:.2f} log units", "梯度范数同时跳升 {x:.2f} 个对数单位"),
    "clue.norm_calm": (
        "the grad norm does not move with it ({x:+.2f} log units)", "梯度范数没有随之变化（{x:+.2f} 个对数单位）",
    ),
    "clue.overflows": (
        "the loss scale was halved {x:.0f} times just before",
        "就在此前，损失缩放因子减半了 {x:.0f} 次",
    ),
    "clue.rose": ("it rose {x:.2f} log units over the ten rows before", "此前十行中已上升 {x:.2f} 个对数单位"),
    "clue.sudden": ("the rows before show no rise ({x:+.2f} log units)", "此前各行没有上升（{x:+.2f} 个对数单位）"),
    "clue.first_row": ("it is not finite from the first row on", "从第一行起就不是有限值"),
    "clue.lower_clip": ("the clip value is x {x:.2g} of the cohort's", "裁剪阈值是对照组的 {x:.2g} 倍"),
    "clue.pinned": (
        "the logged norm sits on one value on {x:.0%} of the rows", "{x:.0%} 的记录中，梯度范数停在同一个值上",
    ),
    "clue.explodes": (
        "the norm before clipping is {x:.2f} log units over the cohort's", "裁剪前的范数比对照组高 {x:.2f} 个对数单位",
    ),
    "clue.dead_layer": ("the layer's gradient is next to nothing", "该层的梯度几乎为零"),
    "clue.updates_jump": (
        "the update ratio jumps {x:.2f} log units at unchanged lr and norm",
        "学习率和梯度范数不变，更新/权重比却跳升 {x:.2f} 个对数单位",
    ),
    "clue.epoch_back": ("the epoch counter goes back by {x:.4g}", "epoch 计数回退 {x:.4g}"),
    "clue.began_anew": (
        "the loss is {x:.2f} log units up at once, back where the run began",
        "损失一次跳升 {x:.2f} 个对数单位，回到训练开始时的水平",
    ),
    "clue.val_jumps": (
        "validation jumps by {x:.2f} log units at one point", "验证损失在某一次评估处跳变 {x:.2f} 个对数单位",
    ),
    "clue.halvings": ("{x:.0f} halvings in one short stretch", "短时间内减半 {x:.0f} 次"),
    "clue.loss_factor": (
        "the loss itself changes by a constant {x:.2f} log units", "损失本身变化了一个固定量：{x:.2f} 个对数单位",
    ),
    "clue.norm_factor": (
        "the norm changes by a constant {x:.2f} log units alone",
        "只有梯度范数变化了一个固定量：{x:.2f} 个对数单位",
    ),
}

CAUSES: Mapping[str, tuple[str, str]] = {**_NAMES, **_CLUES}
"""Key to English and Chinese."""
