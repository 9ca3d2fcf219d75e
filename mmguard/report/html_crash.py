"""How a training died, on the page: the error, the last batches with their files, the command to go on with."""

from __future__ import annotations

from typing import List

from mmguard.report.crash import Crash, CrashBatch, RankCrash, described, silent_ranks
from mmguard.report.html import Markup, element


def crash_section(crash: Crash) -> Markup:
    """The section of a run that died."""
    first = crash.ranks[0]
    others = [element('p', f'{rank.told}{f": {rank.error}" if rank.error else ""}') for rank in crash.ranks[1:]]
    if crash.silent:
        others.append(element('p', silent_ranks(crash.silent)))
    rows = [element('dt', 'Which sample it is'), element('dd', element('code', crash.replay, class_='write'))]
    if first.place:
        rows = [element('dt', 'At'), element('dd', element('code', first.place)), *rows]
    return element(
        'section',
        element('h2', 'How it ended'),
        element('div', element('strong', first.told), class_='card verdict error'),
        element(
            'article',
            element('p', first.error, class_='cause') if first.error else None,
            element('dl', *rows),
            _trace(first),
            class_='card finding error',
        ),
        element('div', element('h3', 'The other ranks'), *others) if others else None,
        *(_batches(rank) for rank in crash.ranks if rank.batches),
    )


def _trace(rank: RankCrash) -> Markup:
    if not rank.traceback:
        return Markup('')
    return element('details', element('summary', 'Traceback'), element('pre', rank.traceback, class_='trace'))


def _batches(rank: RankCrash) -> Markup:
    headings = element('tr', *(element('th', name) for name in ('iteration', 'files, and what guards found', 'losses')))
    rows = [_row(batch) for batch in rank.batches]
    table = element('table', element('thead', headings), element('tbody', *rows))
    return element(
        'div',
        element('h3', f'Last batches of rank {rank.rank}, the newest first'),
        element('div', table, class_='card scroll'),
    )


def _row(batch: CrashBatch) -> Markup:
    files: List[Markup] = []
    for source, found in described(batch):
        files.append(element('span', source, class_='mono file-name'))
        if found:
            files.append(element('span', found, class_='small soft file-name'))
    losses = ['did not end'] if batch.losses is None else [f'{n} {value:.4g}' for n, value in batch.losses.items()]
    return element(
        'tr',
        element('td', '' if batch.iteration is None else f'{batch.iteration:,}', class_='number'),
        element('td', *files),
        element('td', *(element('span', loss, class_='file-name') for loss in losses)),
    )
