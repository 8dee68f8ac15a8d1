"""What an examination found: as text, as a table in a notebook, and as an object."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

FAILS = "forward fails"  # the finding after which nothing else can be looked at
KNOWN, NOT_APPLIED = "worth knowing, and no fault", "does not apply"
# What learners' models have, and what no check looks for.
NOT_LOOKED_FOR = (
    "a norm by hand that divides by N - 1, or has its eps outside the root",
    "a sum with the normed tokens, x = norm(x); x = x + branch(x)",
    "an MLP without a sum, in blocks that are lists",
    "fixed positions, such as sines without cosines",
    "one norm's weights in two places, one projection for all heads, none after them",
)


@dataclass(frozen=True)
class Finding:
    """One fault of a model."""

    name: str = field(default="", kw_only=True)  # "images mixed", of the check; `examine` sets it
    measured: str  # what was done to the model, and the numbers that came out
    why: str  # why that matters, and what to do
    where: str = ""  # module path, file and line, as far as they can be known

    def __str__(self) -> str:
        where = f"\n  where: {self.where}" if self.where else ""
        return f"{self.name}\n  measured: {self.measured}\n  why: {self.why}{where}"


@dataclass(frozen=True)
class Note(Finding):
    """What is worth knowing of a model and is no fault; `measured` and `why` say it."""

    def __str__(self) -> str:
        where = f" ({self.where})" if self.where else ""
        return f"{self.name}: {self.measured}; {self.why}{where}"


@dataclass(frozen=True)
class Skipped:
    """The reason for which a check does not apply, and the check's name."""

    reason: str
    name: str


@dataclass(frozen=True)
class Report:
    """All that an examination found. It can be looped over, and is as long as its findings."""

    findings: tuple[Finding, ...] = ()  # the faults, in the order of the checks
    skipped: tuple[Skipped, ...] = ()  # the checks that do not apply to this model
    sound: tuple[str, ...] = ()  # the names of the checks that found nothing
    notes: tuple[Note, ...] = ()  # what is no fault; not counted as findings
    images: tuple[int, ...] = ()  # (channels, height, width) of the images of noise

    @property
    def names(self) -> list[str]:
        """The names of the findings."""
        return [finding.name for finding in self.findings]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __bool__(self) -> bool:
        return True  # a report without findings is a report too

    def __str__(self) -> str:
        lines = [self.summary(), *map(str, self.findings)]
        for title, texts in self.lists():
            lines.extend([f"{title}:", *(f"  {text}" for text in texts)])
        return "\n".join(lines)

    def lists(self) -> list[tuple[str, list[str]]]:
        """Give the titles and lines of what is said beside the findings."""
        reasons = [f"{check.name}: {check.reason}" for check in self.skipped]
        if FAILS in self.names:
            return [(NOT_APPLIED, [f"the other {len(reasons)} checks: the model has to run first"])]
        limits = ["; ".join(NOT_LOOKED_FOR)] if self.images else []
        lists = [
            (KNOWN, [*map(str, self.notes)]),
            (NOT_APPLIED, reasons),
            ("not looked for", limits),
        ]
        return [(title, texts) for title, texts in lists if texts]

    def summary(self) -> str:
        """Say in one line how many findings, checks passed, and checks that do not apply."""
        findings, passed, skipped = len(self.findings), len(self.sound), len(self.skipped)
        start = "1 finding" if findings == 1 else f"{findings} findings"
        if self.notes:
            start += " and 1 note" if len(self.notes) == 1 else f" and {len(self.notes)} notes"
        if self.images:
            channels, height, width = self.images
            plural = "" if channels == 1 else "s"
            start += f"; looked at with images of {height}×{width} in {channels} channel{plural}"
        total = findings + passed + skipped + len(self.notes)
        does = "does" if skipped == 1 else "do"
        return f"{start}; {passed} of {total} checks passed, {skipped} {does} not apply"

    def _repr_html_(self) -> str:
        table = ""
        if self.findings:
            table = "<tr><th>finding</th><th>measured</th><th>why</th><th>where</th></tr>"
            for finding in self.findings:
                cells = (finding.name, finding.measured, finding.why, finding.where)
                table += f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
            table = f"<table>{table}</table>"
        lists = ""
        for title, texts in self.lists():
            items = "".join(f"<li>{escape(text)}</li>" for text in texts)
            unfolded = " open" if title == KNOWN else ""
            lists += f"<details{unfolded}><summary>{title}</summary><ul>{items}</ul></details>"
        return f"<p>{self.summary()}</p>{table}{lists}"
