"""What causes in data sets of volumes share: they rest on a list of cases that show it."""

from __future__ import annotations

from typing import ClassVar, Dict, List, Tuple

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.volumes import CaseFault, VolumeFacts
from mmguard.words import counted


def volumes_of(facts: LabelFacts) -> VolumeFacts:
    return facts.volumes or VolumeFacts()


class VolumeCause(Cause):
    """A cause that names cases. The scan's JSON lists all of them, ``facts.volumes.faults``."""

    kinds = ('voxels',)
    needs: ClassVar[Tuple[str, ...]] = ('volumes',)
    #: The kinds of faults that show it, as in ``VolumeFacts.faults``.
    shown_by: ClassVar[Tuple[str, ...]] = ()
    weight: ClassVar[float] = 0.8

    def likelihood(self, facts: LabelFacts) -> float:
        return self.weight if self.faults(facts) else 0.0

    def faults(self, facts: LabelFacts) -> List[CaseFault]:
        return volumes_of(facts).of(*self.shown_by)

    def files(self, facts: LabelFacts) -> List[str]:
        return list(dict.fromkeys(fault.file for fault in self.faults(facts)))

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}

    def evidence(self, facts: LabelFacts) -> str:
        faults = self.faults(facts)
        cases = len({fault.case for fault in faults})
        first = max(faults, key=lambda fault: fault.voxels)
        number = f'{cases:,} of {counted(volumes_of(facts).cases, "case")}'
        return f'{number}, e.g. {first.file}: {first.detail}'


class DeclaredCause(Cause):
    """A cause that lies in dataset.json."""

    kinds = ('voxels',)
    needs = ('volumes',)
    #: The kind of fault, as in ``VolumeFacts.declared``.
    kind: ClassVar[str] = ''
    weight: ClassVar[float] = 0.95

    def likelihood(self, facts: LabelFacts) -> float:
        return self.weight if self.texts(facts) else 0.0

    def texts(self, facts: LabelFacts) -> List[str]:
        return volumes_of(facts).declared.get(self.kind, [])

    def files(self, facts: LabelFacts) -> List[str]:
        return ['dataset.json']

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}

    def evidence(self, facts: LabelFacts) -> str:
        return '; '.join(self.texts(facts))
