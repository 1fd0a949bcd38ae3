from facts import only_changed, text


def check():
    only_changed("CHANGELOG.md", "docs/install.md", "kit/__init__.py", "pyproject.toml")
    assert 'version = "2.4.0"\ndependencies = ["other==2.3.1"]\n' in text("pyproject.toml"), "pyproject.toml"
    assert text("kit/__init__.py").endswith('\n__version__ = "2.4.0"\n'), "kit/__init__.py"
    assert "pip install kit==2.4.0\n" in text("docs/install.md"), "docs/install.md"
    changes = text("CHANGELOG.md")
    assert "## 2.4.0 - 2025-01-15\n" in changes and "## 2.3.1 - 2024-11-02\n" in changes, "CHANGELOG.md"
