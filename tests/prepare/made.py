"""Points by hand."""

from datetime import datetime, timedelta

import narwhals as nw
import numpy as np
import polars as pl

from rekindle.prepare import Extent

T = datetime(2020, 3, 2)


def table(*rows):
    """Points from (person, minutes after midnight, lat, lng)."""
    return pl.DataFrame(
        [(person, T + timedelta(minutes=minute), lat, lng) for person, minute, lat, lng in rows],
        schema=["person", "time", "lat", "lng"],
        orient="row",
    )


def locate(places, lat_lng, extent=None):
    """The locations, and the index of each position (..., 2); `extent` says how far they reach, by default these."""
    within = np.asarray(lat_lng if extent is None else extent).reshape(-1, 2)
    table = pl.LazyFrame({"lat": within[:, 0], "lng": within[:, 1]}).with_columns(begin=0, end=1)
    found = places.fit(Extent(nw.from_native(table), 1))
    return found.locations, found.index(lat_lng.reshape(-1, 2)).reshape(lat_lng.shape[:-1])
