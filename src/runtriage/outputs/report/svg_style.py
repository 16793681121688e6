"""The style sheet of the panel: one palette for light and for dark."""

from __future__ import annotations

from runtriage.model.vocab import Lang

STYLE = """
.rt{--ground:#fff;--plot:#fbfcfd;--ink:#18222f;--muted:#667085;--grid:#e6e9ee;--band:#5b6b80;--loss:#1f6feb;--norm:#8250df;
--rate:#0f8a7e;--other:#57606a;--bad:#d1242f;--warn:#c2700c;--info:#6b7785;--good:#1a7f37;--watch:#2a7ab8;
font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;max-width:100%;height:auto}
@media(prefers-color-scheme:dark){.rt{--ground:#12171e;--plot:#161d26;--ink:#e8edf3;--muted:#97a3b3;--grid:#242d38;
--band:#93a4ba;--loss:#5ea0ff;--norm:#b392f0;--rate:#3ac2b2;--other:#8c96a3;--bad:#ff6b6b;--warn:#f0a03c;--info:#8996a5;
--good:#3fb950;--watch:#58a6e0}}
.rt text{fill:var(--ink)}.rt .muted{fill:var(--muted);font-size:11.5px;font-weight:400}
.rt .tick{fill:var(--muted);font-size:11px}
.rt .axis{font-weight:600;font-size:12.5px}.rt .name{font-weight:650;font-size:15px}.rt .ground{fill:var(--ground)}
.rt .plot{fill:var(--plot);stroke:var(--grid)}.rt .grid{stroke:var(--grid);fill:none}
.rt .raw,.rt .line{fill:none;stroke:var(--c);stroke-linejoin:round;stroke-linecap:round}
.rt .raw{stroke-width:1.1;opacity:.6}.rt .raw.dense{stroke-width:1;opacity:.38}
.rt .line{stroke-width:1.7}.rt .loss{--c:var(--loss)}.rt .grad_norm{--c:var(--norm)}.rt .lr{--c:var(--rate)}
.rt .other{--c:var(--other)}.rt .band{fill:var(--band);opacity:.2;stroke:none}
.rt .bad{--t:var(--bad)}.rt .warn{--t:var(--warn)}.rt .info{--t:var(--info)}
.rt .shade{fill:var(--t);opacity:.15}.rt .shade.faint{opacity:.07}
.rt .onset{stroke:var(--t);stroke-width:1.5;fill:none}.rt .onset.faint{stroke-width:1;stroke-dasharray:3 3;opacity:.7}
.rt .flag{fill:var(--t)}.rt .flag-text{fill:var(--ground);font-size:11px;font-weight:600}
.rt .nan{fill:var(--bad);font-size:11px;font-weight:600}
.rt .pill{fill:var(--info)}.rt .pill.broken{fill:var(--bad)}.rt .pill.suspicious{fill:var(--warn)}
.rt .pill.watch{fill:var(--watch)}
.rt .pill.healthy{fill:var(--good)}.rt .pill-text{fill:var(--ground);font-size:12px;font-weight:650}
""".strip().replace("\n", "")
"""CSS; every rule stands under the class ``rt`` of the picture, so a page may hold it too."""

_FONTS = {Lang.EN: "", Lang.ZH: '"PingFang SC","Microsoft YaHei","Noto Sans CJK SC","Noto Sans SC",'}


def in_language(sheet: str, lang: Lang) -> str:
    """Return a style sheet with the fonts that a language needs before the reader's last resort."""
    return sheet.replace("Arial,sans-serif", f"Arial,{_FONTS[lang]}sans-serif")
