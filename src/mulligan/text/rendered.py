"""Render a text as GitHub does, or take GitHub's own HTML, without what is hidden (TRUST-4). Pure.

GitHub's parser (cmarkgfm) renders, and nh3 sanitises as a browser reads.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module

import nh3
from bs4 import BeautifulSoup, Tag
from bs4.element import PageElement

from mulligan.text.hidden import Counts, Hidden

# Rendering


def rendered(markdown: str, counts: Counts, html: str = "") -> BeautifulSoup:
    """Return what GitHub shows of a text, as sanitised HTML without what hides or is drawn.

    `html` is GitHub's rendering of the text, empty if it is not known.
    """
    page = nh3.clean(
        html or _render(markdown),
        tags=set(SHOWN),
        clean_content_tags=set(UNSEEN_ELEMENTS),
        attributes={name: set(allowed) for name, allowed in ATTRIBUTES.items()},
        link_rel=None,
    )
    shallow = _shallow(page, counts)
    soup = BeautifulSoup(shallow, "html.parser", preserve_whitespace_tags={"pre", "td"})
    counts[Hidden.ELEMENT] += _without(soup, _hides)
    _join_tasks(soup)
    _write_code_tables(soup)
    _quote_alerts(soup)
    _keep_mails(soup)
    counts[Hidden.DIAGRAM] += _replace(soup, _is_drawing, "[diagram]")
    counts[Hidden.FORMULA] += _without_hiding_formulas(soup)
    return soup


def _render(markdown: str) -> str:
    # The package has no types.
    cmark = import_module("cmarkgfm.cmark")
    options = (
        cmark.Options.CMARK_OPT_UNSAFE
        | cmark.Options.CMARK_OPT_FOOTNOTES
        | cmark.Options.CMARK_OPT_GITHUB_PRE_LANG
    )
    extensions = ["table", "autolink", "tagfilter", "strikethrough", "tasklist"]
    return cmark.markdown_to_html_with_extensions(markdown, options, extensions)


def _names(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


SHOWN = _names(
    "a b blockquote br caption code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img input "
    "ins kbd li math-renderer ol p pre q s samp section span strike strong sub summary sup table "
    "tbody td tfoot th thead tr tt ul var"
)
"""Elements with visible content; of all others, only the content stays."""

UNSEEN_ELEMENTS = _names(
    "applet audio canvas datalist embed frameset head iframe map math noembed noframes noscript "
    "object plaintext rp script select style svg template textarea title video xmp"
)

ATTRIBUTES = {
    "*": _names("hidden aria-hidden style class"),
    "a": _names("href"),
    "img": _names("src width height"),
    "pre": _names("lang"),
    "code": _names("lang"),
    "input": _names("type checked"),
    "details": _names("open"),
    "ol": _names("start"),
}

# What hides

FORMULA_TAG = "math-renderer"
"""GitHub's own element for a formula, with a style that does not hide it."""

DEEPEST = 60
"""Levels of elements that are read; of deeper ones, only the text."""


VOID = _names("br hr img input")
TAG = re.compile(r'<(/?)([a-z][\w-]*)(?: [\w-]+(?:="[^"]*")?)*>')
"""A tag as nh3 writes it."""


def _shallow(page: str, counts: Counts) -> str:
    """Take out the tags that are nested too deep; on these, the parser takes quadratic time."""
    kept, at, depth = list[str](), 0, 0
    for tag in TAG.finditer(page):
        if tag[2] in VOID:
            continue
        closes = bool(tag[1])
        depth -= closes
        if depth >= DEEPEST:
            counts[Hidden.TOO_DEEP] += not closes
            kept.append(page[at : tag.start()])
            at = tag.end()
        depth += not closes
    return "".join([*kept, page[at:]])


HIDING = re.compile(
    r"(?:display|visibility|opacity|font(?:-size)?|color|clip|position|transform)\s*:",
    re.IGNORECASE,
)
UNSEEN_CLASSES = _names("sr-only email-hidden-reply")
"""Classes of what GitHub's pages hide: words for screen readers, and the rest of a mail."""

SMALLER = ("sub", "sup")
MOST_SMALLER = 2
"""Levels of subscripts that can be read: each has three quarters of the size around it."""


