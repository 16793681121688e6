"""The style sheet of the page; the panel brings its own."""

from __future__ import annotations

from runtriage.model.vocab import Level

_SHEET = """
:root{color-scheme:light dark;--page:#f3f5f8;--card:#fff;--ink:#18222f;--muted:#5c6878;--rule:#e1e6ec;--soft:#f7f9fb;
--bad:#d1242f;--warn:#b86a08;--info:#6b7785;--good:#1a7f37;--watch:#2a7ab8;--accent:#1f6feb;
--shadow:0 1px 2px #1018280d,0 1px 3px #1018281a}
@media(prefers-color-scheme:dark){:root{--page:#0b0f14;--card:#12171e;--ink:#e8edf3;--muted:#97a3b3;--rule:#242d38;
--soft:#171e27;--bad:#ff6b6b;--warn:#f0a03c;--info:#8996a5;--good:#3fb950;--watch:#58a6e0;--accent:#5ea0ff;
--shadow:0 0 0 1px #1c2530}}
*{box-sizing:border-box}html{scroll-behavior:smooth}
body{margin:0;background:var(--page);color:var(--ink);font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
"Helvetica Neue",Arial,sans-serif}
.wrap{max-width:1240px;margin:0 auto;padding:28px 20px 60px}
a{color:var(--accent);text-decoration:none}a:hover{text-decoration:underline}
.brand{display:flex;align-items:baseline;gap:12px;flex-wrap:wrap;margin-bottom:6px}
.brand b{font-size:13px;letter-spacing:.04em;color:var(--muted);font-weight:650}
h1{font-size:24px;line-height:1.25;margin:0;overflow-wrap:anywhere}.lead{color:var(--muted);margin:2px 0 20px}
.pick{position:absolute;opacity:0;pointer-events:none}
.chips{display:flex;flex-wrap:wrap;gap:10px;margin:0 0 18px}
.chip{background:var(--card);box-shadow:var(--shadow);border-radius:10px;padding:9px 16px;cursor:pointer;min-width:92px;
border-bottom:3px solid transparent}
.chip b{display:block;font-size:22px;line-height:1.15;font-variant-numeric:tabular-nums}
.chip span{color:var(--muted);font-size:12.5px}
.chip.broken b{color:var(--bad)}.chip.suspicious b{color:var(--warn)}.chip.watch b{color:var(--watch)}
.chip.healthy b{color:var(--good)}.chip.withheld b{color:var(--info)}
.card{background:var(--card);box-shadow:var(--shadow);border-radius:12px;overflow:hidden}
.table{overflow-x:auto}table{border-collapse:collapse;width:100%}
th{font-size:12px;color:var(--muted);font-weight:600;text-align:left;padding:10px 12px;
border-bottom:1px solid var(--rule);white-space:nowrap}
td{padding:8px 12px;border-bottom:1px solid var(--rule);vertical-align:middle}tr:last-child td{border-bottom:0}
tbody tr:hover{background:var(--soft)}td.name{font-weight:600;overflow-wrap:anywhere;min-width:150px}
td.what{min-width:190px}td.check{color:var(--muted);font-size:13px;min-width:220px}
td .spark{display:block;max-width:none}
.pill{display:inline-block;border-radius:99px;padding:1px 10px;font-size:12px;font-weight:650;color:var(--card);
background:var(--info);white-space:nowrap}
.pill.broken{background:var(--bad)}.pill.suspicious{background:var(--warn)}.pill.watch{background:var(--watch)}
.pill.healthy{background:var(--good)}
h2{font-size:16px;margin:34px 0 12px;color:var(--muted);font-weight:600}
.run{margin:0 0 18px;scroll-margin-top:12px}.run>header,.run>summary{padding:16px 20px 10px}
.run>header h3,.run>summary h3{display:inline;font-size:17px;margin:0 0 0 8px;overflow-wrap:anywhere}
.run p.reason{margin:6px 0 0}.run p.facts{margin:3px 0 0;color:var(--muted);font-size:13px}
details.run>summary{cursor:pointer;list-style:none;padding:10px 20px;display:flex;align-items:center;gap:12px}
details.run>summary::-webkit-details-marker{display:none}
details.run>summary::before,details.cause>summary::before{content:"";border:5px solid transparent;
border-left-color:var(--muted);border-right:0;transition:transform .12s}
details.run[open]>summary::before,details.cause[open]>summary::before{transform:rotate(90deg)}
details.run>summary .spark{margin-left:auto;flex:none}details.run{margin-bottom:8px}
.panel{padding:0 10px;overflow-x:auto}.panel svg{display:block;width:100%;min-width:660px;max-width:none;height:auto}
.finding{border-top:1px solid var(--rule);padding:14px 20px 16px;display:grid;
grid-template-columns:minmax(220px,1fr) 2fr;gap:8px 28px}
.finding h4{grid-column:1/-1;margin:0;font-size:15px;display:flex;gap:10px;align-items:baseline;flex-wrap:wrap}
.finding h4 i{font-style:normal;font-weight:400;color:var(--muted);font-size:13.5px}
.num{display:inline-grid;place-items:center;min-width:21px;height:21px;border-radius:5px;color:var(--card);font-size:12px;
background:var(--info);padding:0 5px}
.critical .num{background:var(--bad)}.warning .num{background:var(--warn)}.design .num{background:var(--info)}
.finding h5{margin:4px 0 4px;font-size:12px;color:var(--muted);font-weight:600;text-transform:none}
.finding ul{margin:0;padding-left:17px}.finding li{margin:2px 0;overflow-wrap:anywhere}
.seen{color:var(--ink);font-size:13.5px}.facts{font-variant-numeric:tabular-nums}
.cause{margin:0 0 6px;border:1px solid var(--rule);border-radius:8px;background:var(--soft)}
.cause>summary{cursor:pointer;list-style:none;padding:7px 12px;display:flex;gap:10px;align-items:center}
.cause>summary::-webkit-details-marker{display:none}
.cause b{font-weight:600}.bar{margin-left:auto;flex:none;width:110px;height:6px;border-radius:3px;
background:var(--rule);overflow:hidden}
.bar span{display:block;height:100%;background:var(--accent);border-radius:3px}
.share{flex:none;width:42px;text-align:right;color:var(--muted);font-variant-numeric:tabular-nums;font-size:13px}
.cause .body{padding:0 14px 10px 27px;font-size:13.5px}.verify{list-style:none}.verify li{position:relative}
.verify li::before{content:"";position:absolute;left:-17px;top:5px;width:9px;height:9px;border:1.5px solid var(--muted);
border-radius:2px}
.foot{border-top:1px solid var(--rule);padding:10px 20px 14px;color:var(--muted);font-size:13px}.foot p{margin:2px 0}
.end{color:var(--muted);font-size:12.5px;margin-top:28px}
.rt .ground{fill:none}
@media(max-width:900px){th:last-child,td.check{display:none}.wrap{padding:18px 12px 40px}}
@media(max-width:760px){.finding{grid-template-columns:1fr}.bar{width:60px}}
@media print{.chips{display:none}.card{box-shadow:none;border:1px solid var(--rule)}}
""".strip()


def _filters() -> str:
    """Return the rules that let the chips filter without a script: a checked radio button hides the other runs."""
    rules = ["#show-all:checked~.chips .for-all{border-color:var(--accent)}"]
    for level in Level:
        rules.append(f"#show-{level}:checked~.chips .for-{level}{{border-color:var(--accent)}}")
        rules.append(f"#show-{level}:checked~main .one:not(.{level}){{display:none}}")
    focus = ",".join(f"#show-{name}:focus-visible~.chips .for-{name}" for name in ["all", *Level])
    return "".join([*rules, f"{focus}{{outline:2px solid var(--accent);outline-offset:2px}}"])


SHEET = _SHEET.replace("\n", "") + _filters()
"""CSS of the page, with the filters by verdict."""
