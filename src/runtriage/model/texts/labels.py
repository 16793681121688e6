"""Headings, labels and the small words between names and numbers: reports, tables, pictures."""

from __future__ import annotations

from collections.abc import Mapping

_WORDS: Mapping[str, tuple[str, str]] = {
    "word.colon": (": ", "："),
    "word.semicolon": ("; ", "；"),
    "word.comma": (", ", "，"),
    "word.from": ("from step {start} on", "自第 {start} 步起"),
    "word.at": ("at step {start}", "第 {start} 步"),
    "word.span": ("from step {start} to {end}", "第 {start} 步至第 {end} 步"),
    "word.z_unknown": ("z unknown", "z 未知"),
    "word.beyond": ("beyond any scale", "超出任何尺度"),
    "word.under": ("under 0.001 %", "低于 0.001 %"),
    "word.run": ("{count} run of the same config", "同配置的 {count} 个 run"),
    "word.runs": ("{count} runs of the same config", "同配置的 {count} 个 run"),
    "word.past": ("its own past", "自身历史"),
    "word.nothing": ("nothing", "无"),
    "word.tally": ("{count} {level}", "{count} 个{level}"),
    "word.outcome": (", {outcome}", "，{outcome}"),
    "word.more": (", {count} more", "，另有 {count} 项"),
    "word.candidate": ("… {count} more candidate", "…… 另有 {count} 个候选原因"),
    "word.candidates": ("… {count} more candidates", "…… 另有 {count} 个候选原因"),
    "word.finding": ("… {count} more finding", "…… 另有 {count} 项发现"),
    "word.findings": ("… {count} more findings", "…… 另有 {count} 项发现"),
    "word.other_run": ("… {count} more run", "…… 另有 {count} 个 run"),
    "word.other_runs": ("… {count} more runs", "…… 另有 {count} 个 run"),
    "word.what": ("{title} in {metric} {span}", "{metric} {span}：{title}"),
    "word.named": ("{meaning} ({metric}{scale})", "{meaning}（{metric}{scale}）"),
    "word.log": (", log", "，对数坐标"),
    "word.kind": ("{kind_words}", "{kind_words}"),
    "word.part": ("{name} of {layer}", "{name} {layer}"),
}

_TEXT: Mapping[str, tuple[str, str]] = {
    "text.by_design": (
        "By design: {title} in {metric} {span}: {why}.", "符合预期：{metric} {span}的{title}（{why}）。",
    ),
    "text.mark": ("{number} {title}, step {step}", "{number} {title}，第 {step} 步"),
    "text.step": ("step {step}", "第 {step} 步"),
    "text.where": (" in {metric} {span}{outcome}, {size}", "：{metric}，{span}{outcome}，{size}"),
    "text.seen": ("seen", "现象"),
    "text.because": ("because", "依据"),
    "text.check": ("check", "验证"),
    "text.try": ("try", "处理"),
    "text.compared": ("compared with {compared}{odds}", "比较对象：{compared}{odds}"),
    "text.odds": ("; chance in a healthy run {chance}", "；健康 run 出现此类结果的概率：{chance}"),
    "text.missing": ("not known: {sentence}", "缺少的信息：{sentence}"),
}

_NOTE: Mapping[str, tuple[str, str]] = {
    "note.first": ("runtriage: {verdict}. {reason}", "runtriage：{verdict}。{reason}"),
    "note.panel": ("loss, gradient norm and learning rate", "损失、梯度范数和学习率"),
    "note.none": (
        "runtriage: none of {runs} runs needs a look ({tally}).", "runtriage：{runs} 个 run 都无需查看（{tally}）。",
    ),
    "note.one": (
        "runtriage: {count} of {runs} runs needs a look ({tally}).",
        "runtriage：{runs} 个 run 中有 {count} 个需要查看（{tally}）。",
    ),
    "note.many": (
        "runtriage: {count} of {runs} runs need a look ({tally}).",
        "runtriage：{runs} 个 run 中有 {count} 个需要查看（{tally}）。",
    ),
    "note.head": (
        "| verdict | run | what | first cause | first check |", "| 结论 | run | 发现 | 首要原因 | 首要检查 |",
    ),
    "note.seen": ("Seen: {sentences}", "现象：{sentences}"),
    "note.cause": ("**{cause}** ({share}){because}", "**{cause}**（{share}）{because}"),
    "note.check": ("Check: {sentence}", "验证：{sentence}"),
    "note.try": ("Try: {sentence}", "处理：{sentence}"),
    "note.by_design": ("By design: {sentences}.", "符合预期：{sentences}。"),
    "note.explained": ("{title} {span}: {why}", "{span}的{title}（{why}）"),
    "note.missing": ("Not logged or not readable: {sentences}.", "未记录或无法读取：{sentences}。"),
    "note.compared": ("Compared with {compared}.", "比较对象：{compared}。"),
    "note.odds": (
        " A healthy run would get this with a chance of {chance}.", "健康 run 得到这一结论的概率：{chance}。",
    ),
    "note.page": ("The whole diagnosis: artifact runtriage/panel.html", "完整诊断：artifact runtriage/panel.html"),
    "note.likely": ("{cause} ({share})", "{cause}（{share}）"),
}

