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

NUMBERS = ("findings", "checks passed", "do not apply")
STYLE = """
:root { color-scheme: light dark; --line: light-dark(#ccc, #555) }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem;
  overflow-wrap: anywhere }
.wide { overflow-x: auto; max-width: 100% } table { border-collapse: collapse }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .5rem; text-align: center }
th:first-child { position: sticky; left: 0; background: Canvas; text-align: left; min-width: 7rem;
  max-width: 40vw }
td.bad { text-align: left } thead th { vertical-align: bottom }
thead span { writing-mode: vertical-rl; transform: rotate(180deg); white-space: nowrap;
  font-weight: normal }
tfoot th, tfoot td { font-weight: bold; border-bottom: 0 }
.bad { color: light-dark(#a33c00, #ff9d5c) }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0;
  padding: .25rem .75rem }
details td, details th { text-align: left; vertical-align: top } summary { cursor: pointer }
"""


def write(folder: Path, results: Sequence[Result], title: str, total: int) -> None:
    """Write report.csv and report.html into a folder, which is made, each whole or not at all.

    The results are those so far, of `total` files. An OSError says that a file cannot be written;
    the old one is then as it was.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # With the mark at its start, spreadsheets read names in any language right.
    write_whole(folder / "report.csv", table(results).encode("utf-8-sig", "backslashreplace"))
    text = page(results, title, total)
    write_whole(folder / "report.html", text.encode("utf-8", "backslashreplace"))


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that there is the old one or the new, never a part."""
    half = path.with_name(f"{path.name}.{uuid4().hex[:8]}.half")
    try:
        half.write_bytes(data)
        os.replace(half, path)
    finally:  # Ctrl-C too
        half.unlink(missing_ok=True)


def table(results: Sequence[Result]) -> str:
    """Give the results as CSV, a line a file."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["file", "status", *NUMBERS, "names", "notes", "message", "seconds"])
    for result in results:
        names = "; ".join(result.report.names) if result.report else ""
        notes = "; ".join(note.name for note in result.report.notes) if result.report else ""
        cells = (result.file, result.status, *counts(result), names, notes, result.message)
        writer.writerow([*map(harmless, cells), f"{result.seconds:.1f}"])
    return text.getvalue()


def counts(result: Result) -> tuple[int | str, int | str, int | str]:
    """Count findings, checks passed, and checks that do not apply; "" without a report."""
    report = result.report
    return (len(report), len(report.sound), len(report.skipped)) if report else ("", "", "")


def harmless(cell: object) -> str:
    """Give a cell that no spreadsheet takes for a formula: one that might be gets a quote."""
    text = str(cell)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text


def page(results: Sequence[Result], title: str, total: int) -> str:
    """Give the results as one HTML page that needs nothing else."""
    reports = [result.report for result in results if result.report]
    files = Counter(name for report in reports for name in set(report.names))
    names = sorted(files, key=lambda name: (-files[name], name))
    start = f"{len(results)} of {total} files" if len(results) < total else f"{total} files"
    clean, failed = sum(not report.names for report in reports), len(results) - len(reports)
    head = "".join(f"<th scope='col'><span>{escape(n)}</span></th>" for n in (*NUMBERS, *names))
    rows = "".join(row(number, result, names) for number, result in enumerate(results))
    sums = "".join(f"<td>{files[name]}</td>" for name in names)
    foot = f"<tfoot><tr><th scope='row'>files</th><td colspan='3'></td>{sums}</tr></tfoot>"
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
<p>{start}: {clean} without findings, {failed} could not be examined.</p>
<div class="wide" tabindex="0" role="region" aria-label="Files and findings">
<table>
<thead><tr><th scope="col">file</th>{head}</tr></thead>
<tbody>{rows}</tbody>
{foot if names else ""}
</table>
</div>
<h2>Each file</h2>
{"".join(details(number, result) for number, result in enumerate(results))}
</body>
</html>
"""


def row(number: int, result: Result, names: Sequence[str]) -> str:
    """Give a file's line of the table."""
    start = f"<tr><th scope='row'><a href='#f{number}'>{escape(result.file)}</a></th>"
    if result.report is None:
        span = f"colspan='{len(names) + 3}'"
        return f"{start}<td class='bad' {span}>{escape(result.status)}</td></tr>"
    found = set(result.report.names)
    cells = (*counts(result), *("●" if name in found else "" for name in names))
    return f"{start}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def details(number: int, result: Result) -> str:
    """Give what was found in a file, to fold out."""
    report = result.report
    body = f"<p>{escape(result.message)}</p>" if result.message else ""
    body += report._repr_html_() if report else ""
    head = f"<b>{escape(result.file)}</b>: {escape(report.summary() if report else result.status)}"
    # The link leads into the folded part: browsers unfold what a link leads into.
    inner = f"<summary>{head}</summary><div id='f{number}'>{body}</div>"
    return f"<details>{inner}</details>\n" if report else f"<details open>{inner}</details>\n"
