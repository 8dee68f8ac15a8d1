"""What an examination found: as text, as a table in a notebook, and as an object."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Finding:
    """One fault of a model.

    Args:
        name: of the fault, and of the check that found it: "images mixed".
        measured: what was done to the model, and the numbers that came out.
        why: why that matters.
        where: module path, file and line, as far as they can be known; "" where they cannot.
    """

    name: str
    measured: str
    why: str
    where: str = ""

    def __str__(self) -> str:
        where = f"\n  where: {self.where}" if self.where else ""
        return f"{self.name}\n  measured: {self.measured}\n  why: {self.why}{where}"


@dataclass(frozen=True)
class Skipped:
    """What a check gives that does not apply, with the reason; `examine` adds the check's name."""

    reason: str
    name: str = ""


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
        parts = [self.summary(), *map(str, self.findings)]
        if self.skipped:
            parts.append("does not apply:")
            parts.extend(f"  {each.name}: {each.reason}" for each in self.skipped)
        return "\n".join(parts)

    def summary(self) -> str:
        """One line: how many findings, how many checks were passed, how many do not apply."""
        found = f"{len(self.findings)} finding{'s' * (len(self.findings) != 1)}"
        number = len(self.findings) + len(self.sound) + len(self.skipped)
        passed = f"{len(self.sound)} of {number} checks passed"
        return f"{found}; {passed}, {len(self.skipped)} do not apply"

    def _repr_html_(self) -> str:
        columns = ("finding", "measured", "why", "where")
        rows = [(f.name, f.measured, f.why, f.where) for f in self.findings]
        head = "".join(f"<th>{column}</th>" for column in columns)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
        )
        table = f"<table><tr>{head}</tr>{body}</table>" if rows else ""
        skipped = "".join(f"<li>{escape(f'{s.name}: {s.reason}')}</li>" for s in self.skipped)
        more = f"<details><summary>does not apply</summary><ul>{skipped}</ul></details>"
        return f"<p>{self.summary()}</p>{table}{more if skipped else ''}"
