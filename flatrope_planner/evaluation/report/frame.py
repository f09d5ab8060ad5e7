"""What every page of ours begins and ends with: title, lead, tiles, footer, styles; all in one file."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template

ASSETS = Path(__file__).parent / "assets"


def template(asset: Path) -> Template:
    """An asset whose `$names` are to be filled in."""
    return Template(asset.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Frame:
    """What stands around a page's body."""

    title: str
    lead: str
    footer: str
    # Value and meaning of each figure that is to be seen first.
    facts: Iterable[tuple[str, str]]
    # Beside the style that all pages have.
    styles: Sequence[Path] = ()

    def around(self, body: str, script: str = "") -> str:
        """The whole page; `script` is HTML."""
        styles = [ASSETS / "style.css", *self.styles]
        return template(ASSETS / "frame.html").substitute(
            title=self.title,
            lead=escape(self.lead),
            style="\n".join(style.read_text(encoding="utf-8") for style in styles),
            tiles="".join(_tile(*fact) for fact in self.facts),
            body=body,
            footer=self.footer,
            script=script,
        )


def _tile(value: str, meaning: str) -> str:
    return f'<div class="tile"><b>{escape(value)}</b><span>{escape(meaning)}</span></div>'
