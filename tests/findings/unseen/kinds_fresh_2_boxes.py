"""One more instance of each kind that shows in a detector's config or annotations.

Written by somebody who had not read the rules, before the first run on any. ``mmguard scan`` of the file, with the
options that ``build`` returns, or ``mmguard check`` of the config, is what is typed.

At the first run 33 of these 44 (here, ``kinds_fresh_2_maps`` and ``kinds_fresh_2_runs``) were answered rightly (75 %),
5 by half (text order, EXIF, hippocampi, palettes, rank 0), 6 wrongly (rows first, Mapillary, files of 0 alone, masks of
bool, colours as gray, confusion matrix); 4 first advices would have done harm (rows first, EXIF, hippocampi, files of
0 alone).
"""

from __future__ import annotations

from typing import Dict

from kinds_classes import Asked
from situation import (
    json_alone,
    numbered,
    some_boxes,
    with_options,
)

#: Three objects of 36 lie to the right of their images, of 320 x 240.
OUTSIDE = some_boxes([1, 2], 12)
OUTSIDE[4][1] = (1, [395, 60, 40, 50])
OUTSIDE[7][0] = (2, [330, 20, 80, 30])
OUTSIDE[9][2] = (2, [402, 100, 25, 25])

BOXES: Dict[str, Asked] = {
    'near: ordinary ids with gaps, positions are trained': Asked(
        'nothing is wrong', (), with_options(json_alone({3: 'a', 7: 'b', 8: 'c', 12: 'd'}, 4), labels='positions')
    ),
    'masks: boxes of CVAT for Mask R-CNN': Asked(
        'no object has a polygon: they were drawn as boxes',
        ('MG179',),
        with_options(
            json_alone(numbered('pipe', 'valve'), 2, annotation=dict(segmentation=[])),
            framework='detectron2',
            masks=True,
        ),
        says=('mask',),
    ),
}
