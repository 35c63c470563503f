"""Hooks of MkDocs: add the pages that lie outside docs/, in the order of docs/pages.md."""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    ".github/CONTRIBUTING.md": "contributing.md",
    ".github/SECURITY.md": "reporting.md",
}
"""Pages outside docs/, from the root of the repository, and their names on the site."""

STYLE = """\
/* The button that copies a block takes the commands, without prompts and what they print. */
[data-md-copying] :is(.gp, .go) { display: none }
/* Text and links that can be read: a contrast of 4.5, and links that differ not by colour alone. */
[data-md-color-primary=teal] {
  --md-primary-fg-color: #00695c; --md-footer-fg-color--lighter: #fffb
}
[data-md-color-scheme=default] {
  --md-typeset-a-color: #00695c; --md-default-fg-color--light: #000a
}
.md-typeset :is(p, li, td) > a { text-decoration: underline }
"""

FIRST_DECISION = "decisions/0001-status-is-folded-and-kept.md"
LINK = re.compile(r"(!?\[[^\]]*\])\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")
NUMBERED = re.compile(r"\(#([\w-]+)-(\d+)\)")
"""The second of two equal headings is `#name-1` on GitHub and `#name_1` on the site."""
ROW = re.compile(
    r"^\| (?:\*\*(?P<section>[^*]+)\*\*|\[(?P<name>[^\]]+)\]\((?P<path>[^)]+)\))", re.MULTILINE
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the navigation from the table in docs/pages.md."""
    nav: list[object] = [{"Overview": "index.md"}]
    pages = list[object]()
    for row in ROW.finditer((ROOT / "docs/pages.md").read_text()):
        if row["section"]:
            pages = []
            nav.append({row["section"]: pages})
        elif row["path"] != "decisions/":
            pages.append({row["name"]: row["path"]})
    pages += [{"Contributing": "contributing.md"}, {"Reporting a weakness": "reporting.md"}]
    nav.append({"All pages": "pages.md"})
    decisions = sorted((ROOT / "docs/decisions").glob("*.md"))
    nav.append({"Decisions": [f"decisions/{each.name}" for each in decisions]})
    nav.append({"Changelog": "changelog.md"})
    config.nav = nav
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie outside docs/, and the style."""
    files.append(File.generated(config, "site.css", content=STYLE))
    for path, name in OUTSIDE.items():
        files.append(File.generated(config, name, content=(ROOT / path).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links at the pages of the site; what the site does not have is code in the text."""
    if page.file.src_uri.startswith(("decisions/", "changelog.md", "specification.md")):
        page.meta["search"] = {"boost": 0.2}  # the pages for users come first
    names = {name: path for path, name in OUTSIDE.items()}
    source = names.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def follow(found: re.Match[str]) -> str:
        text, target, anchor = found.groups(default="")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        there = OUTSIDE.get(path, path.removeprefix("docs/"))
        there = FIRST_DECISION if there == "decisions" else there
        if files.get_file_from_path(there) is None:
            known = f"{config.repo_url}/blob/main/{path}" if config.repo_url else ""
            return f"{text}({known})" if known else text.strip("[]")
        here = posixpath.dirname(page.file.src_uri)
        return f"{text}({posixpath.relpath(there, here or '.')}{anchor})"

    return LINK.sub(follow, NUMBERED.sub(r"(#\1_\2)", markdown))
