"""Order in which findings are shown."""

from __future__ import annotations

from typing import Tuple

from mmguard.findings.finding import CERTAINTIES, INFO, Finding

_CODES = (
    # The files are not label maps of the kind that the loader expects: nothing that it reads is a label.
    'MG123 MG122 MG120 MG580 MG103 MG121 MG137 '
    # Labels are changed on loading: the values in the files are right.
    'MG124 '
    # Class lists and annotations do not match: labels, heads and names follow.
    'MG203 MG162 MG140 MG149 MG134 MG138 MG581 MG178 MG160 MG172 MG168 MG393 MG394 MG176 MG157 '
    # Numberings of well-known data sets before those that are only inferred from counts: values that compression made,
    # and void that was shifted, before void that is not ignored; a name twice before a head that counts it once; few
    # files with a value (an annotation mistake) before a forgotten class; gaps where no known numbering explains them.
    'MG101 MG136 MG133 MG125 MG115 MG156 MG384 MG108 MG117 MG119 MG127 MG104 MG106 MG116 '
    # Records and files that cannot be used, one by one: a name with two ids makes one label too many; sizes differ, so
    # boxes are outside of the image.
    'MG396 MG397 MG395 MG179 MG398 MG153 MG147 MG141 MG158 MG161 MG150 MG130 MG164 MG129 MG174 '
    # The config contradicts itself, in the order in which a training reads it: a name that the list lacks, before a
    # head that counts it; a class that is ignored, so that no other part agrees with it.
    'MG231 MG250 MG390 MG205 MG391 MG392 MG590 MG201 MG154 MG202 MG204 MG207 MG209 MG380 MG208 MG210 MG211 MG232 '
    'MG214 MG240 MG235 MG381 MG382 MG383 MG215 MG222 MG251 MG223 MG255 MG252 MG253 MG225 MG229 MG233 MG234 MG230 MG132 '
    # Fallbacks for labels that nothing above explains, and for the generation that reads the config.
    'MG102 MG105 MG109 MG128 MG163 MG165 MG227 MG135 MG146 MG152 MG107 MG169 MG159 '
    # A run and its ranks: the rank that ended before those that waited for it.
    'MG304 MG303 MG305 MG306 '
    # The installation: duplicate packages before incompatible ones. The verdict comes last.
    'MG502 MG508 MG506 MG515 MG100'
)
#: Codes of all rules except for plugins' rules, causes before consequences. Of two equally certain findings, the
#: finding whose code comes first is shown first.
ORDER = tuple(_CODES.split())
_PLACES = {code: place for place, code in enumerate(ORDER)}


def sort_key(finding: Finding) -> Tuple[bool, bool, int, float]:
    """Return a key that sorts findings: the most certain first, causes before consequences, verdicts last."""
    place = _PLACES.get(finding.before or finding.code, len(ORDER)) - 0.5 * bool(finding.before)
    return finding.is_verdict, finding.severity == INFO, CERTAINTIES.index(finding.certainty), place