def _hides(tag: Tag) -> bool:
    """Return whether an element is hidden, or too small to read."""
    if tag.name in SMALLER and len(tag.find_parents(SMALLER)) >= MOST_SMALLER:
        return True
    is_marked = tag.has_attr("hidden") or tag.has_attr("aria-hidden")
    is_styled = tag.name != FORMULA_TAG and HIDING.search(str(tag.get("style")))
    return is_marked or bool(is_styled) or not UNSEEN_CLASSES.isdisjoint(tag.get("class") or ())


def _without(soup: BeautifulSoup, is_wanted: Callable[[Tag], bool]) -> int:
    """Remove elements with all that is in them; return how many."""
    return _replace(soup, is_wanted, "")


def _replace(soup: BeautifulSoup, is_wanted: Callable[[Tag], bool], text: str) -> int:
    found = [tag for tag in soup.find_all() if is_wanted(tag)]
    for tag in found:
        tag.replace_with(text)
    return len(found)


DRAWN = _names("geojson mermaid stl topojson")
"""Languages of code that GitHub draws: as a map, diagram or model."""

LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]+")
"""GitHub reads `mermaid{x}` and `mermaid,x` as `mermaid`."""


def _is_drawing(tag: Tag) -> bool:
    return tag.name == "pre" and language_of(tag).lower() in DRAWN


HIGHLIGHTED = re.compile(r"highlight-(?:source|text)-([\w+#-]+)")


def language_of(code: Tag) -> str:
    """Return the language of a block of code; empty without one."""
    around = " ".join((code.parent.get("class") or ()) if code.parent else ())
    highlighted = HIGHLIGHTED.search(around)
    found = LANGUAGE.search(str(code.get("lang") or ""))
    return highlighted[1] if highlighted else found[0][:20] if found else ""


# What only GitHub's own rendering has

SIGNS = {"blob-code-deletion": "-", "blob-code-addition": "+"}


def _join_tasks(soup: BeautifulSoup) -> None:
    """Put the box of a task into the paragraph behind it, as GitHub does and cmark does not."""
    for item in soup.find_all("li"):
        match item.find_all(name=True, recursive=False, limit=2):
            case [Tag(name="input") as box, Tag(name="p") as paragraph]:
                paragraph.insert(0, box, " ")
            case _:
                pass


def _write_code_tables(soup: BeautifulSoup) -> None:
    """Write code that GitHub shows as rows of a table as code: of a file, or a diff to suggest."""
    for table in soup.select("table, .js-suggested-changes-blob"):
        if lines := table.find_all("td", class_="blob-code-inner"):
            code = Tag(name="pre", attrs={"lang": "" if table.name == "table" else "diff"})
            code.string = "\n".join(_sign(line) + line.get_text() for line in lines)
            table.replace_with(code)


def _sign(line: Tag) -> str:
    return "".join(SIGNS[kind] for kind in SIGNS.keys() & set(line.get("class") or ()))


def _quote_alerts(soup: BeautifulSoup) -> None:
    """Write an alert as in its source: a quotation that begins with `[!NOTE]` or the like."""
    for alert in soup.find_all(class_="markdown-alert"):
        alert.name = "blockquote"
        for title in alert.find_all(class_="markdown-alert-title", limit=1):
            title.string = f"[!{title.get_text(strip=True).upper()}]"


def _keep_mails(soup: BeautifulSoup) -> None:
    """Keep the lines of a mail, which is not Markdown."""
    for part in soup.find_all(class_=["email-fragment", "email-quoted-reply"]):
        part.name = "pre"


# Formulas

LITERAL = re.compile("\x01([0-9]+)\x01")
"""The place of a code span, by its number: no text has this character."""

FORMULAS = re.compile(
    r"\$\$(?:[^$]|\$(?!\$))++\$\$|\$\x01(?P<code>[0-9]+)\x01\$|\$(?!\s)[^$\x01]++(?<!\s)\$"
)
"""Formulas as GitHub finds them in a paragraph."""

PARAGRAPHS = _names("p li td th h1 h2 h3 h4 h5 h6 summary dt dd div section blockquote details")
"""Elements in which a formula may be."""


def _without_hiding_formulas(soup: BeautifulSoup) -> int:
    """Replace the formulas in which something may be unseen; return how many there were."""
    drawn = [tag for tag in soup.find_all(["pre", FORMULA_TAG]) if _is_hiding_formula(tag)]
    for tag in drawn:
        tag.replace_with(FORMULA)
    return len(drawn) + sum(map(_without_formulas, reversed([soup, *soup.find_all(PARAGRAPHS)])))


