"""What an examination found: as text, as a table in a notebook, and as an object."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape


@dataclass(frozen=True)
class Finding:
    """One fault of a model.

    Args:
        name: of the fault, and of the check that found it: "images mixed"; `examine` fills it in.
        measured: what was done to the model, and the numbers that came out.
        why: why that matters.
        where: module path, file and line, as far as they can be known; "" where they cannot.
    """

    name: str = field(default="", kw_only=True)
    measured: str
    why: str
    where: str = ""

    def __str__(self) -> str:
        where = f"\n  where: {self.where}" if self.where else ""
        return f"{self.name}\n  measured: {self.measured}\n  why: {self.why}{where}"


@dataclass(frozen=True)
class Skipped:
    """The reason for which a check does not apply, and the check's name."""

    reason: str
    name: str


@dataclass(frozen=True)
class Report:
    """All that an examination found. It can be looped over, and is as long as its findings.

    Args:
        findings: the faults, in the order of the checks.
        skipped: the checks that do not apply to this model, each with the reason.
        sound: the names of the checks that found nothing.
    """

    findings: tuple[Finding, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    sound: tuple[str, ...] = ()

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
        if self.skipped:
            lines.append("does not apply:")
            lines.extend(f"  {check.name}: {check.reason}" for check in self.skipped)
        return "\n".join(lines)

    def summary(self) -> str:
        """Say in one line how many findings, checks passed, and checks that do not apply."""
        findings, passed, skipped = len(self.findings), len(self.sound), len(self.skipped)
        start = "1 finding" if findings == 1 else f"{findings} findings"
        total = findings + passed + skipped
        return f"{start}; {passed} of {total} checks passed, {skipped} do not apply"

    def _repr_html_(self) -> str:
        table = skipped = ""
        if self.findings:
            table = "<tr><th>finding</th><th>measured</th><th>why</th><th>where</th></tr>"
            for finding in self.findings:
                cells = (finding.name, finding.measured, finding.why, finding.where)
                table += f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
            table = f"<table>{table}</table>"
        if self.skipped:
            items = "".join(f"<li>{escape(f'{s.name}: {s.reason}')}</li>" for s in self.skipped)
            skipped = f"<details><summary>does not apply</summary><ul>{items}</ul></details>"
        return f"<p>{self.summary()}</p>{table}{skipped}"
