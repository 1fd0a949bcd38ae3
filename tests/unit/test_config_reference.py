"""The reference says what the code does."""

from __future__ import annotations

from pathlib import Path

from lyma_server.config import shape
from lyma_server.config.environment import variable_of
from lyma_server.config.presets import PRESETS
from lyma_server.config.reference import render

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "config.md"


def test_the_reference_is_up_to_date():
    assert REFERENCE.read_text(encoding="utf-8") == render(), (
        "run: python -m lyma_server.config.reference > docs/reference/config.md"
    )


def test_every_setting_and_every_known_provider_is_in_it():
    text = render()
    for leaf in shape.leaves():
        path = tuple("NAME" if step == shape.ANY_NAME else step for step in leaf.path)
        assert f"`{variable_of(path)}`" in text
        assert leaf.doc in text
    for name, preset in PRESETS.items():
        assert f"| `{name}` |" in text
        assert (preset.base_url or "") in text
