"""The files with the most that is invalid: as a table, and in pictures."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

import numpy as np

from mmguard.instances import describe_boxes
from mmguard.report.html import Markup, element, join
from mmguard.report.html_boxes import box_overlay
from mmguard.report.page import Section, WorstFile
from mmguard.report.pictures import (
    CannotDraw,
    Picture,
    closer,
    coloured,
    css_colour,
    marked_photo,
    photo,
    read_label,
)

#: Files that are listed, and that are drawn, per section.
LISTED = 100
DRAWN = 12


def table_of_files(section: Section, number: int) -> Markup:
    """Source, count and values of the worst files; drawn ones lead to their picture."""
    if not section.worst:
        return Markup('')
    rows = []
    for place, file in enumerate(section.worst[:LISTED]):
        name = element('span', file.source, class_='mono')
        if place < DRAWN and _has_picture(file):
            name = element('a', file.source, class_='mono', href=f'#file-{number}-{place}')
        rows.append(
            element(
                'tr',
                element('td', name),
                element('td', f'{file.skipped:,}', class_='number'),
                element('td', _why(file)),
            )
        )
    what = section.facts.kind
    head = element(
        'tr', element('th', 'file'), element('th', f'invalid {what}', class_='number'), element('th', 'values')
    )
    left = len(section.worst) - LISTED
    return element(
        'div',
        element('h3', 'Worst files'),
        element(
            'div',
            element('div', element('table', element('thead', head), element('tbody', *rows)), class_='scroll'),
            element('p', f'... and {left:,} more files', class_='small soft') if left > 0 else None,
            class_='card',
        ),
    )


def _why(file: WorstFile) -> Markup:
    values = [f'{value}: {count:,}' for value, count in sorted(file.values.items(), key=lambda item: -item[1])]
    words = values[:8] + ([f'... {len(values) - 8} more'] if len(values) > 8 else []) + describe_boxes(file.reasons)
    return element('span', ', '.join(words), class_='mono')


def _has_picture(file: WorstFile) -> bool:
    return bool(file.image_path or file.label_path)


def drawn_files(section: Section, number: int) -> Markup:
    """Pictures of the worst files."""
    cards = [
        element(
            'article',
            element('h4', file.source, class_='mono'),
            element('p', _why(file), class_='small soft'),
            element('div', *_panels(file, section), class_='panels'),
            class_='card file',
            id=f'file-{number}-{place}',
        )
        for place, file in enumerate(section.worst[:DRAWN])
        if _has_picture(file)
    ]
    return element('div', element('h3', 'The worst files, seen'), *cards) if cards else Markup('')


def _panels(file: WorstFile, section: Section) -> List[Markup]:
    if file.label_path is not None:
        return _label_panels(file, section)
    assert file.image_path is not None
    try:
        picture, size = photo(file.image_path)
    except CannotDraw as error:
        return [_nothing('image', str(error))]
    legend = join(_key('var(--invalid)', 'invalid'), ' ', _key('var(--valid)', 'valid')) if file.boxes else 'image'
    return [_figure(picture, legend, box_overlay(file.boxes, size, (picture.width, picture.height)))]


def _label_panels(file: WorstFile, section: Section) -> List[Markup]:
    assert file.label_path is not None
    try:
        label = read_label(file.label_path)
    except CannotDraw as error:
        return [*_photo_of(file.image_path, 'image'), *_as_picture(file.label_path, str(error))]
    ignored = file.ignored
    if ignored is None:
        ignored = [] if section.facts.ignore_index is None else [section.facts.ignore_index]
    invalid = np.isin(label, list(file.values))
    panels = []
    if file.image_path is not None:
        try:
            picture = marked_photo(file.image_path, label, invalid)
            panels.append(_figure(picture, join('image, ', _key('rgb(255,0,170)', 'invalid pixels'))))
        except CannotDraw as error:
            panels.append(_nothing('image', str(error)))
    if label.dtype.kind == 'f':
        panels.append(_nothing('label map', f'{label.dtype} values: a label map holds integers'))
        return panels
    panels.append(_figure(coloured(label, invalid, ignored), _label_legend(label, file, ignored), crisp=True))
    near = closer(label, invalid, ignored)
    if near is not None:
        panels.append(_figure(near, 'label, from close by', crisp=True))
    return panels


def _photo_of(path: Optional[str], name: str) -> List[Markup]:
    if path is None:
        return []
    try:
        return [_figure(photo(path)[0], name)]
    except CannotDraw as error:
        return [_nothing(name, str(error))]


def _as_picture(path: str, why: str) -> List[Markup]:
    """A label file that holds no values, as the picture that it is."""
    try:
        return [_figure(photo(path)[0], f'label file: {why}')]
    except CannotDraw:
        return [_nothing('label map', why)]


def _label_legend(label: np.ndarray, file: WorstFile, ignored: List[int]) -> Markup:
    from mmguard.labels import value_counts

    counts: Dict[int, int] = value_counts(label)
    common: List[Tuple[int, int]] = sorted(counts.items(), key=lambda item: -item[1])
    classes = [value for value, _ in common if value not in file.values and value not in ignored]
    keys = [_key(css_colour(value), str(value)) for value in classes[:6]]
    if len(classes) > 6:
        keys.append(element('span', f'{len(classes) - 6} more'))
    if any(value in counts for value in ignored):
        keys.append(_key('rgb(232,234,238)', 'ignored'))
    if file.values:
        keys.append(_key('rgb(255,0,170)', 'invalid'))
    return join('label ', *(join(key, ' ') for key in keys))


def _key(colour: str, name: str) -> Markup:
    return join(element('i', class_='key', style=f'background:{colour}'), name, ' ')


def _figure(picture: Picture, caption: object, overlay: Optional[Markup] = None, crisp: bool = False) -> Markup:
    width, height = picture.width, picture.height
    shape = element(
        'svg',
        element(
            'image',
            href=picture.data,
            width=width,
            height=height,
            class_='pixels' if crisp else None,
            preserveAspectRatio='none',
        ),
        *(_ring(x * width, y * height, max(width, height)) for x, y in picture.rings),
        overlay,
        viewBox=f'0 0 {width} {height}',
        role='img',
    )
    return element('figure', shape, element('figcaption', caption))


def _ring(x: float, y: float, longest: int) -> Markup:
    place = dict(cx=f'{x:.1f}', cy=f'{y:.1f}', r=f'{longest / 36:.1f}')
    return join(element('circle', class_='ring under', **place), element('circle', class_='ring', **place))


def _nothing(name: str, why: str) -> Markup:
    return element('figure', element('div', f'No picture of the {name}: {why}', class_='nothing'))
