"""Single slips of an annotator: one label of many is the first number after the classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterable

from situation import Build, Situation, json_alone, numbered, some_boxes, with_options


def rows(classes: int, files: int, slips: Iterable[int] = (2,)) -> Build:
    """A folder of YOLO label files, 4 rows each; in some of them a row of the number after the classes."""

    def build(root: Path) -> Any:
        (root / 'labels').mkdir()
        for number in range(files):
            labels = [(4 * number + place) % classes for place in range(4)]
            if number in slips:
                labels[1] = classes
            lines = [f'{label} 0.{3 + place} 0.5 0.1 0.2\n' for place, label in enumerate(labels)]
            (root / 'labels' / f'{number:04}.txt').write_text(''.join(lines))
        return root / 'labels', dict(num_classes=classes)

    return build


def ids(classes: int, images: int, framework: str, start: int = 0) -> Build:
    """A COCO file without gaps, whose ids a framework takes as labels; one annotation has the next id."""
    drawn = some_boxes(range(start, start + classes), images, 4)
    drawn[images // 3][2] = (start + classes, drawn[images // 3][2][1])
    named = numbered(*(f'kind {number}' for number in range(classes)), start=start)
    return with_options(json_alone(named, start + classes, drawn), framework=framework)


SITUATIONS: Dict[str, Situation] = {
    'rows, 5 classes': Situation('1 row of 96', ('MG127',), rows(5, 24), dict(), dict(num_classes=[6])),
    'ids of DETR': Situation('1 annotation of 120', ('MG149',), ids(6, 30, 'detr'), dict(), dict(num_classes=[7])),
    'rows, a class that the list lacks': Situation('a fifth of the rows', ('MG102',), rows(4, 30, range(0, 30, 2))),
}