_PAGE: Mapping[str, tuple[str, str]] = {
    "page.none": ("There are no runs.", "没有任何 run。"),
    "page.healthy": ("None of {runs} runs needs a look.", "{runs} 个 run 都无需查看。"),
    "page.one": ("{count} of {runs} runs needs a look.", "{runs} 个 run 中有 {count} 个需要查看。"),
    "page.many": ("{count} of {runs} runs need a look.", "{runs} 个 run 中有 {count} 个需要查看。"),
    "page.left_out": ("{count} more runs are in the table only.", "另有 {count} 个 run 只列在表格中。"),
    "page.all": ("all runs", "全部 run"),
    "page.show": ("show {which}", "显示：{which}"),
    "page.verdict": ("verdict", "结论"),
    "page.run": ("run", "run"),
    "page.loss": ("loss", "损失"),
    "page.what": ("what was seen", "发现"),
    "page.cause": ("likeliest cause", "最可能的原因"),
    "page.first_check": ("first check", "首要检查"),
    "page.flagged": ("Runs to look at", "需要查看的 run"),
    "page.others": ("Other runs", "其他 run"),
    "page.clue": (
        "A curve is a clue, not a verdict: causes are candidates until their check confirms one of them.",
        "曲线只是线索，不是定论：在验证确认之前，所列原因都只是候选。",
    ),
    "page.open": ("open in the tracker", "在实验平台中打开"),
    "page.id": ("run {id}", "run {id}"),
    "page.compared": ("compared with {compared}", "比较对象：{compared}"),
    "page.excluded": ("{count} left out because they behave differently", "{count} 个 run 因表现不同而被排除"),
    "page.odds": ("chance in a healthy run: {chance}", "健康 run 出现此类结果的概率：{chance}"),
    "page.strongest": ("strongest at step {step}", "第 {step} 步最强"),
    "page.chance": ("chance in a healthy run {chance}", "健康 run 出现此类结果的概率 {chance}"),
    "page.in": ("in ", ""),
    "page.seen": ("What was seen", "现象"),
    "page.causes": ("Candidate causes and how to check them", "候选原因与验证方法"),
    "page.by_design": ("By design", "符合预期"),
    "page.explained": ("Explained by {why}.", "原因：{why}。"),
    "page.because": ("Because", "依据"),
    "page.check": ("Check", "验证"),
    "page.try": ("Try, once confirmed", "确认之后的处理"),
    "page.missing": ("Not known: {sentence}", "缺少的信息：{sentence}"),
}

_ISSUE: Mapping[str, tuple[str, str]] = {
    "issue.none": ("none of {runs} runs needs a look", "{runs} 个 run 都无需查看"),
    "issue.one": ("{count} of {runs} runs needs a look", "{runs} 个 run 中有 {count} 个需要查看"),
    "issue.many": ("{count} of {runs} runs need a look", "{runs} 个 run 中有 {count} 个需要查看"),
    "issue.plain": ("**runtriage: {told}**.", "**runtriage：{told}**。"),
    "issue.tallied": ("**runtriage: {told}** ({tally}).", "**runtriage：{told}**（{tally}）。"),
    "issue.left_one": (
        "… {count} more run that needs a look left out here: a digest has an end. `runtriage sweep` lists all of them.",
        "…… 另有 {count} 个需要查看的 run 因篇幅未列出，`runtriage sweep` 会全部列出。",
    ),
    "issue.left_many": (
        "… {count} more runs that need a look left out here: a digest has an end. `runtriage sweep` lists all of them.",
        "…… 另有 {count} 个需要查看的 run 因篇幅未列出，`runtriage sweep` 会全部列出。",
    ),
    "issue.brief": ("{title} {span}", "{span}：{title}"),
    "issue.open": ("Open the run", "打开 run"),
    "issue.likely": ("Likely: ", "可能："),
}

