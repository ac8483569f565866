"""Every reader of Rekindle, and how to make files for it: valid ones changed a little, and well-formed ones of hostile values."""

import gzip
import io
import json
import re
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import typer
from tests.small import random_truth

import rekindle as rk
from rekindle.attacks.saving import read_run
from rekindle.auditing.store import Store
from rekindle.auditing.tasks import Result
from rekindle.checking import Settings, check, read_published_table
from rekindle.checking.linter import read_config
from rekindle.defences.parse import parse_defence
from rekindle.io.recovery import RecoveryFolder
from rekindle.io.safety.clean import find_traces
from rekindle.io.tables.locations import write_locations
from rekindle.io.tables.published import read_published
from rekindle.io.tables.trajectories import read_trajectories, write_trajectories
from rekindle.model.calendar import parse_step
from rekindle.sources import read_cabspotting, read_geolife, read_points, read_porto
from rekindle.sources.engine import collect

TEXTS = tuple(
    """||0|-0|-0.0|1|2|3|1.0|1e3|-1|nan|NaN|inf|-Infinity|1e400|0x10|1_0|9223372036854775807|9223372036854775808|é|😀|٣|
-9223372036854775809|340282366920938463463374607431768211456|=1+1|+1|@a|'=1|a,b|a"b|<b>x</b>|^.*$|*|null|None|True|(0, 0)|
(0, 1)|(999999, 999999)|(1.5, 2e3)|(nan, inf)|2024-03-01 00:00:00|2024-03-01T02:00|2024-03-01 04:00:00|2024-03-01|
0000-00-00|9999-12-31 23:59:59|2024-02-30 00:00:00|2024-03-01 00:00:00+25:00|2024-03-01T00:00:00Z|-1-01-01|
1970-01-01 00:00:00.5|6024-03-01 00:00:00|datetime|location|count|person|lat|lng|x_km|y_km|ID|towerlocation|time|__line|
\t=|a\nb|a\r\nb|\r|\x00|\ufeff|\u2028""".replace("|\n", "|").split("|")
)
NUMBERS = tuple(
    map(
        float,
        [
            "0",
            "-0.0",
            "1",
            "2",
            "3",
            "-1",
            "0.5",
            "1e300",
            "nan",
            "inf",
            "2147483648",
            "9e15",
            "9.3e18",
            "-9.3e18",
            "40",
            "116.3",
            "90.1",
        ],
    )
)
VALUES = (
    None,
    True,
    False,
    2**53,
    2**63,
    10**30,
    -1,
    0.5,
    1e300,
    "",
    "2h",
    "1d",
    "2024-03-01 00:00:00",
    "\ud800",
    [],
    {},
    [[]],
)


