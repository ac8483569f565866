"""What the site is made of beyond Markdown: notebooks that are run, source code, equations, and links to names.

MkDocs calls the functions named ``on_...``. Whatever is missing or fails here fails the build.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parent / "notebooks"
API = Path(__file__).parent / "api"

ROOMS = {
    "model": ["rekindle.model"],
    "files": ["rekindle.io"],
    "sources": ["rekindle.sources", "rekindle.sources.synthetic", "rekindle.prepare"],
    "attacks": ["rekindle.attacks"],
    "defences": ["rekindle.defences", "rekindle.repairing"],
    "evaluation": ["rekindle.evaluation"],
    "audit": ["rekindle.auditing"],
    "figures": ["rekindle.report.figures"],
    "checking": ["rekindle.checking"],
    "membership": ["rekindle.membership"],
    "testing": ["rekindle.testing"],
    "errors": ["rekindle.errors"],
}
"""The page of the reference on which each module's public names are, in the order of the data."""


def failure(message: str) -> Exception:
    """An error that MkDocs shows without a traceback. The names can be checked where MkDocs is not installed."""
    from mkdocs.exceptions import PluginError

    return PluginError(message)


# Names


def public_names() -> dict[str, tuple[str, Any]]:
    """Every public name: where it is imported from, with the page that must describe it and the object."""
    import rekindle

    found: dict[str, tuple[str, Any]] = {}
    for page, modules in ROOMS.items():
        for module in map(import_module, modules):
            for name in getattr(module, "__all__", None) or [n for n in vars(module) if _is_own(module, n)]:
                short = getattr(rekindle, name, None) is getattr(module, name) and name in rekindle.__all__
                found[f"rekindle.{name}" if short else f"{module.__name__}.{name}"] = (page, getattr(module, name))
    return found


def _is_own(module: Any, name: str) -> bool:
    return not name.startswith("_") and getattr(getattr(module, name), "__module__", None) == module.__name__


def undocumented() -> list[str]:
    """What a reader of the reference would miss: one line for each fault."""
    import rekindle

    names = public_names()
    pages = {page: re.findall(r"^::: (\S+)", (API / f"{page}.md").read_text(), re.M) for page in ROOMS}
    faults = [
        f"{name} is on no page of the reference" for name, (page, _) in names.items() if name not in pages[page]
    ]
    described = {name.rpartition(".")[2] for name in names}
    others = {"__version__", "figures"}  # the version, and a room itself
    faults += [f"rekindle.{name} belongs to no room" for name in rekindle.__all__ if name not in described | others]
    for name, (_, thing) in names.items():
        faults += [f"{name}: {fault}" for fault in _faults(thing)]
    return faults


def _faults(thing: Any) -> list[str]:
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return []  # values are described by the text below them, which Python does not keep
    text = thing.__dict__.get("__doc__") if inspect.isclass(thing) else thing.__doc__
    if not text or text.startswith(f"{thing.__name__}("):  # what a dataclass gives itself
        return ["has no docstring"]
    if inspect.isclass(thing) and (issubclass(thing, Exception) or getattr(thing, "_is_protocol", False)):
        return []
    inherited = "".join(base.__doc__ or "" for base in getattr(thing, "__mro__", ())[1:-1])
    words = set(
        re.findall(
            r"\w+", " ".join(re.findall(r"^ *((?:\w+, )*\w+)$", inspect.cleandoc(text) + "\n" + inherited, re.M))
        )
    )
    return [f"does not describe {name}" for name in _parameters(thing) if name not in words]


def _parameters(thing: Any) -> list[str]:
    try:
        given = inspect.signature(thing).parameters
    except ValueError:
        return []
    # One obvious argument is described by the summary; `progress` and `axes` mean the same everywhere.
    names = [name for name in given if name not in ("self", "progress", "axes")]
    return names if len(names) > 1 else []


# Notebooks


def on_files(files: Any, config: Any) -> Any:
    """Run every notebook, and add it as a page, its pictures, and the file to download."""
    from mkdocs.structure.files import File

    faults = undocumented()
    if faults:
        raise failure("The reference is not complete:\n  " + "\n  ".join(faults))
    paths = sorted(NOTEBOOKS.glob("*.py"))
    with ThreadPoolExecutor(2) as threads:
        notebooks = list(threads.map(run_notebook, paths))
    for path, notebook in zip(paths, notebooks, strict=True):
        page, pictures = to_markdown(notebook, path.stem)
        for name, content in {f"{path.stem}.md": page, f"{path.stem}.ipynb": _as_file(notebook), **pictures}.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def run_notebook(path: Path) -> Any:
    """Run a notebook in a kernel and folder of its own; an error in a cell, or a warning, is an error here."""
    import jupytext
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError
    from nbformat.v4 import new_code_cell

    notebook = jupytext.read(path)
    first = "import matplotlib_inline.backend_inline as b\nb.set_matplotlib_formats('svg')"
    notebook.cells.insert(0, new_code_cell(first))
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=240,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
            extra_arguments=["--IPKernelApp.log_level=40"],  # it warns of its own port; the code is no secret
        )
        try:
            client.execute()
        except CellExecutionError as error:
            raise failure(f"{path.name} does not run: {error}") from None
    del notebook.cells[0]
    return notebook


