"""The rules of the house on imports, read from the sources: they point down, without circles."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import memlab

PACKAGE = Path(memlab.__file__).parent

# From the bottom up. A module may import what stands on its own level or below.
LEVELS = [
    "errors checks assets vocabulary tokens prices",
    "contents usage messages vectors markup",
    "session trace",
    "tools lexical ranking response",
    "stores",
    "providers",
    "turn agent",
    "clients interop settings settings_sources settings_values",
    "experiments",
    "show",
    "console doctor tour console_chat console_lab console_orders console_serve console_sweep cli",
]
LEVEL_OF = {name: level for level, names in enumerate(LEVELS) for name in names.split()}

# A client that was built without arguments asks where to go, when it is called.
EXCEPTIONS = {("memlab.clients.base", "memlab.settings")}
OFFLINE_MAY_USE = {"memlab.tokens", "memlab.errors", "memlab.assets"}
MAY_USE_OFFLINE = {"memlab.settings", "memlab.console_serve"}


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports_of(name: str, within_functions: bool = True) -> set[str]:
    """The modules of memlab that a module imports at run time."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    targets = set()
    for node in _statements(tree, within_functions):
        if isinstance(node, ast.Import):
            targets |= {alias.name for alias in node.names}
        else:
            assert node.level == 0, f"{name} has a relative import, which this test does not read"
            for alias in node.names:
                if (node.module, alias.name) == ("memlab", "__version__"):
                    continue
                submodule = f"{node.module}.{alias.name}"
                targets.add(submodule if submodule in MODULES else node.module)
    return {target for target in targets if target.partition(".")[0] == "memlab" and target != name}


def _statements(node: ast.AST, within_functions: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield from _statements(other, within_functions)
        elif within_functions or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _statements(child, within_functions)


def is_offline(name: str) -> bool:
    return name == "memlab.offline" or name.startswith("memlab.offline.")


OUTSIDE = [name for name in MODULES if name != "memlab" and not is_offline(name)]


@pytest.mark.parametrize("name", OUTSIDE)
def test_imports_point_down(name):
    own = name.split(".")[1]
    assert own in LEVEL_OF, f"{name}: say in LEVELS where {own} stands"
    for target in imports_of(name):
        if is_offline(target) or (name, target) in EXCEPTIONS:
            continue
        assert target != "memlab", f"{name} imports the package as a whole; name the module"
        other = target.split(".")[1]
        assert LEVEL_OF[other] <= LEVEL_OF[own], f"{name} imports {target}, which stands above it"


def test_the_exceptions_are_needed():
    for name, target in EXCEPTIONS:
        assert target in imports_of(name)
        assert target not in imports_of(name, within_functions=False)


def test_there_are_no_circles():
    graph = {name: {t for t in imports_of(name) if (name, t) not in EXCEPTIONS} for name in MODULES}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize("name", [name for name in MODULES if is_offline(name)])
def test_the_endpoint_knows_nothing_of_the_rest(name):
    outside = {target for target in imports_of(name) if not is_offline(target)}
    assert outside <= OFFLINE_MAY_USE


@pytest.mark.parametrize("name", OUTSIDE)
def test_the_rest_knows_nothing_of_the_endpoint(name):
    if name not in MAY_USE_OFFLINE:
        assert not [target for target in imports_of(name) if is_offline(target)]


def test_this_test_can_see_an_import():
    assert "memlab.messages" in imports_of("memlab.agent")
    assert "memlab.offline.transport" in imports_of("memlab.settings")
    assert "memlab.offline.transport" not in imports_of("memlab.settings", within_functions=False)
    assert "memlab.agent" not in imports_of("memlab.providers.base")  # for type checkers only


# --- what `import memlab` loads, and the names it gives ---


def test_importing_memlab_loads_nothing_heavy():
    code = "import memlab, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "memlab" in loaded
    heavy = {"openai", "pandas", "matplotlib", "sklearn", "ipywidgets", "numpy", "tiktoken", "pydantic"}
    assert heavy.isdisjoint(loaded)


def test_an_agent_is_made_without_openai_and_pandas():
    code = (
        "import memlab, sys; memlab.Agent(memlab.OpenAIChatCompletionClient()); memlab.InMemoryVectorStore()\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"openai", "pandas", "matplotlib", "sklearn", "ipywidgets"}.isdisjoint(loaded)


def test_every_public_name_resolves_and_is_known_to_type_checkers():
    tree = ast.parse(MODULES["memlab"].read_text(encoding="utf-8"))
    (block,) = [n for n in tree.body if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)]
    declared = {alias.name: node.module for node in block.body for alias in node.names}
    assert memlab.__all__ == sorted(declared)
    assert set(memlab.__all__) <= set(dir(memlab))
    for name, module in declared.items():
        value = getattr(memlab, name)
        assert value is getattr(sys.modules[module], name)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = memlab.no_such_name


# --- modules stay readable ---


def test_every_module_says_what_it_is():
    for name, path in MODULES.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree) or not tree.body, f"{name} has no docstring"