_PICTURE: Mapping[str, tuple[str, str]] = {
    "picture.zoom": ("zoom: steps {low} to {high}", "局部放大：第 {low} 步至第 {high} 步"),
    "picture.step": ("step", "步数"),
    "picture.log": ("log", "对数坐标"),
    "picture.usual": ("usual range", "正常范围"),
    "picture.usual_of": ("usual range of {runs} runs", "{runs} 个 run 的正常范围"),
    "picture.raw": ("as logged", "原始记录"),
    "picture.smooth": ("running median", "滑动中位数"),
    "picture.not_finite": ("NaN or Inf", "NaN 或 Inf"),
    "picture.curves": ("Curves over training steps: {names}. ", "随训练步数变化的曲线：{names}。"),
    "picture.marked": (" Marked: {found}.", "已标出：{found}。"),
    "picture.unmarked": (" Nothing is marked.", "没有标出任何发现。"),
    "picture.title": ("{name}: {verdict}", "{name}：{verdict}"),
}

_TABLE: Mapping[str, tuple[str, str]] = {
    "table.verdict": ("verdict", "结论"),
    "table.run": ("run", "run"),
    "table.what": ("what", "发现"),
    "table.compared": ("compared with", "比较对象"),
    "table.healthy": ("… and {count} more healthy runs", "…… 另有 {count} 个健康的 run"),
    "table.sibling": ("{count} sibling", "{count} 个同组 run"),
    "table.siblings": ("{count} siblings", "{count} 个同组 run"),
    "table.itself": ("itself", "自身"),
    "table.nothing": ("nothing", "无"),
    "table.finding": ("{kind_words} in {metric} at {start}", "{metric} 第 {start} 步{kind_words}"),
    "table.explained": (" (explained: {why_words})", "（可解释：{why_words}）"),
    "table.since": ("{kinds}, from step {start}", "{kinds}，自第 {start} 步起"),
    "tally.marks": (
        "marks: {changed} runs changed, {right} already right",
        "标记：已更改 {changed} 个 run，{right} 个无需更改",
    ),
    "tally.marks_dry": (
        "marks: {changed} runs would change, {right} already right",
        "标记：将更改 {changed} 个 run，{right} 个无需更改",
    ),
    "tally.project": ("; experiment changed", "；实验标记已更改"),
    "tally.project_dry": ("; experiment would change", "；将更改实验标记"),
    "tally.alerts": (
        "alerts: {messages} messages sent, {looked} runs looked at",
        "告警：已发送 {messages} 条消息，检查了 {looked} 个 run",
    ),
    "tally.alerts_dry": (
        "alerts: {messages} messages would be sent, {looked} runs looked at",
        "告警：将发送 {messages} 条消息，检查了 {looked} 个 run",
    ),
    "tally.ended": (
        "; runs that have ended are told of only once they were seen running",
        "；已结束的 run 只有曾在运行中被检查过才会告警",
    ),
    "tally.none": ("no runs: nothing was judged", "没有任何 run，未作判断"),
    "tally.run": ("{count} run", "{count} 个 run"),
    "tally.runs": ("{count} runs", "{count} 个 run"),
    "tally.failed": ("failed", "读取失败"),
    "tally.explained": (" ({count} with explained findings)", "（{count} 个含可解释的发现）"),
    "tally.kept": ("; {count} of them unchanged and not read again", "；其中 {count} 个没有变化，未重新读取"),
    "table.more": ("; {count} more", "；另有 {count} 项"),
}

LABELS: Mapping[str, tuple[str, str]] = {**_WORDS, **_TEXT, **_NOTE, **_PAGE, **_ISSUE, **_PICTURE, **_TABLE}
"""Key to English and Chinese."""
