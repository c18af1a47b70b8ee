"""Where the files beside the package are: `data/` and `notebooks/`."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str) -> Path:
    """A clone keeps the folder beside the package; a wheel carries a copy inside it."""
    beside = _PACKAGE.parent / name
    return beside if (_PACKAGE.parent / "pyproject.toml").is_file() else _PACKAGE / "_assets" / name


def data_path(*parts: str) -> Path:
    """The path of a file in `data/`, for example `data_path("prices.csv")`."""
    return _folder("data").joinpath(*parts)


def notebooks_path() -> Path:
    """The folder that holds the lessons."""
    return _folder("notebooks")
