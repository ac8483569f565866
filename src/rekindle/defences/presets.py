"""What publishers are known to do, each with its source."""

from __future__ import annotations

from dataclasses import dataclass

from rekindle.defences.base import Chain, Defence
from rekindle.defences.noise import LaplaceNoise
from rekindle.defences.numbers import Round, Suppress

__all__ = ["PRESETS", "Preset"]


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Parameters that a publisher has stated.

    Attributes
    ----------
    name
        How it is called here.
    defence
        The same parameters as a defence of counts.
    source
        Where the publisher, or someone who read them, states the parameters.
    note
        What is different there.
    """

    name: str
    defence: Defence
    source: str
    note: str


_LIST = "D. Desfontaines. A list of real-world uses of differential privacy. desfontain.es, 2021, updated since."

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            name="ine-spain",
            defence=Suppress(below=10),
            source="Instituto Nacional de Estadística, press conference of 18 November 2019 on the mobility study from "
            "mobile phones: numbers below ten are discarded (reported by Estrella Digital, 18 November 2019).",
            note="There, phones in cells of at least 5,000 residents. Flows were later offered for more than 15 people (INE, "
            "Pilot study on mobility based on mobile phone positioning, 2020).",
        ),
        Preset(
            name="flowminder",
            defence=Suppress(below=16),
            source="Flowminder. FlowKit, RedactedSpatialAggregate: no result where a count is 15 or less. "
            "github.com/Flowminder/FlowKit.",
            note="There, subscribers by region from call detail records.",
        ),
        Preset(
            name="opensafely",
            defence=Chain([Suppress(below=8), Round(to=5)]),
            source="OpenSAFELY. Applying statistical disclosure control (docs.opensafely.org), and Updated disclosure "
            "control guidance (opensafely.org): redact counts of 7 or less, then round to the nearest 5.",
            note="There, health records, not mobility.",
        ),
        Preset(
            name="google-community-mobility",
            defence=LaplaceNoise(epsilon=2.64, per="person-day"),
            source="A. Aktay et al. Google COVID-19 Community Mobility Reports: Anonymization Process Description. "
            f"arXiv:2004.04145, 2020. See also {_LIST}",
            note="There, visits to categories of places by region and day, published as changes from a baseline.",
        ),
        Preset(
            name="meta-movement-range",
            defence=LaplaceNoise(epsilon=2.0, per="person-day"),
            source="A. Herdağdelen, A. Dow, B. State, P. Mohassel, A. Pompe. Protecting privacy in Facebook mobility data "
            f"during the COVID-19 response. Facebook Research, 2020. See also {_LIST}",
            note="There, how far people move and how many stay put, by region and day.",
        ),
        Preset(
            name="spectus",
            defence=LaplaceNoise(epsilon=10.0, per="person"),
            source=f"Spectus. Differentially Private Evacuation Rates Dashboard, spectus.ai. See also {_LIST}",
            note="There, rates of evacuation by county after hurricanes.",
        ),
    )
}
"""By name."""
