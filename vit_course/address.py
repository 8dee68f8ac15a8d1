"""Where links and setup cells lead to: the repository or a fork, and a tag that a class keeps."""

import re
import tomllib

from .lessons import NOTEBOOKS, ROOT, write

# The texts beside the notebooks that may name the repository.
PAGES = ("*.md", "notebooks/*.md", "CITATION.cff", ".github/ISSUE_TEMPLATE/*.yml")


def current() -> str:
    """Give the repository's public address, as pyproject.toml has it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["project"]["urls"]["Repository"]


def site(repository: str = "") -> str:
    """Give the address of a repository's site, on GitHub's Pages; by default of this one's."""
    owner, name = (repository or current()).removeprefix("https://github.com/").split("/")
    return f"https://{owner}.github.io/{name}/"


def change(new: str, tag: str | None = None) -> None:
    """Point all pages, every link to Colab and every setup cell at a repository, and at one tag.

    All new texts are made before the first is written; git takes back what was written.

    Args:
        new: its address, https://github.com/OWNER/REPOSITORY.
        tag: the tag (or branch) that Colab opens, and whose package the setup cell installs; a
            class keeps its version by it. None, the default, is the newest: the branch main.

    Raises:
        ValueError: the address or tag is none that Colab could open, or a notebook has another
            address than pyproject.toml.
        OSError: a file cannot be written.
    """
    pattern = r"https://github\.com/([\w.-]+/[\w.-]+?)(\.git)?/?"
    if not (match := re.fullmatch(pattern, new)):
        raise ValueError(f"{new!r} is not https://github.com/OWNER/REPOSITORY")
    if tag is not None and not re.fullmatch(r"\w+([.-]\w+)*", tag):
        raise ValueError(f"{tag!r} is no plain name of a tag, such as v1 or class-2027")
    old_name, new_name = current().removeprefix("https://github.com/"), match[1]
    old = re.compile(rf"(github(?:\.com)?/){re.escape(old_name)}(?![\w-]|\.\w)")
    install = f"git+https://github.com/{new_name}"
    pin = f"@{tag}" if tag else ""
    link = f"colab.research.google.com/github/{new_name}/blob/"
    texts = {}
    pages = [path for pattern in PAGES for path in sorted(ROOT.glob(pattern))]
    # pyproject.toml last: until all others are done, the old address is still known.
    for path in (*NOTEBOOKS, *pages, ROOT / "pyproject.toml"):
        before = path.read_text(encoding="utf-8")
        text = old.sub(rf"\g<1>{new_name}", before)
        text = text.replace(site(old_name), site(new_name))
        text = re.sub(rf"{re.escape(install)}(@[\w.-]+)?", install + pin, text)
        text = re.sub(rf"({re.escape(link)})[\w.-]+/", rf"\g<1>{tag or 'main'}/", text)
        if path in NOTEBOOKS and f'{install}{pin}\\"' not in text:
            raise ValueError(f"{path.name} installs neither from {old_name} nor from {new_name}")
        texts[path] = text
    for path, text in texts.items():
        write(path, text)
