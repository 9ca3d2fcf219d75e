from __future__ import annotations

from typing import Dict

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import as_map, has_config, listing, maps_of

WIDE = ('gray16', 'gray32')


class WiderThanEightBits(Cause):
    """16-bit label files."""

    code = 'MG122'
    needs = ('maps',)
    summary = 'Label files have 16 bits or more; what reads 8 of them sees other labels.'
    why = "mmseg's loader keeps the value modulo 256 (261 becomes 5), OpenCV's default divides by 256 (1 becomes 0)."
    advice = (
        'Save them with 8 bits: `Image.fromarray(label.astype(np.uint8)).save(path)`, after the ids were renumbered to '
        '0..{last} if any is larger than 255.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        maps = maps_of(facts)
        if maps.loaded_otherwise.get('wrapped'):
            return 0.96
        if not any(maps.forms.get(form) for form in WIDE):
            return 0.0
        if maps.raw and facts.histogram and set(maps.raw) != {0} and set(facts.histogram) == {0}:
            return 0.95
        # Whoever trains with mmseg reads them right; what other loaders do is not known.
        return 0.6 if not has_config(facts) and max(maps.raw, default=0) < 256 else 0.0

    def severity_of(self, facts: LabelFacts) -> str:
        return 'error' if self.likelihood(facts) > 0.9 else 'warning'

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {value: count for value, count in maps_of(facts).raw.items() if value > 255} or facts.values

    def evidence(self, facts: LabelFacts) -> str:
        maps = maps_of(facts)
        texts = [f'{maps.forms[form]:,} files of {form[4:]} bits' for form in WIDE if maps.forms.get(form)]
        wide = {value: value % 256 for value in sorted(maps.raw) if value > 255}
        if wide:
            texts.append(f'as stored, and as loaded: {as_map(wide, 6)}')
        elif maps.raw:
            texts.append(f'values as stored: {listing(sorted(maps.raw))}')
        return '; '.join(texts) or f'{maps.loaded_otherwise.get("wrapped", 0):,} files are loaded modulo 256'