def to_markdown(notebook: Any, name: str) -> tuple[str, dict[str, str]]:
    """Write a notebook that was run as a page and its pictures. Cells with the tag "check" are run but not shown."""
    lines, pictures = [], {}
    for cell in notebook.cells:
        if "check" in cell.metadata.get("tags", ()):
            continue
        if cell.cell_type == "markdown":
            lines.append(cell.source)
            continue
        lines.append(f"```python\n{cell.source}\n```")
        for output in _joined(cell.outputs):
            if output.output_type == "stream":
                if output.name == "stderr":
                    raise failure(f"{name} writes to the error stream: {output.text}")
                lines.append(f"``` {{.text .output}}\n{output.text.rstrip()}\n```")
            elif "image/svg+xml" in output.data:
                if "alt" not in cell.metadata:
                    raise failure(f'{name} has a picture without words; write # %% alt="..." over the cell.')
                picture = f"{name}/{len(pictures)}.svg"
                pictures[picture] = output.data["image/svg+xml"]
                lines.append(f"![{cell.metadata.alt}]({picture})")
            elif "text/html" in output.data:
                lines.append(_table(output.data["text/html"]))
            else:
                lines.append(f"``` {{.text .output}}\n{output.data['text/plain'].rstrip()}\n```")
    title, _, rest = lines[0].partition("\n")
    note = f"*A notebook, run when this site was built: [{name}.ipynb]({name}.ipynb).*"
    return "\n\n".join([title, note, rest.strip(), *lines[1:]]) + "\n", pictures


def _joined(outputs: list[Any]) -> list[Any]:
    """Outputs of a cell, with what was printed in several pieces as one."""
    joined: list[Any] = []
    for output in outputs:
        if joined and output.output_type == joined[-1].output_type == "stream" and output.name == joined[-1].name:
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def _table(html: str) -> str:
    """A frame of Polars as a plain table: without types, quotes and a style of its own."""
    table = html[html.index("<table") : html.index("</table>") + len("</table>")]
    table = re.sub(r"<table[^>]*>", "<table>", table)
    table = re.sub(r"</tr><tr>(<td>\w[^<]*</td>)+</tr></thead>", "</tr></thead>", table)
    table = re.sub(r"<td>&quot;([A-Z]{8,})&quot;</td>", r"<td><code>\1</code></td>", table)  # a path, a letter each
    return table.replace("<td>&quot;", "<td>").replace("&quot;</td>", "</td>").replace("…&quot;", "…")


def _as_file(notebook: Any) -> str:
    """The notebook as it is written, without results; running it produces them."""
    import jupytext

    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return str(jupytext.writes(notebook, fmt="ipynb"))


# Source code, equations, links


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put source code where a page says ``<!-- source: module:name -->``: it is never older than the code itself."""
    markdown = re.sub(r"^<!-- source: (\S+):(\S+) -->$", _source, markdown, flags=re.M)
    return markdown.replace("<!-- names -->", _table_of_names())


def _source(match: re.Match[str]) -> str:
    thing = import_module(match[1])
    for part in match[2].split("."):
        thing = inspect.getattr_static(thing, part)
    code = textwrap.dedent(inspect.getsource(thing))  # type: ignore[arg-type]
    node = ast.parse(code).body[0]
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) and len(node.body) > 1:
        kept = code.splitlines()
        words = node.body[0]
        del kept[words.lineno - 1 : words.end_lineno]
        code = "\n".join(kept)
    path = Path(inspect.getsourcefile(import_module(match[1])) or "").as_posix().rpartition("/src/")[2]
    return f'```python title="{path}"\n{code.strip()}\n```'


def _table_of_names() -> str:
    rows = []
    for page in ROOMS:
        rows.append(f"\n## [{page.capitalize()}]({page}.md)\n\n| | |\n|---|---|")
        for name, (where, thing) in public_names().items():
            if where == page:
                summary = (inspect.getdoc(thing) or "").split("\n")[0] if callable(thing) else "A value."
                short = name.replace("rekindle.", "rk.", 1) if name.count(".") == 1 else name
                rows.append(f"| [`{short}`][{name}] | {summary} |")
    return "\n".join(rows)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Turn equations into MathML, which browsers show without a script, and names into links to the reference."""
    from latex2mathml.converter import convert
    from mkdocs.utils import get_relative_url

    def equation(match: re.Match[str]) -> str:
        formula = match[2].strip().replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">")
        return str(convert(formula[2:-2].strip(), display="block" if match[1] == "div" else "inline"))

    html = re.sub(r'<(div|span) class="arithmatex">(.*?)</\1>', equation, html, flags=re.S)
    names = {name.rpartition(".")[2]: where for name, (where, _) in public_names().items() if name.count(".") == 1}

    def link(match: re.Match[str]) -> str:
        where = names.get(match[1])
        if where is None or page.url.startswith("api/"):
            return match[0]
        address = get_relative_url(f"api/{where}.html#rekindle.{match[1]}", page.url)
        return f'<a href="{address}">{match[0]}</a>'

    # Not within a link, a heading or a block of code.
    parts = re.split(r"(<a\b.*?</a>|<h\d.*?</h\d>|<pre\b.*?</pre>)", html, flags=re.S)
    pattern = re.compile(r"<code>(?:rk|rekindle)\.(\w+)(?:\([^<]*\))?</code>")
    return "".join(part if at % 2 else pattern.sub(link, part) for at, part in enumerate(parts))