class Draw:
    """Choices that bytes make, so that a fuzzer that changes a byte changes a choice."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, below: int) -> int:
        value, size = 0, max(1, (max(below, 1) - 1).bit_length() + 7 >> 3)
        taken = self.data[self.at : self.at + size]
        self.at += size
        if len(taken) < size:  # nothing is left: the last option, which is never a hostile one
            return max(below, 1) - 1
        for byte in taken:
            value = value << 8 | byte
        return value % max(below, 1)

    def pick(self, options):
        return options[self.number(len(options))]

    def rest(self) -> bytes:
        return self.data[self.at :]


@dataclass(frozen=True)
class Reader:
    """A reader, and files for it.

    Parameters
    ----------
    name
        What it reads.
    file
        Where the bytes go, within a folder.
    valid
        Gives files that are read.
    build
        Makes a well-formed file of hostile values.
    read
        Reads the folder.
    """

    name: str
    file: str
    valid: Callable[[], tuple[bytes, ...]]
    build: Callable[[Draw], bytes]
    read: Callable[[Path], object]

    def make(self, data: bytes) -> bytes:
        """The file that some bytes stand for: as they are, a valid file with changes, or one that is built."""
        draw = Draw(data)
        how = draw.number(8)
        if how == 0:
            return draw.rest()
        return self.build(draw) if how > 4 else change(draw.pick(self.valid()), draw)


def change(content: bytes, draw: Draw) -> bytes:
    """Change a few places of a file."""
    changed = bytearray(content)
    for _ in range(1 + draw.number(4)):
        at, length = draw.number(len(changed) + 1), 1 + draw.number(8)
        how = draw.number(7)
        if how == 0:
            changed[at : at + 1] = bytes([draw.number(256)])
        elif how == 1:
            del changed[at : at + length]
        elif how == 2:
            changed[at:at] = changed[draw.number(len(changed) + 1) :][: 8 * length]
        elif how == 3:
            changed[at:at] = draw.pick(TEXTS).encode()
        elif how == 4:
            changed[at : at + length] = b"\xff" * length
        elif how == 5:
            changed[at : at + 1] = bytes([changed[at] ^ 1 << draw.number(8)]) if at < len(changed) else b"\n"
        else:
            del changed[at:]
    return bytes(changed)


def _table(draw: Draw, columns: tuple[str, ...], cells: dict[str, tuple]) -> dict[str, list]:
    """Columns of mostly good cells, with a hostile name or cell here and there."""
    rows = draw.number(9)
    names = [draw.pick(TEXTS) if draw.number(12) == 0 else name for name in columns]
    names += [draw.pick(TEXTS) for _ in range(draw.number(3) if draw.number(3) == 0 else 0)]

    def cell(name: str, row: int):
        good = cells.get(name, ("1", "2"))
        return draw.pick(TEXTS) if draw.number(16) == 0 else good[row % len(good)]

    return {name: [cell(name, row) for row in range(rows)] for name in names}


def _csv(columns: tuple[str, ...], cells: dict[str, tuple]) -> Callable[[Draw], bytes]:
    def build(draw: Draw) -> bytes:
        table = _table(draw, columns, cells)
        end, encoding = (
            draw.pick(("\r", "\r\n", "\n", "\n")),
            draw.pick(("utf-8-sig", "utf-16", "latin-1", *("utf-8",) * 5)),
        )
        quote = draw.pick((False, True, True))

        def one(text: object) -> str:
            text = str(text)
            return '"' + text.replace('"', '""') + '"' if quote and re.search(r'[",\r\n]', text) else text

        lines = [list(table), *zip(*table.values(), strict=True)]
        text = "".join(",".join(map(one, line)) + end for line in lines)
        return text.encode(encoding, "replace")

    return build


def _parquet(columns: tuple[str, ...], cells: dict[str, tuple]) -> Callable[[Draw], bytes]:
    kinds = (
        pl.String,
        pl.Float64,
        pl.Int64,
        pl.UInt64,
        pl.Float32,
        pl.Boolean,
        pl.Datetime("us"),
        pl.Datetime("ms", "UTC"),
    )
    kinds += (
        pl.Date,
        pl.Categorical,
        pl.Binary,
        pl.List(pl.Int64),
        pl.Null,
        pl.Time,
        pl.Duration("us"),
        pl.Decimal(38, 2),
        pl.Int8,
    )

    def build(draw: Draw) -> bytes:
        series = []
        for name, texts in _table(draw, columns, cells).items():
            column = pl.Series(name, texts, dtype=pl.String)
            if name == "datetime" and draw.number(4):
                column = column.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False)
            elif draw.number(3) == 0:
                numbers = pl.Series(name, [draw.pick(NUMBERS) for _ in texts], dtype=pl.Float64, strict=False)
                kind = draw.pick(kinds)
                try:
                    column = (column if draw.number(2) else numbers).cast(kind, strict=False)
                except pl.exceptions.PolarsError:
                    column = pl.Series(name, [None] * len(texts), dtype=kind)
            series.append(column)
        packed = draw.pick(("zstd", "uncompressed", "snappy", "gzip", "lz4"))
        file = io.BytesIO()
        pl.DataFrame(series).write_parquet(file, compression=packed, statistics=bool(draw.number(2)))
        return change(file.getvalue(), draw) if draw.number(3) == 0 else file.getvalue()

    return build


def _json(
    keys: tuple[str, ...], valid: Callable[[], tuple[bytes, ...]], part: str = "calendar"
) -> Callable[[Draw], bytes]:
    def value(draw: Draw, depth: int):
        how = draw.number(6)
        if how == 0 and depth < 4:
            return [value(draw, depth + 1) for _ in range(draw.number(4))]
        if how == 1 and depth < 4:
            return {draw.pick(keys): value(draw, depth + 1) for _ in range(draw.number(4))}
        return draw.pick(VALUES)

    def build(draw: Draw) -> bytes:
        document = json.loads(draw.pick(valid()))
        for _ in range(1 + draw.number(3)):
            inner = draw.pick((document, document, document.get(part, document)))
            if not isinstance(inner, dict):
                continue
            key = draw.pick((*keys, *list(inner)))
            inner[key] = value(draw, 0)
        text = json.dumps(document)
        if draw.number(20) == 0:
            depth = 10 ** draw.number(6)
            text = '{"a":' + "[" * depth + "]" * depth + "}"
        return text.encode()

    return build


def _npy(draw: Draw, array: np.ndarray) -> bytes:
    """An array as a file, whose header may lie."""
    file = io.BytesIO()
    np.lib.format.write_array(file, array)
    content = file.getvalue()
    if draw.number(4):
        return content
    body = content[128:]
    shape = draw.pick(
        (
            "()",
            "(0,)",
            "(1,)",
            "(1152921504606846976,)",
            "(-1,)",
            "(3, 2)",
            "(2,)",
            "(4294967296, 4294967296)",
            "(1.5,)",
        )
    )
    descr = draw.pick(
        (
            "'<f8'",
            "'|O'",
            "'<i8'",
            "'<U4'",
            "'|S8'",
            "'<M8[s]'",
            "[('a', '<f8')]",
            "'|V8'",
            "'<c16'",
            "'<U1000000000'",
        )
    )
    head = f"{{'descr': {descr}, 'fortran_order': {draw.pick(('False', 'True', '__import__'))}, 'shape': {shape}}}".encode()
    if draw.number(8) == 0:
        head = change(head, draw)
    version = draw.pick((b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x00"))
    size = len(head).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + size + head + body


def _npz(valid: Callable[[], tuple[bytes, ...]], texts: tuple[str, ...]) -> Callable[[Draw], bytes]:
    @np.errstate(all="ignore")
    def build(draw: Draw) -> bytes:
        with np.load(io.BytesIO(draw.pick(valid()))) as stored:
            arrays = {name: stored[name] for name in stored.files}
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", draw.pick((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
            for name, array in arrays.items():
                how = draw.number(8)
                if how == 0:
                    continue
                if how == 1:
                    array = np.array(draw.pick(NUMBERS))
                elif how == 2:
                    array = (
                        array.astype(draw.pick(("f8", "i8", "i4", "u8", "U8", "S8", "?", "f2")), copy=False)
                        if array.dtype.kind in "fiu"
                        else array
                    )
                elif how == 3:
                    array = array.reshape(-1)[: draw.number(array.size + 1)]
                elif how == 4 and array.dtype.kind == "U":
                    array = np.array(draw.pick(texts))
                elif how == 5 and array.size and array.dtype.kind in "fi":
                    array = array.copy()
                    array.reshape(-1)[draw.number(array.size)] = np.float64(draw.pick(NUMBERS)).astype(array.dtype)
                archive.writestr(name + draw.pick((".npy",) * 9 + ("",)), _npy(draw, np.asarray(array)))
        return file.getvalue()

    return build


def _zip(entry: Callable[[Draw], bytes]) -> Callable[[Draw], bytes]:
    def build(draw: Draw) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(
            file, "w", draw.pick((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
        ) as archive:
            for number in range(draw.number(4)):
                name = draw.pick(
                    ("../{}.plt", "/etc/{}.plt", "C:\\{}.plt", "a/..\\{}.plt", "Trajectory/{}.plt", "{}")
                    + ("Data/000/Trajectory/{}.plt",) * 6
                )
                archive.writestr(name.format(number), entry(draw))
        return change(file.getvalue(), draw) if draw.number(3) == 0 else file.getvalue()

    return build


def _lines(head: tuple[str, ...], cells: tuple[tuple[str, ...], ...], separator: str) -> Callable[[Draw], bytes]:
    def build(draw: Draw) -> bytes:
        end = draw.pick(("\r\n", "\n", "\n"))
        lines = [draw.pick(TEXTS) if draw.number(24) == 0 else line for line in head]
        for row in range(draw.number(6)):
            line = [draw.pick(TEXTS) if draw.number(16) == 0 else good[row % len(good)] for good in cells]
            lines.append(separator.join(line[: len(line) - (draw.number(12) == 0)]))
        return (end.join(lines) + end).encode(draw.pick(("latin-1", "utf-16", *("utf-8",) * 5)), "replace")

    return build


def _words(words: tuple[str, ...]) -> Callable[[Draw], bytes]:
    def build(draw: Draw) -> bytes:
        return "".join(draw.pick((*words, *words, *TEXTS)) for _ in range(1 + draw.number(8))).encode(
            "utf-8", "replace"
        )

    return build


@cache
def people() -> rk.Trajectories:
    """Three people in three places over a day and a half."""
    truth = random_truth(np.random.default_rng(1), people=3, places=3, steps=9, step="4h")
    return rk.Trajectories(
        truth.cells, rk.Locations(truth.locations.xy_km, ["(0, 0)", "(0, 1)", "c"]), truth.calendar
    )


@cache
def _written(suffix: str, kind: str) -> tuple[bytes, ...]:
    import tempfile

    from rekindle.io.tables.release import write_release

    truth = people()
    counts, found = truth.counts(), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x.{suffix}"
        release = rk.Suppress(below=2)(counts)
        writers = {
            "counts": [
                lambda form=form: rk.write_counts(path, counts, form=form, overwrite=True)
                for form in ("long", "wide")
            ],
            "release": [
                lambda form=form: write_release(path, release, form=form, overwrite=True) for form in ("long", "wide")
            ],
            "flows": [
                lambda flows=flows: rk.write_flows(path, flows, overwrite=True)
                for flows in (truth.flows(), truth.flows(stayers=False), [truth.flows(), truth.flows("8h")])
            ],
            "locations": [lambda: write_locations(path, counts.locations, overwrite=True)],
            "truth": [lambda: write_trajectories(path, truth, overwrite=True)],
        }[kind]
        for write in writers:
            write()
            found.append(path.read_bytes())
    return tuple(found)


def _valid(suffix: str, kind: str) -> Callable[[], tuple[bytes, ...]]:
    return lambda: _written(suffix, kind)


@cache
def _folder(kind: str) -> dict[str, bytes]:
    """The files of a dataset or recovery folder, a saved run or a task of an audit."""
    import tempfile

    counts = people().counts()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "x"
        if kind == "dataset":
            flows = [people().flows(), people().flows("8h", stayers=False)]
            rk.write_dataset(path, counts=counts, truth=people(), flows=flows, info={"source": "nobody"})
        elif kind == "release":
            path.mkdir()
            defended = parse_defence("sample:share=0.9 + suppress:below=2")(people())
            rk.write_release(path / "x.csv", defended)
        elif kind == "recovery":
            folder = RecoveryFolder(
                path, attack="baseline", settings={}, locations=counts.locations, calendar=counts.calendar, people=3
            )
            for day in counts.calendar.days():
                folder.add(
                    people().part(day), details={"step_costs": np.zeros(day.stop - day.start), "gaps": np.zeros(1)}
                )
        else:
            path.mkdir()
            run = rk.Baseline().start(counts.locations, counts.calendar, people=3)
            for part in counts.days():
                run.feed(part)
            run.save(path / "run.npz")
            Store(path / "tasks").put("task", Result({"a": 1.5}, {"b": np.arange(3.0)}))
            shutil.copy(path / "tasks" / "task.npz", path)
            shutil.rmtree(path / "tasks")
        return {file.name: file.read_bytes() for file in path.iterdir() if not file.name.startswith(".")}


def _stored(kind: str, file: str) -> Callable[[], tuple[bytes, ...]]:
    return lambda: (_folder(kind)[file],)


def _within(kind: str, read: Callable[[Path], object]) -> Callable[[Path], object]:
    """Read a folder of which one file is hostile; the others are put there once."""

    def read_folder(folder: Path) -> object:
        for name, content in _folder(kind).items():
            if not (folder / name).exists():
                (folder / name).write_bytes(content)
        return read(folder)

    return read_folder


def _task(folder: Path) -> object:
    store = Store(None)
    store.folder = folder
    found = store.get("task")
    if found is None:
        raise rk.errors.InvalidFile(folder / "task.npz", "it is damaged, and computed again.")
    return found


def _release(folder: Path) -> object:
    """Read a release with a hostile statement of its defences, whose digest is right if it ever was."""
    (folder / "x.csv").write_bytes(_folder("release")["x.csv"])
    return rk.read_release(folder / "x.csv", people().locations)


def _traces(folder: Path) -> object:
    """Look for what `rekindle clean` would remove; a mark that is not ours lists nothing, which counts as refused."""
    found = find_traces(folder, truth=True, recoveries=True)
    outside = [trace.path for trace in found if not trace.path.resolve().is_relative_to(folder.resolve())]
    assert not outside, outside
    if not found:
        raise rk.errors.InvalidFile(folder / "rekindle.json", "it lists nothing that is there.")
    return found


def _settings(folder: Path) -> object:
    found = read_config(folder)
    return found.pop("ignore", None), Settings(**found)


def _points(file: str, **settings) -> Callable[[Path], object]:
    return lambda folder: collect(read_points(folder / file, **settings).frame)


def _text(file: str, parse: Callable[[str], object]) -> Callable[[Path], object]:
    return lambda folder: parse((folder / file).read_bytes().decode("utf-8", "surrogateescape"))


LONG = {
    "datetime": ("2024-03-01 00:00:00", "2024-03-01 04:00:00", "2024-03-01 08:00:00"),
    "location": ("(0, 0)", "(0, 0)", "(0, 0)", "c", "c", "c"),
    "count": ("2",),
}
MOVES = {
    "datetime": LONG["datetime"],
    "origin": ("(0, 0)", "(0, 0)", "c"),
    "destination": ("(0, 0)", "c", "c"),
    "count": ("2",),
    "window": ("4h", "4h", "4h", "4h", "8h"),
}
PLACES = {
    "location": ("(0, 0)", "(0, 1)", "c", "d", "e", "f", "g", "h"),
    "x_km": ("0", "1", "2.5"),
    "y_km": ("0.5", "-1"),
    "lat": ("40.0", "40.1"),
    "lng": ("116.3",),
}
PAPER = {"ID": PLACES["location"], "towerlocation": ("(0.5, 1.5)", "(2, 3)")}
TRUTH = {"person": ("0", "1", "2"), "datetime": LONG["datetime"], "location": LONG["location"]}
RAW = {
    "person": ("a", "a", "a", "b", "b", "b", "c", "c"),
    "time": ("2024-03-01 00:00:00", "2024-03-01 00:10:00", "2024-03-01T00:20:00"),
    "lat": ("40.0", "40.01"),
    "lng": ("116.3", "116.31"),
}
FLOWS = {
    "date": ("2024-03-01", "2024-03-01", "2024-03-02"),
    "origin": ("a", "a", "b", "total"),
    "destination": ("b", "c", "Total"),
    "trips": ("5", "<10", "", "15", "20", "[REDACTED]"),
}
TAXI = {
    "TAXI_ID": ("1", "2"),
    "TIMESTAMP": ("1372636858", "1372637303"),
    "MISSING_DATA": ("False",),
    "POLYLINE": ("[[-8.61,41.14],[-8.62,41.15]]", "[]"),
}
PLT_HEAD = (
    "Geolife trajectory",
    "WGS 84",
    "Altitude is in Feet",
    "Reserved 3",
    "0,2,255,My Track,0,0,2,8421376",
    "0",
)
PLT = (
    ("39.98", "39.99"),
    ("116.30", "116.31"),
    ("0",),
    ("492",),
    ("39744.1",),
    ("2008-10-23",),
    ("02:53:04", "02:53:10", "02:54:00", "02:55:00", "02:56:00", "02:57:00"),
)
CAB = (
    ("37.75", "37.76"),
    ("-122.39",),
    ("0", "1"),
    ("1213084687", "1213084659", "1213084540", "1213084489", "1213084237", "1213084177"),
)
_plt, _cab = _lines(PLT_HEAD, PLT, ","), _lines((), CAB, " ")
_flows = _csv(tuple(FLOWS), FLOWS)
_taxi, _raw = _csv(tuple(TAXI), TAXI), _csv(tuple(RAW), RAW)


def _built(build: Callable[[Draw], bytes]) -> Callable[[], tuple[bytes, ...]]:
    """A file of good cells only."""
    return cache(lambda: (build(Draw(b"")),))


DEFENCES = (
    "suppress",
    "round",
    "cap",
    "laplace",
    "geometric",
    "coarser-space",
    "coarser-time",
    "sample",
    "none",
    "+",
    ":",
    "=",
    ",",
)
DEFENCES += (
    "below",
    "to",
    "epsilon",
    "at",
    "share",
    "seed",
    "per",
    "5",
    "10",
    "0.5",
    "true",
    "-1",
    "1e999",
    "NaN",
    "[",
    "{",
)
TOML = (
    "[",
    "]",
    "tool",
    ".",
    "rekindle",
    "check",
    "\n",
    "ignore",
    "narrow",
    "withheld-below",
    "=",
    "'a'",
    "[tool.rekindle.check]\n",
)
TIMES = ("2024", "-", "03", "01", "T", " ", "00:00", ":", "Z", "+02:00", "W", "9999", "0000", "h", "min", "10", "s")


def _statement(draw: Draw) -> bytes:
    """What is said of a release, of the digest that belongs to it: lies about what was done."""
    stated = json.loads(_folder("release")["x.csv.defences.json"])
    for one in stated["defences"]:
        for name in list(one):
            if draw.number(6) == 0:
                one[name] = draw.pick(VALUES)
    if draw.number(8) == 0:
        stated[draw.pick(("sha256", "public_locations", "defences"))] = draw.pick(VALUES)
    return json.dumps(stated).encode()


def _both(text: str) -> object:
    from rekindle.cli.shared import parse_time

    try:
        return parse_time(text)
    except typer.BadParameter:
        return parse_step(text)


READERS = {
    reader.name: reader
    for reader in (
        Reader(
            "counts csv",
            "x.csv",
            _valid("csv", "counts"),
            _csv(tuple(LONG), LONG),
            lambda f: rk.read_counts(f / "x.csv", people().locations),
        ),
        Reader(
            "counts parquet",
            "x.parquet",
            _valid("parquet", "counts"),
            _parquet(tuple(LONG), LONG),
            lambda f: rk.read_counts(f / "x.parquet", people().locations),
        ),
        Reader(
            "flows csv",
            "x.csv",
            _valid("csv", "flows"),
            _csv(tuple(MOVES), MOVES),
            lambda f: rk.read_flows(f / "x.csv", people().locations, window="4h"),
        ),
        Reader(
            "flows parquet",
            "x.parquet",
            _valid("parquet", "flows"),
            _parquet(tuple(MOVES), MOVES),
            lambda f: rk.read_flows(f / "x.parquet", people().locations, window="4h"),
        ),
        Reader(
            "locations csv",
            "x.csv",
            _valid("csv", "locations"),
            lambda d: _csv(*d.pick(((tuple(PLACES), PLACES), (tuple(PAPER), PAPER))))(d),
            lambda f: rk.read_locations(f / "x.csv"),
        ),
        Reader(
            "locations parquet",
            "x.parquet",
            _valid("parquet", "locations"),
            _parquet(tuple(PLACES), PLACES),
            lambda f: rk.read_locations(f / "x.parquet"),
        ),
        Reader(
            "release csv",
            "x.csv",
            _valid("csv", "release"),
            _csv(tuple(LONG), LONG),
            lambda f: rk.read_release(f / "x.csv", people().locations),
        ),
        Reader(
            "release parquet",
            "x.parquet",
            _valid("parquet", "release"),
            _parquet(tuple(LONG), LONG),
            lambda f: rk.read_release(f / "x.parquet", people().locations),
        ),
        Reader(
            "defences of a release",
            "x.csv.defences.json",
            _stored("release", "x.csv.defences.json"),
            _statement,
            _release,
        ),
        Reader(
            "published csv",
            "x.csv",
            lambda: (*_written("csv", "counts"), *_written("csv", "release")),
            _csv(tuple(LONG), LONG),
            lambda f: read_published(f / "x.csv", people().locations),
        ),
        Reader(
            "published parquet",
            "x.parquet",
            lambda: (*_written("parquet", "counts"), *_written("parquet", "release")),
            _parquet(tuple(LONG), LONG),
            lambda f: read_published(f / "x.parquet", people().locations),
        ),
        Reader(
            "checked csv",
            "x.csv",
            lambda: (*_written("csv", "release"), _built(_flows)()[0]),
            lambda d: d.pick((_csv(tuple(LONG), LONG), _flows))(d),
            lambda f: check(read_published_table(f / "x.csv")),
        ),
        Reader(
            "checked parquet",
            "x.parquet",
            _valid("parquet", "release"),
            lambda d: _parquet(*d.pick(((tuple(LONG), LONG), (tuple(FLOWS), FLOWS))))(d),
            lambda f: check(read_published_table(f / "x.parquet")),
        ),
        Reader(
            "settings of the check",
            "pyproject.toml",
            lambda: (b'[tool.rekindle.check]\nignore = ["small-numbers"]\nwithheld-below = 10\n',),
            _words(TOML),
            _settings,
        ),
        Reader(
            "trajectories csv",
            "x.csv",
            _valid("csv", "truth"),
            _csv(tuple(TRUTH), TRUTH),
            lambda f: read_trajectories(f / "x.csv", people().locations, people().calendar),
        ),
        Reader(
            "trajectories parquet",
            "x.parquet",
            _valid("parquet", "truth"),
            _parquet(tuple(TRUTH), TRUTH),
            lambda f: read_trajectories(f / "x.parquet", people().locations, people().calendar),
        ),
        Reader(
            "dataset.json",
            "dataset.json",
            _stored("dataset", "dataset.json"),
            _json(("people", "calendar", "start", "step", "steps", "source"), _stored("dataset", "dataset.json")),
            _within("dataset", rk.read_dataset),
        ),
        Reader(
            "recovery.json",
            "recovery.json",
            _stored("recovery", "recovery.json"),
            _json(
                ("format", "people", "calendar", "start", "step", "steps", "days", "attack", "settings"),
                _stored("recovery", "recovery.json"),
            ),
            _within("recovery", rk.read_recovery),
        ),
        Reader(
            "rekindle.json",
            "rekindle.json",
            _stored("dataset", "rekindle.json"),
            _json(
                ("rekindle", "kind", "sensitive", "truth.parquet", "../*", "*", "what", "why"),
                _stored("dataset", "rekindle.json"),
                "sensitive",
            ),
            _within("dataset", _traces),
        ),
        Reader(
            "day of a recovery",
            "day-0000.parquet",
            _stored("recovery", "day-0000.parquet"),
            _parquet((*TRUTH, "confidence"), TRUTH | {"confidence": ("0.5",)}),
            _within("recovery", rk.read_recovery),
        ),
        Reader(
            "saved run",
            "run.npz",
            _stored("run", "run.npz"),
            _npz(_stored("run", "run.npz"), TEXTS),
            lambda f: read_run(f / "run.npz"),
        ),
        Reader(
            "resumed run",
            "run.npz",
            _stored("run", "run.npz"),
            _npz(_stored("run", "run.npz"), TEXTS),
            lambda f: rk.resume(f / "run.npz").trajectories(),
        ),
        Reader(
            "task of an audit", "task.npz", _stored("run", "task.npz"), _npz(_stored("run", "task.npz"), TEXTS), _task
        ),
        Reader("points csv", "x.csv", _built(_raw), _raw, _points("x.csv")),
        Reader(
            "points csv, bad rows skipped",
            "x.csv",
            _built(_raw),
            _raw,
            _points("x.csv", skip_bad=True, utc=True, timezone="UTC"),
        ),
        Reader(
            "points csv.gz",
            "x.csv.gz",
            cache(lambda: (gzip.compress(_built(_raw)()[0], mtime=0),)),
            lambda d: (
                change(gzip.compress(_raw(d), mtime=0), d) if d.number(4) == 0 else gzip.compress(_raw(d), mtime=0)
            ),
            _points("x.csv.gz"),
        ),
        Reader(
            "points parquet",
            "x.parquet",
            _built(_parquet(tuple(RAW), RAW)),
            _parquet(tuple(RAW), RAW),
            _points("x.parquet"),
        ),
        Reader(
            "GeoLife folder", "000/Trajectory/1.plt", _built(_plt), _plt, lambda f: collect(read_geolife(f).frame)
        ),
        Reader(
            "GeoLife zip",
            "x.zip",
            _built(_zip(_plt)),
            _zip(_plt),
            lambda f: collect(read_geolife(f / "x.zip", skip_bad=True).frame),
        ),
        Reader("Porto csv", "train.csv", _built(_taxi), _taxi, lambda f: collect(read_porto(f / "train.csv").frame)),
        Reader("Cabspotting folder", "new_a.txt", _built(_cab), _cab, lambda f: collect(read_cabspotting(f).frame)),
        Reader(
            "defence",
            "x",
            lambda: (b"suppress:below=10 + round:to=5", b"laplace:epsilon=1,per=event"),
            _words(DEFENCES),
            _text("x", parse_defence),
        ),
        Reader("time or step", "x", lambda: (b"2024-03-01T00:00", b"10min"), _words(TIMES), _text("x", _both)),
    )
}


def attempt(reader: Reader, content: bytes, folder: Path) -> str:
    """Read a file that may be hostile: "read", or the kind of refusal. Anything but one of our errors goes through."""
    path = folder / reader.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    try:
        reader.read(folder)
    except rk.errors.RekindleError as error:
        problem = getattr(error, "problem", str(error))
        problem.encode("utf-8", "surrogateescape")  # it can be shown
        return f"{type(error).__name__}: {kind_of(problem)}"
    return "read"


def kind_of(problem: str) -> str:
    """What is wrong, without the names and numbers of this file."""
    problem = problem.removeprefix("it is not a saved run, or a damaged one: ")
    plain = re.sub(r"'[^']*'|\"[^\"]*\"|\(.*\)|\S*\\\S*|[-+]?\d[\d.:, -]*", "…", problem, flags=re.DOTALL)
    return re.sub(r"(… ?)+", "… ", " ".join(plain.split()[:6]))[:60].strip()
