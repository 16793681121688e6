"""Names, reasons and evidence are hostile; no output lets them act."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from runtriage.model.curve import Triage
from runtriage.model.report import Finding, Report
from runtriage.model.vocab import Level
from runtriage.outputs.marks import run_tags
from runtriage.outputs.report.html import render_html
from runtriage.outputs.report.markdown import render_digest, render_note
from runtriage.outputs.report.svg import render_svg
from runtriage.outputs.report.text import render_text
from tests.golden.made import report as made_report
from tests.golden.made import triage as made_triage

PIECES = (
    "<script>alert(1)</script>", "](javascript:alert(1))", "[a](http://e.example)", "![a](http://e.example/x.png)",
    "<!-- runtriage:end -->", "-->", "`", "``", "|", "\\", "\n\n# h\n", "\n<img src=x onerror=alert(1)>\n", "\x1b[2J",
    "\x9b", "\u202e", "\u2066", "\x00", "\ud800", "http://e.example", "www.e.example", "me@e.example", "&lt;b&gt;",
    '"', "'", "</title>", "]]>", "{{ 7*7 }}", "{% for %}", "*b*", "_i_", "~~", "$x$", "\u2028", "@425",
    "<http://e.example>", "\r", "\t",
)
hostile = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), min_size=1, max_size=6).map("".join)
SGR = re.compile(r"\x1b\[[0-9;]*m")
ALLOWED_LINK = "http://host:5000/#/experiments/1/runs/r1"
URLS = (None, "javascript:alert(1)", 'http://e/"onload="x', "http://e/)[x](y", ALLOWED_LINK)
LOADING = frozenset({"script", "img", "iframe", "object", "embed", "link", "base", "form", "image", "use"})


@st.composite
def reports(draw: st.DrawFn) -> Report:
    """Return the made report with hostile words in every place that comes from outside."""
    plain = made_report()

    def poisoned(finding: Finding) -> Finding:
        causes = tuple(
            msgspec.structs.replace(c, because=(draw(hostile),), verify=(draw(hostile),), try_=(draw(hostile),))
            for c in finding.causes
        )
        role = f"layer_grad_norm/{draw(hostile)}"
        seen = (draw(hostile),)
        return msgspec.structs.replace(finding, metric=draw(hostile), role=role, evidence=seen, causes=causes)

    run = msgspec.structs.replace(
        plain.run, name=draw(hostile), id=draw(hostile), source=draw(hostile), url=draw(st.sampled_from(URLS))
    )
    return msgspec.structs.replace(
        plain, run=run, reason=draw(hostile), missing=(draw(hostile),), findings=tuple(map(poisoned, plain.findings)),
        baseline=msgspec.structs.replace(plain.baseline, formed_by=draw(hostile), excluded=(draw(hostile),)),
    )


def active(markdown: str) -> list[str]:
    """Return what a Markdown engine that allows HTML would make of a text besides words: links, images, HTML."""
    engine = MarkdownIt("commonmark", {"html": True}).enable("table")
    tokens = [t for token in engine.parse(markdown) for t in (token, *(token.children or []))]
    kinds = {"html_inline", "html_block", "link_open", "image", "heading_open", "fence", "code_block"}
    return [str(t.attrGet("href") or t.attrGet("src") or t.content) for t in tokens if t.type in kinds]


class Seen(HTMLParser):
    """Collects what could act in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.bad: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note elements and attributes that could load or run something."""
        if tag in LOADING:
            self.bad.append(tag)
        for key, value in attrs:
            if key.startswith("on") or key in {"src", "srcdoc", "xlink:href", "formaction"}:
                self.bad.append(f"{tag} {key}")
            if key == "href" and not re.fullmatch(r"#run-\d+|https?://[^\s\"'<>]+", value or ""):
                self.bad.append(f"{tag} {value}")


@given(reports())
def test_nothing_acts_in_a_run_note(report: Report) -> None:
    """Links, images, HTML and headings of names and sentences stay words."""
    assert active(render_note(report)) == []


@given(reports())
def test_only_our_own_picture_and_links_act(report: Report) -> None:
    """The panel is the only image of a note; the digest links to the tracker's own address of a run only."""
    panel = "/get-artifact?path=runtriage%2Fpanel.svg&run_uuid=r1"
    assert active(render_note(report, panel_url=panel)) == [panel]
    assert set(active(render_digest([report, report]))) <= {ALLOWED_LINK}


@given(reports())
def test_the_table_of_a_digest_keeps_its_columns(report: Report) -> None:
    """No name breaks out of its cell."""
    tokens = MarkdownIt("commonmark").enable("table").parse(render_digest([report]))
    assert [t.type for t in tokens].count("td_open") == 5


@given(reports())
def test_our_note_markers_cannot_be_forged(report: Report) -> None:
    """A name that spells our end marker does not end our block."""
    assert "<!--" not in render_note(report)
    assert "-->" not in render_note(report)


@given(reports())
def test_nothing_acts_in_a_page(report: Report) -> None:
    """No element or attribute of a page comes from outside, of one run or of many."""
    triage = Triage(report=report, curves=made_triage().curves)
    for triages in ([triage], [triage, Triage(report=report), made_triage(Level.HEALTHY)]):
        seen = Seen()
        seen.feed(render_html(triages, report.run.name))
        assert seen.bad == []


@given(reports())
def test_a_panel_is_well_formed_and_inert(report: Report) -> None:
    """The picture is XML whatever the names, holds no script and refers to nothing."""
    text = render_svg(Triage(report=report, curves=made_triage().curves))
    elements = list(ET.fromstring(text).iter())  # noqa: S314  our own output
    names = {str(element.tag).rpartition("}")[2] for element in elements}
    assert names <= {"svg", "title", "desc", "style", "g", "rect", "path", "text", "tspan", "clipPath"}
    assert not [key for element in elements for key in element.attrib if "href" in key or key.startswith("on")]


@given(reports(), st.booleans())
def test_a_terminal_gets_no_control_characters(report: Report, colour: bool) -> None:  # noqa: FBT001
    """Only our own colours reach a terminal."""
    text = render_text(Triage(report=report, curves=made_triage().curves), colour=colour)
    assert all(c.isprintable() or c == "\n" for c in (SGR.sub("", text) if colour else text))


@given(reports())
def test_tag_values_are_short_printable_words(report: Report) -> None:
    """No tag holds what a tracker's page or a log would act on."""
    for value in run_tags(report).values():
        assert value.isprintable()
        assert 0 < len(value) <= 500