def _is_hiding_formula(tag: Tag) -> bool:
    is_formula = tag.name == FORMULA_TAG or language_of(tag).lower() == "math"
    return is_formula and not shows_all(tag.get_text())


def _without_formulas(paragraph: Tag) -> int:
    """Write a paragraph anew, as plain text, if one of its formulas may hide something."""
    if paragraph.get_text().count("$") <= 1:
        return 0
    code = list[str]()
    text, hiding = "".join(_plain(paragraph.children, code)), 0

    def replaced(found: re.Match[str]) -> str:
        nonlocal hiding
        content = code[int(found["code"])] if found["code"] else found[0]
        if shows_all(content):
            return found[0]
        hiding += 1
        return FORMULA

    shown = FORMULAS.sub(replaced, text)
    if hiding:
        paragraph.clear()
        for at, part in enumerate(LITERAL.split(shown)):
            # Every second part is the number of a code span.
            paragraph.append(_code(code[int(part)]) if at % 2 else part)
    return hiding


def _code(text: str) -> Tag:
    tag = Tag(name="code")
    tag.string = text
    return tag


def _plain(parts: Iterable[PageElement], code: list[str]) -> Iterator[str]:
    """Yield the text of a paragraph, with the place of each code span."""
    for part in parts:
        if isinstance(part, Tag) and part.name in {"code", "pre"}:
            code.append(part.get_text())
            yield f"\x01{len(code) - 1}\x01"
        elif isinstance(part, Tag):
            yield from _plain(part.children, code)
        else:
            yield str(part)


FORMULA = "[formula]"

COMMANDS = _names(
    # Letters and signs
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu "
    "xi pi  varpi rho varrho sigma varsigma tau upsilon phi varphi chi psi omega Gamma Delta "
    "Theta Lambda Xi  Pi Sigma Upsilon Phi Psi Omega infty partial nabla hbar ell Re Im aleph "
    "emptyset varnothing  forall exists nexists neg lnot prime angle degree top bot dots ldots "
    "cdots vdots ddots "
    # Operators and relations
    "pm mp times div cdot ast star circ bullet oplus ominus otimes odot cap cup setminus land "
    "lor  wedge vee le leq ge geq ne neq lt gt ll gg approx equiv sim simeq cong propto in "
    "notin ni subset  subseteq supset supseteq mid nmid parallel perp models vdash to gets "
    "mapsto rightarrow leftarrow  leftrightarrow Rightarrow Leftarrow Leftrightarrow implies "
    "iff uparrow downarrow longrightarrow  sum prod coprod int iint iiint oint bigcup bigcap "
    "bigvee bigwedge bigoplus lim sup inf max min  log ln lg exp sin cos tan cot sec csc arcsin "
    "arccos arctan sinh cosh tanh det dim ker gcd arg deg  Pr bmod pmod mod not "
    # Structures
    "frac dfrac tfrac cfrac binom sqrt left right middle big Big bigg Bigg bigl bigr Bigl Bigr "
    "langle  rangle lfloor rfloor lceil rceil lvert rvert lVert rVert vert Vert lbrace rbrace "
    "hat widehat bar  overline underline tilde widetilde vec dot ddot overbrace underbrace "
    "overset underset stackrel  text textbf textit textrm texttt mathrm mathbf mathit mathbb "
    "mathcal mathfrak mathsf mathtt  operatorname boldsymbol boxed displaystyle textstyle "
    "limits nolimits quad qquad begin end "
)
"""Commands of TeX that show all that follows them; others may hide, colour or define something."""

COMMAND = re.compile(r"\\(?:([A-Za-z]+)|(\\?\[)|.|$)|(%)", re.DOTALL)
ENVIRONMENT = re.compile(r"\\(?:begin|end)\s*\{([a-zA-Z]*)\*?\}")
ENVIRONMENTS = _names(
    "align aligned bmatrix cases equation gather gathered matrix pmatrix split vmatrix"
)


def shows_all(formula: str) -> bool:
    """Return whether GitHub shows every word in the source of a formula."""
    commands = list(COMMAND.finditer(formula))
    if any(found[2] or found[3] or (found[1] or "sum") not in COMMANDS for found in commands):
        return False
    places = ENVIRONMENT.findall(formula)
    opened = sum(found[1] in {"begin", "end"} for found in commands)
    return opened == len(places) and ENVIRONMENTS.issuperset(places)
