"""Which column of a table of others is what: by the name that was given, or by the names that are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rekindle.errors import InvalidData

KNOWN_NAMES = {
    "person": ("person", "uid", "user", "user_id", "userid"),
    "time": ("time", "datetime", "tracked_at", "timestamp", "t"),
    "lat": ("lat", "latitude", "y"),
    "lng": ("lng", "lon", "long", "longitude", "x"),
    "location": (
        *("location", "location_id", "cell", "cell_id", "cellid", "tower", "tower_id", "towerid"),
        *("site", "site_id", "antenna", "antenna_id", "station", "station_id"),
        *("area", "district", "region", "zone", "zona", "bezirk"),
    ),
    "datetime": (
        "datetime",
        "date_time",
        "timestamp",
        "time",
        "date",
        "day",
        "hour",
        "start",
        "fecha",
        "datum",
        "zeit",
    ),
    "count": (
        *("count", "value", "n", "number", "people", "visitors", "trips", "devices", "flow", "n_crisis"),
        *("viajes", "personas", "anzahl", "personen"),
    ),
    "origin": ("origin", "origin_id", "origin_zone", "from", "from_id", "from_zone", "start_tile", "origen"),
    "destination": (
        "destination",
        "destination_id",
        "destination_zone",
        "to",
        "to_id",
        "to_zone",
        "end_tile",
        "destino",
    ),
}
"""The column names that are recognised: our own, those of operators, scikit-mobility, trackintel and movingpandas. The last
four are those of published tables, among them Meta's movement maps and the mobility study of Spain's ministry of transport."""

DATES = ("date", "day", "fecha", "datum")
HOURS = ("hour", "time", "periodo", "stunde", "uhrzeit")
"""Names of two columns that together say when."""

_OTHERWISE = {
    "person": (
        ("subscriber", "subscriber_id", "imsi", "msisdn", "customer", "customer_id", "caller", "caller_id"),
        ("device", "device_id", "phone", "phone_id", "sim", "sim_id", "imei"),
        ("traj_id", "trajectory_id"),
    ),
    "location": (("id", "name"),),
}
"""Names that count only where there is none of those before: a device, and then a trajectory, is a person where nothing else
names the person."""

_WORDS = {"lat": "latitude", "lng": "longitude"}


def known_column(columns: Iterable[str], role: str) -> list[str]:
    """The columns whose names are known for a role: none, the one, or several; one that has the role's name is the one."""
    columns = list(columns)
    for names in ((role,), KNOWN_NAMES[role], *_OTHERWISE.get(role, ())):
        if found := [column for column in columns if str(column).strip().lower() in names]:
            return found
    return []


def find_column(columns: list[str], role: str, given: Mapping[str, str | None]) -> str:
    """Find the column of a role.

    Parameters
    ----------
    columns
        The names of all columns.
    role
        One of `KNOWN_NAMES`; also the name of the setting that names the column.
    given
        The names that were given, by role.
    """
    name = given.get(role)
    if name is None:
        found = known_column(columns, role)
        if len(found) == 1:
            return found[0]
        what = f"the columns {found} could each be" if found else f"no column of {columns[:20]} is known as"
        raise InvalidData(f"{what} the {_WORDS.get(role, role)}; call it {role!r}, or name it with `{role}`.")
    if name not in columns:
        raise InvalidData(f"`{role}` is {name!r}, but the columns are {columns[:20]}.")
    return name
