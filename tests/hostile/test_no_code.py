"""Nothing that a user hands in is unpickled, evaluated or passed to a shell."""

import ast
import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.hostile.readers import READERS, attempt

import rekindle as rk
from rekindle.io.safety.untrusted import read_arrays

SOURCES = sorted(Path(rk.__file__).parent.rglob("*.py"))
MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "marshal",
    "shelve",
    "dill",
    "cloudpickle",
    "yaml",
    "subprocess",
    "pty",
    "code",
    "pdb",
}
NAMES = {"eval", "exec", "compile", "__import__", "execfile"}
ATTRIBUTES = {"system", "popen", "read_pickle", "literal_eval", "fork", "execv", "execve", "spawnv", "eval_str"}
LOADERS = {"load", "loads"}
SAFE_LOADERS = {"json", "tomllib"}
ALLOWED = {"cli/shared.py", "cli/running.py", "defences/parse.py"}
"""Import a module by a name that is not fixed: an attack of the user's own, or a command, named on the command line, and the
modules of the room of defences; no file can name one."""

FIXED_COMMANDS = {"assignment/kernels.py"}
"""Run this Python with a module of this package, whose name is written in the source."""


def _is_fixed(call: ast.Call) -> bool:
    """Whether a command is this Python and constants."""
    if not call.args or not isinstance(call.args[0], ast.List):
        return False
    first, *rest = call.args[0].elts
    return ast.unparse(first) == "sys.executable" and all(isinstance(one, ast.Constant) for one in rest)


def offences(tree: ast.AST, file: str) -> list[str]:
    """What a module does that could run what a file holds."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            banned = MODULES - ({"subprocess"} if file in FIXED_COMMANDS else set())
            found += [f"imports {name}" for name in names if name.split(".")[0] in banned]
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in NAMES:
            found.append(f"calls {called.id}")
        if isinstance(called, ast.Attribute):
            owner = called.value.id if isinstance(called.value, ast.Name) else ""
            if called.attr in ATTRIBUTES and owner not in ("platform",):
                found.append(f"calls {owner}.{called.attr}")
            if owner == "subprocess" and not _is_fixed(node):
                found.append("runs a command that is not fixed")
            if called.attr in LOADERS and owner not in SAFE_LOADERS:
                found.append(f"calls {owner}.{called.attr}")
            fixed = bool(node.args) and isinstance(node.args[0], ast.Constant)
            if called.attr == "import_module" and not fixed and file not in ALLOWED:
                found.append("imports a module by name")
        for keyword in node.keywords:
            value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
            if keyword.arg in ("allow_pickle", "shell") and value is not False:
                found.append(f"{keyword.arg} is not False")
            if keyword.arg == "allow_object":
                found.append("allows objects")
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_module_can_run_what_a_file_holds(path):
    file = path.relative_to(Path(rk.__file__).parent).as_posix()
    assert offences(ast.parse(path.read_text()), file) == []


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from marshal import loads",
        "import yaml",
        "eval(text)",
        "exec(text)",
        "os.system(text)",
        "os.popen(text)",
        "np.load(path)",
        "joblib.load(path)",
        "np.lib.format.read_array(file, allow_pickle=True)",
        "run(text, shell=True)",
        "importlib.import_module(name)",
        "pd.read_pickle(path)",
        "subprocess.run([sys.executable, name])",
    ],
)
def test_the_scan_finds(code):
    assert offences(ast.parse(code), "a.py")


class Trap:
    """Unpickling it writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture
def sprung(tmp_path):
    return tmp_path / "sprung"


def test_a_trap_works(sprung):
    pickle.loads(pickle.dumps(Trap(sprung)))
    assert sprung.exists()


def test_a_pickle_in_a_saved_run(tmp_path, sprung):
    trap = np.array([Trap(sprung)], dtype=object)
    for arrays in ({"head": trap}, {"head": np.array("{}"), "ids": trap}):
        np.savez(tmp_path / "run.npz", **arrays)
        with pytest.raises(rk.errors.InvalidFile):
            rk.resume(tmp_path / "run.npz")
        with pytest.raises(rk.errors.InvalidFile, match="holds object"):
            read_arrays(tmp_path / "run.npz")
    (tmp_path / "run.npz").write_bytes(pickle.dumps(Trap(sprung)))
    with pytest.raises(rk.errors.InvalidFile):
        rk.resume(tmp_path / "run.npz")
    assert not sprung.exists()


@pytest.mark.parametrize("name", READERS)
def test_a_pickle_for_any_reader(name, tmp_path, sprung):
    """As the file itself, as an entry of a zip, and as the header of an array."""
    reader, trap = READERS[name], pickle.dumps(Trap(sprung), protocol=0)
    entry = io.BytesIO()
    with zipfile.ZipFile(entry, "w") as archive:
        archive.writestr("head.npy", trap)
    for content in (trap, pickle.dumps(Trap(sprung)), entry.getvalue()):
        assert attempt(reader, content, tmp_path / "files") != "read"
    assert not sprung.exists()


def test_a_pickle_in_parquet(tmp_path, sprung):
    """As binary cells, and as the metadata in which other tools keep a schema of Python objects."""
    trap = pickle.dumps(Trap(sprung))
    table = pl.DataFrame({"location": ["a"], "x_km": [0.0], "y_km": [1.0], "object": [trap]})
    metadata = {
        "pandas": trap.hex(),
        "ARROW:extension:name": "arrow.py_extension_type",
        "ARROW:extension:metadata": trap.hex(),
    }
    table.write_parquet(tmp_path / "a.parquet", metadata=metadata)
    assert rk.read_locations(tmp_path / "a.parquet").ids == ("a",)
    table.select(location="object", x_km="x_km", y_km="y_km").write_parquet(tmp_path / "b.parquet")
    with pytest.raises(rk.errors.InvalidFile):
        rk.read_locations(tmp_path / "b.parquet")
    assert not sprung.exists()


def test_an_extension_type_of_arrow(tmp_path, sprung):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    trap = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickle.dumps(Trap(sprung), protocol=0),
    }
    fields = [
        pa.field("location", pa.string(), metadata=trap),
        pa.field("x_km", pa.float64()),
        pa.field("y_km", pa.float64()),
    ]
    pq.write_table(pa.table([["a"], [0.0], [1.0]], schema=pa.schema(fields)), tmp_path / "a.parquet")
    with pytest.raises(rk.errors.InvalidFile):
        rk.read_locations(tmp_path / "a.parquet")
    assert not sprung.exists()


def test_text_is_not_run(tmp_path, monkeypatch):
    """Text that Python, a shell or a template would run is a name like any other."""
    monkeypatch.chdir(tmp_path)
    names = [
        "__import__('os').system('touch sprung')",
        "$(touch sprung)",
        "`touch sprung`",
        "; touch sprung",
        "{{7*7}}",
        "{0.__class__}",
    ]
    places = rk.Locations(np.arange(2.0 * len(names)).reshape(-1, 2), names)
    counts = rk.Counts(np.ones((2, len(names)), int), places, rk.Calendar("2024-01-01", "1h", 2))
    rk.write_dataset(tmp_path / "data", counts=counts)
    assert rk.read_dataset(tmp_path / "data").locations.ids == tuple(names)
    assert not (tmp_path / "sprung").exists()
