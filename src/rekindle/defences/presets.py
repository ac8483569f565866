"""What publishers are known to do, each with its source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rekindle.defences.base import Chain, Defence
from rekindle.defences.noise import LaplaceNoise
from rekindle.defences.numbers import Round, Suppress


@dataclass(frozen=True, init=False, kw_only=True)
class Preset(Chain):
    """A defence with the parameters that a publisher has stated.

    Parameters
    ----------
    defences
        The same parameters as defences of counts.
    name
        What it is called here.
    source
        Where the publisher, or someone who read them, states the parameters.
    note
        What is different there.
    """

    name: str
    source: str
    note: str

    def __init__(self, defences: Iterable[Defence], *, name: str, source: str, note: str) -> None:
        super().__init__(defences)
        for field, value in (("name", name), ("source", source), ("note", note)):
            object.__setattr__(self, field, value)

    @property
    def label(self) -> str:
        """See `Defence`."""
        return f"{super().label} ({self.name})"


_LIST = "D. Desfontaines. A list of real-world uses of differential privacy. desfontain.es, 2021, updated since."

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            [Suppress(below=10)],
            name="ine-spain",
            source="Instituto Nacional de Estadística, press conference of 18 November 2019 on the mobility study from "
            "mobile phones: numbers below ten are discarded (reported by Estrella Digital, 18 November 2019).",
            note="There, phones in cells of at least 5,000 residents. Flows were later offered for more than 15 people (INE, "
            "Pilot study on mobility based on mobile phone positioning, 2020).",
        ),
        Preset(
            [Suppress(below=16)],
            name="flowminder",
            source="Flowminder. FlowKit, RedactedSpatialAggregate: no result where a count is 15 or less. "
            "github.com/Flowminder/FlowKit.",
            note="There, subscribers by region from call detail records.",
        ),
        Preset(
            [Suppress(below=8), Round(to=5)],
            name="opensafely",
            source="OpenSAFELY. Applying statistical disclosure control (docs.opensafely.org), and Updated disclosure "
            "control guidance (opensafely.org): redact counts of 7 or less, then round to the nearest 5.",
            note="There, health records, not mobility.",
        ),
        Preset(
            [LaplaceNoise(epsilon=2.64, per="person-day")],
            name="google-community-mobility",
            source="A. Aktay et al. Google COVID-19 Community Mobility Reports: Anonymization Process Description. "
            f"arXiv:2004.04145, 2020. See also {_LIST}",
            note="There, visits to categories of places by region and day, published as changes from a baseline.",
        ),
        Preset(
            [LaplaceNoise(epsilon=2.0, per="person-day")],
            name="meta-movement-range",
            source="A. Herdağdelen, A. Dow, B. State, P. Mohassel, A. Pompe. Protecting privacy in Facebook mobility data "
            f"during the COVID-19 response. Facebook Research, 2020. See also {_LIST}",
            note="There, how far people move and how many stay put, by region and day.",
        ),
        Preset(
            [LaplaceNoise(epsilon=10.0, per="person")],
            name="spectus",
            source=f"Spectus. Differentially Private Evacuation Rates Dashboard, spectus.ai. See also {_LIST}",
            note="There, rates of evacuation by county after hurricanes.",
        ),
    )
}
"""By name."""
