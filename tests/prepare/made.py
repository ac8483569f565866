"""Points by hand."""

from datetime import datetime, timedelta

import polars as pl

T = datetime(2020, 3, 2)


def table(*rows):
    """Points from (person, minutes after midnight, lat, lng)."""
    return pl.DataFrame(
        [(person, T + timedelta(minutes=minute), lat, lng) for person, minute, lat, lng in rows],
        schema=["person", "time", "lat", "lng"],
        orient="row",
    )
