"""Sphinx's settings for the book, which `python -m vit_course book` makes.

Sphinx reads the repository as it stands, with the outputs that the notebooks store. README.md is
the front page. A folder or file that is no page of the book is linked to on GitHub.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

from vit_course import address
from vit_course.lessons import ROOT, without_answers

project = "ViT, step by step"
author = project
html_title = project
root_doc = "README"
include_patterns = [
    "README.md",
    "notebooks/*.md",
    "notebooks/[0-9]*.ipynb",
    "notebooks/solutions/[0-9]*.ipynb",
    "vit_steps/README.md",
]
exclude_patterns = [".*", "build", "my_course", "runs"]  # not even looked into

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
add_module_names = False
default_role = "code"  # of `this` in a docstring
nb_execution_mode = "off"
nb_render_image_options = {"alt": "A figure, described in the sentence below it"}
highlight_language = "none"  # what says no language is no Python
myst_enable_extensions = ["dollarmath", "html_image"]
myst_heading_anchors = 3

# One file of MathJax, which needs no other: nothing is fetched when a page is read.
mathjax = Path(str(files("sphinx-mathjax-offline"))) / "static" / "mathjax"
mathjax_path = "tex-svg.js"

html_theme = "sphinx_book_theme"
html_static_path = ["book.css", str(mathjax / mathjax_path)]
html_css_files = ["book.css"]
html_copy_source = False
html_show_copyright = False
html_context = {"default_mode": "auto"}  # light or dark, as the reader's device asks
html_theme_options = {
    "repository_url": address.current(),
    "use_repository_button": True,
    "use_download_button": False,
    "navbar_persistent": [],  # the search stands on the left
    "show_toc_level": 2,
}

PACKAGE = "vit_steps/README"  # its page has, in the book, what each module offers
# What stands in the contents on the left.
CONTENTS = {
    "The lessons": "notebooks/[0-9]*",
    "To look up": f"notebooks/[A-Z]*\n{PACKAGE}*",
    "Solutions": "notebooks/solutions/*",
}
if without := tags.has("without_solutions"):  # noqa: F821  # type: ignore[name-defined]  # Sphinx's
    exclude_patterns += ["notebooks/solutions", "notebooks/TEACHING.md"]
    CONTENTS.pop("Solutions")
# What the front page has in place of the link that leads here: the live page.
SITE = re.compile(rf"\n.*\({re.escape(address.site())}\).*\n")
LIVE = """
In fourteen notebooks you build a Vision Transformer; you need Python, and no GPU. This is one:

<iframe src="explorer.html" title="A ViT, live: it reads what you draw" class="live"></iframe>
<a href="explorer.html">Draw for it on a page of its own</a>
"""


def setup(app):
    """Sphinx calls it first."""
    app.connect("source-read", prepare)
    app.connect("build-finished", add_pages)


def prepare(app, page, source):
    """Change the text of a page, on its way into the book alone."""
    text = source[0]
    folder = (app.srcdir / page).parent
    text = re.sub(r"\]\(([^()\s]+)\)", lambda link: f"]({target(app, folder, link[1])})", text)
    if page == root_doc:
        text = without_answers(text) if without else text
        text = SITE.sub(LIVE, text)
        text += "".join(
            f"\n```{{toctree}}\n:hidden:\n:glob:\n:caption: {caption}\n\n{pages}\n```\n"
            for caption, pages in CONTENTS.items()
        )
    elif page == PACKAGE:
        rows = re.findall(r"(?m)^\| (`.+?`) \|", text)
        modules = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
        text += "".join(
            f"\n## `{module}`\n\n```{{eval-rst}}\n.. automodule:: vit_steps.{module}\n```\n"
            for module in modules
        )
    elif (app.srcdir / page).with_suffix(".ipynb").exists():
        book = json.loads(text)
        for cell in book["cells"]:
            if cell["metadata"].get("jupyter") == {"source_hidden": True}:
                cell["metadata"]["tags"] = [*cell["metadata"].get("tags", []), "hide-input"]
            if without and cell["cell_type"] == "markdown":
                cell["source"] = without_answers("".join(cell["source"]))
            elif without and "checks.source(" in "".join(cell["source"]):
                cell["outputs"] = []  # the package's form, which is an answer too
        text = json.dumps(book)
    source[0] = text


def target(app, folder, link):
    """Say where a link of the repository leads in the book: to GitHub, if to no page of it."""
    path = Path(os.path.normpath(folder / link.partition("#")[0]))
    is_page = app.project.path2doc(path) in app.project.docnames
    if re.match(r"\w+:|#", link) or is_page or path.suffix in (".png", ".gif") or not path.exists():
        return link
    return f"{address.current()}/tree/main/{path.relative_to(app.srcdir).as_posix()}"


def add_pages(app, error):
    """Add the front page as index.html, where a site opens, and a live page of the model."""
    if error or app.builder.name != "html":
        return
    shutil.copy(Path(app.outdir) / f"{root_doc}.html", Path(app.outdir) / "index.html")
    page = ["--out", str(Path(app.outdir) / "explorer.html"), "--no-browser"]
    subprocess.run([sys.executable, "-m", "vit_course.explorer", *page], check=True, cwd=ROOT)
