"""Values found so far, each with where it came from."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from attrs import field, frozen

SettingPath: TypeAlias = tuple[str, ...]


@frozen
class Source:
    """Where a value came from. `where` is the file, the variable, the flag or the preset; empty for a default."""

    kind: Literal["default", "preset", "file", "environment", "flag"]
    where: str = ""


DEFAULT: Final = Source("default")


@frozen
class Layers:
    """Values by path. A provider that is spoken of at all also has its own path, without a meaning of its value."""

    values: dict[SettingPath, Any] = field(factory=dict)
    sources: dict[SettingPath, Source] = field(factory=dict)

    def put(self, path: SettingPath, value: Any, source: Source) -> None:
        """Set a value over what lower layers said."""
        self.values[path], self.sources[path] = value, source

    def fill(self, path: SettingPath, value: Any, source: Source) -> None:
        """Set a value where nothing else did and there is one."""
        if path not in self.values and value is not None:
            self.put(path, value, source)

    def provider(self, name: str, setting: str) -> Any:
        """Return what a provider's setting is by now, or null."""
        return self.values.get(("providers", name, setting))

    def providers(self) -> list[str]:
        """The providers that are spoken of, in order."""
        return list(dict.fromkeys(path[1] for path in self.values if path[0] == "providers"))

    def named(self) -> list[tuple[SettingPath, tuple[str, ...]]]:
        """Every list of providers' names, with its path: the order, and those of the folders."""
        folders = self.values.get(("folders",), ())
        return [(("order",), self.values.get(("order",), ())), *((("folders",), folder.order) for folder in folders)]
