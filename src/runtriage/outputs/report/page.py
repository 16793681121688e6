"""The template of the page. Autoescaped; what arrives as markup was made here or in the panel."""

from __future__ import annotations

PAGE = """\
<!DOCTYPE html>
<html lang="{{ lang }}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{{ title }} · runtriage</title>
<style>{{ sheet|safe }}{{ panel_sheet|safe }}</style>
</head>
<body>
<div class="wrap">
{%- if many %}
{%- for pick in picks %}
<input class="pick" type="radio" name="show" id="show-{{ pick.key }}"{% if loop.first %} checked{% endif %} \
aria-label="{{ say('show', which=pick.text) }}">
{%- endfor %}
{%- endif %}
<div class="brand"><b>runtriage</b></div>
<h1><bdi>{{ title }}</bdi></h1>
<p class="lead">{{ lead }}</p>
{%- if many %}
<div class="chips">
{%- for pick in picks %}
<label class="chip for-{{ pick.key }} {{ pick.key }}" for="show-{{ pick.key }}"><b>{{ pick.count }}</b>\
<span>{{ pick.text }}</span></label>
{%- endfor %}
</div>
{%- endif %}
<main>
{%- if many %}
<div class="card table"><table>
<thead><tr>\
{% for key in ('verdict', 'run', 'loss', 'what', 'cause', 'first_check') %}<th>{{ say(key) }}</th>{% endfor %}\
</tr></thead>
<tbody>
{%- for run in runs %}
<tr class="one {{ run.level }}"><td><span class="pill {{ run.level }}">{{ run.verdict }}</span></td>
<td class="name">{% if run.detailed %}<a href="#{{ run.anchor }}"><bdi>{{ run.name }}</bdi></a>{% else %}\
<bdi>{{ run.name }}</bdi>{% endif %}</td>
<td>{{ run.spark|safe }}</td><td class="what">{{ run.what }}</td><td>{{ run.cause }}</td>\
<td class="check">{{ run.check }}</td></tr>
{%- endfor %}
</tbody></table></div>
{%- endif %}
{%- if flagged and many %}
<h2>{{ say('flagged') }}</h2>
{%- endif %}
{%- for run in flagged %}
<section class="card run one {{ run.level }}" id="{{ run.anchor }}">
<header><span class="pill {{ run.level }}">{{ run.verdict }}</span><h3><bdi>{{ run.name }}</bdi></h3>
<p class="reason">{{ run.reason }}</p>{{ facts(run) }}</header>
{{ body(run) }}
</section>
{%- endfor %}
{%- if rest %}
{%- if many %}
<h2>{{ say('others') }}</h2>
{%- endif %}
{%- for run in rest %}
<details class="card run one {{ run.level }}" id="{{ run.anchor }}"{% if not many %} open{% endif %}>
<summary><span class="pill {{ run.level }}">{{ run.verdict }}</span><h3><bdi>{{ run.name }}</bdi></h3>\
{% if many %}{{ run.spark|safe }}{% endif %}</summary>
<div style="padding:0 20px 8px"><p class="reason">{{ run.reason }}</p>{{ facts(run) }}</div>
{{ body(run) }}
</details>
{%- endfor %}
{%- endif %}
</main>
{%- if left_out %}
<p class="end">{{ left_out }}</p>
{%- endif %}
<p class="end">{{ say('clue') }}</p>
</div>
</body>
</html>
"""

MACROS = """\
{%- macro facts(run) %}
<p class="facts">{{ run.facts }}{% if run.url %} · \
<a href="{{ run.url }}" rel="noopener noreferrer">{{ say('open') }}</a>{% endif %}</p>
{%- endmacro %}
{%- macro body(run) %}
<div class="panel">{{ run.panel|safe }}</div>
{%- for finding in run.findings %}
<div class="finding {{ finding.tone }}">
<h4><span class="num">{{ finding.number }}</span>{{ finding.title }} <i>{{ say('in') }}<bdi>{{ finding.metric }}</bdi>\
{{ finding.where }}</i></h4>
<div><h5>{{ say('seen') }}</h5>
<ul class="seen">
{%- for text in finding.evidence %}<li>{{ text }}</li>{% endfor %}
{%- if finding.facts %}<li class="facts">{{ finding.facts }}</li>{% endif %}</ul></div>
<div>
{%- if finding.causes %}<h5>{{ say('causes') }}</h5>{% endif %}
{%- if finding.explained %}<h5>{{ say('by_design') }}</h5>\
<p style="margin:0">{{ say('explained', why=finding.explained) }}</p>{% endif %}
{%- for cause in finding.causes %}
<details class="cause"{% if loop.first %} open{% endif %}><summary><b>{{ cause.name }}</b>\
<span class="bar"><span style="width:{{ cause.percent }}%"></span></span><span class="share">{{ cause.share }}</span>\
</summary>
<div class="body">
{%- if cause.because %}<h5>{{ say('because') }}</h5><ul>{% for text in cause.because %}<li>{{ text }}</li>{% endfor %}\
</ul>{% endif %}
{%- if cause.verify %}<h5>{{ say('check') }}</h5>\
<ul class="verify">{% for text in cause.verify %}<li>{{ text }}</li>{% endfor %}\
</ul>{% endif %}
{%- if cause.try_ %}<h5>{{ say('try') }}</h5><ul>{% for text in cause.try_ %}<li>{{ text }}</li>{% endfor %}</ul>\
{% endif %}
</div></details>
{%- endfor %}
</div></div>
{%- endfor %}
{%- if run.missing %}
<div class="foot">{% for text in run.missing %}<p>{{ say('missing', sentence=text) }}</p>{% endfor %}</div>
{%- endif %}
{%- endmacro %}
"""
