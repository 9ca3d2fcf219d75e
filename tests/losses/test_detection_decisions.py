"""Every loss of mmdet is guarded, passed through or refused, and docs/mmdet_losses.md says which."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict, Optional, Tuple

import mmdet.models.losses as stock
import pytest
from detection_cases import BACKGROUND, CASES, batch, outcome
from mmdet.registry import MODELS

from mmguard.losses.guards import GUARDS
from mmguard.losses.guards.mmdet import DenseGuard
from mmguard.losses.guards.refused import REASONS

PAGE = Path(__file__).parents[2] / 'docs' / 'mmdet_losses.md'


def losses_of_mmdet() -> Dict[str, type]:
    registered = {
        name: loss for name, loss in MODELS.module_dict.items() if loss.__module__.startswith('mmdet.models.losses.')
    }
    exported = {name: getattr(stock, name) for name in stock.__all__ if name.endswith('Loss')}
    return {**exported, **registered}


def decisions() -> Dict[str, str]:
    made = {name: 'own class' if name.endswith('CrossEntropyLoss') else 'refused' for name in REASONS}
    for guard in GUARDS:
        made.update(dict.fromkeys(guard.serves, 'passed through' if guard is DenseGuard else 'guarded'))
    return {name.split('.')[1]: decision for name, decision in made.items() if name.startswith('mmdet.')}


def test_no_loss_is_undecided() -> None:
    assert len(losses_of_mmdet()) > 30
    assert set(losses_of_mmdet()) == set(decisions())


def test_no_loss_is_decided_twice() -> None:
    served = [name for guard in GUARDS for name in guard.serves]
    assert len(served) == len(set(served))
    assert not set(served) & set(REASONS)


def test_the_page_says_the_same() -> None:
    rows = re.findall(r'^\| ([A-Z][\w, ]+) \| [^|]* \| ([a-z ]+) \|', PAGE.read_text(), re.MULTILINE)
    reported = {name: decision for names, decision in rows for name in names.split(', ')}
    assert reported == decisions()


@pytest.mark.parametrize(
    ('name', 'above', 'below'),
    [
        ('focal', 'RuntimeError', 'RuntimeError'),
        ('focal, activated', 'RuntimeError', 'RuntimeError'),
        ('focal, custom', 'RuntimeError', 'RuntimeError'),
        ('quality', None, None),
        ('ghm', None, None),
        ('seesaw', 'IndexError', 'RuntimeError'),
        ('eqlv2', 'IndexError', 'a class'),
        ('custom CE', 'IndexError', 'IndexError'),
        ('custom CE, sigmoid', None, 'weight 0'),
    ],
)
def test_stock_today(name: str, above: Optional[str], below: Optional[str]) -> None:
    """What the last column claims; ``None``: trained as background."""
    case = CASES[name]

    def result(label: int, weight: float = 1.0) -> Tuple[float, ...]:
        made = batch(case, weight='rows')
        made.label[2], made.quality[2], made.weight[:] = label, 0.5, 1.0
        made.weight[2] = weight
        return tuple(round(float(part), 4) for part in outcome(case.build(), case, made).parts.values())

    for label, what in ((BACKGROUND + 3, above), (-3, below)):
        if what is None:
            assert result(label) == result(BACKGROUND)
        elif what == 'weight 0':
            assert result(label) == result(BACKGROUND, weight=0.0)
        elif what == 'a class':  # the index counts from the last channel, which is the background
            assert result(label) == result(BACKGROUND + 1 + label) != result(BACKGROUND)
        else:
            with pytest.raises((RuntimeError, IndexError)) as caught:
                result(label)
            assert caught.type.__name__ == what
