"""The results of a folder: a table for a spreadsheet, and a page to read."""

import csv
import io
import os
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from uuid import uuid4

from .each_file import Result

COLUMNS = (
    *("file", "status", "findings", "checks passed", "do not apply"),
    *("names", "message", "seconds"),
)
STYLE = """
:root { color-scheme: light dark; --line: #ccc; --soft: #f3f3f3; --bad: #a33c00; --back: #fff }
@media (prefers-color-scheme: dark) {
  :root { --line: #555; --soft: #262626; --bad: #ff9d5c; --back: #161616 }
}
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem;
  background: var(--back); overflow-wrap: anywhere }
.wide { overflow-x: auto; max-width: 100% }
table { border-collapse: collapse }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .5rem; text-align: center }
th:first-child { position: sticky; left: 0; background: var(--back); text-align: left;
  min-width: 7rem; max-width: 40vw }
td.status { text-align: left }
thead th { vertical-align: bottom }
thead span { writing-mode: vertical-rl; transform: rotate(180deg); white-space: nowrap;
  font-weight: normal }
tfoot th, tfoot td { font-weight: bold; border-bottom: 0 }
.bad { color: var(--bad) }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0;
  padding: .25rem .75rem }
summary { cursor: pointer }
dl { margin: .25rem 0 1rem }
dt { font-weight: bold; margin-top: .75rem }
dd { margin: 0 0 0 1rem }
ul { padding-left: 1.25rem }
"""


def write(folder: Path, results: Sequence[Result], title: str, total: int) -> None:
    """Write report.csv and report.html, each whole or not at all.

    Args:
        folder: for the two files; it is made.
        results: of the files so far.
        title: of the page.
        total: how many files there are.

    Raises:
        OSError: a file cannot be written; the old one is as it was.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # With the mark at its start, spreadsheets read names in any language right.
    whole(folder / "report.csv", table(results).encode("utf-8-sig", "backslashreplace"))
    whole(folder / "report.html", page(results, title, total).encode("utf-8", "backslashreplace"))


def whole(path: Path, data: bytes) -> None:
    """Write a file so that there is the old one or the new, never a part."""
    half = path.with_name(f"{path.name}.{uuid4().hex[:8]}.half")
    try:
        half.write_bytes(data)
        os.replace(half, path)
    finally:  # Ctrl-C too
        half.unlink(missing_ok=True)


def table(results: Sequence[Result]) -> str:
    """The results as CSV, a line a file."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for each in results:
        names = each.report.names if each.report else []
        cells = (each.file, each.status, *counts_of(each), "; ".join(names), each.message)
        writer.writerow([*map(harmless, cells), f"{each.seconds:.1f}"])
    return text.getvalue()


def counts_of(result: Result) -> tuple[int | str, int | str, int | str]:
    """How many findings, checks passed, and checks that do not apply; "" without a report."""
    report = result.report
    return (len(report), len(report.sound), len(report.skipped)) if report else ("", "", "")


def harmless(cell: object) -> str:
    """A cell that no spreadsheet takes for a formula: one that might be begins with a quote."""
    text = str(cell)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text


def page(results: Sequence[Result], title: str, total: int) -> str:
    """The results as one HTML page that needs nothing else."""
    counts = Counter(name for each in results if each.report for name in set(each.report.names))
    names = sorted(counts, key=lambda name: (-counts[name], name))
    done = f"{len(results)} of {total} files" if len(results) < total else f"{total} files"
    clean = sum(each.report is not None and not each.report.names for each in results)
    failed = sum(each.report is None for each in results)
    lead = f"{done}: {clean} without findings, {failed} could not be examined."
    head = "".join(f"<th scope='col'><span>{escape(name)}</span></th>" for name in names)
    titles = ("findings", "checks passed", "do not apply")
    numbers = "".join(f"<th scope='col'><span>{title}</span></th>" for title in titles)
    rows = "".join(row(number, each, names) for number, each in enumerate(results))
    last = "".join(f"<td>{counts[name]}</td>" for name in names)
    foot = f"<tfoot><tr><th scope='row'>files</th><td colspan='3'></td>{last}</tr></tfoot>"
    foot = foot if names else ""
    parts = "".join(unfolded(number, each) for number, each in enumerate(results))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p>{lead}</p>
<div class="wide" tabindex="0" role="region" aria-label="Files and findings">
<table>
<thead><tr><th scope="col">file</th>{numbers}{head}</tr></thead>
<tbody>{rows}</tbody>
{foot}
</table>
</div>
<h2>Each file</h2>
{parts}
</body>
</html>
"""


def row(number: int, result: Result, names: Sequence[str]) -> str:
    """A file's line of the table."""
    start = f"<tr><th scope='row'><a href='#f{number}'>{escape(result.file)}</a></th>"
    if result.report is None:
        span = f" colspan='{len(names) + 3}'"
        return f"{start}<td class='status bad'{span}>{escape(result.status)}</td></tr>"
    own = result.report.names
    cells = "".join(f"<td>{'●' if name in own else ''}</td>" for name in names)
    numbers = "".join(f"<td>{number}</td>" for number in counts_of(result))
    return f"{start}{numbers}{cells}</tr>"


def unfolded(number: int, result: Result) -> str:
    """What was found in a file, to fold out."""
    report = result.report
    said = report.summary() if report else result.status
    body = f"<p>{escape(result.message)}</p>" if result.message else ""
    if report:
        items = "".join(
            f"<dt class='bad'>{escape(each.name)}</dt><dd>measured: {escape(each.measured)}</dd>"
            f"<dd>why: {escape(each.why)}</dd>"
            + (f"<dd>where: {escape(each.where)}</dd>" if each.where else "")
            for each in report.findings
        )
        skipped = "".join(
            f"<li>{escape(each.name)}: {escape(each.reason)}</li>" for each in report.skipped
        )
        body += f"<dl>{items}</dl>" if items else ""
        body += f"<p>Does not apply:</p><ul>{skipped}</ul>" if skipped else ""
    head = f"<b>{escape(result.file)}</b>: {escape(said)}"
    # The link leads into the folded part: browsers unfold what a link leads into.
    inner = f"<div id='f{number}'>{body}</div>"
    return f"<details{'' if report else ' open'}><summary>{head}</summary>{inner}</details>\n"
