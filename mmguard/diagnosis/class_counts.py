"""How many classes each head of a config knows."""

from __future__ import annotations

from typing import Dict

from mmguard.diagnosis.facts import ConfigFacts

#: Heads that classify queries.
_QUERIES = ('Mask2Former', 'MaskFormer', 'SideAdapter')
#: Heads of models that read the names of the classes.
_OPEN = ('Grounding', 'VLFusion', 'YOLOWorld')

#: Panoptic heads count in two parts, which the data set lists as one.
THINGS, STUFF = '.num_things_classes', '.num_stuff_classes'


def classes_of_heads(config: ConfigFacts) -> Dict[str, int]:
    """Path -> classes. Things and stuff of a head are added up; region proposals have no classes.

    Example:
        >>> classes_of_heads(ConfigFacts(head_classes={'a.num_things_classes': 80, 'a.num_stuff_classes': 53}))
        {'a.num_things_classes + num_stuff_classes': 133}
    """
    found: Dict[str, int] = {}
    for path, number in config.head_classes.items():
        if 'rpn' in path.lower():
            continue
        if path.endswith(STUFF) and path[: -len(STUFF)] + THINGS in config.head_classes:
            continue
        stuff = config.head_classes.get(path[: -len(THINGS)] + STUFF) if path.endswith(THINGS) else None
        if stuff:
            found[f'{path} + {STUFF[1:]}'] = number + stuff
        else:
            found[path] = number
    return found


def has_no_object(path: str, config: ConfigFacts) -> bool:
    """Whether the classification loss at ``path`` has one more class, for queries that match no object."""
    if 'panoptic_head' in path:
        return True
    head = max((head for head in config.heads if path.startswith(f'{head}.')), key=len, default='')
    return config.heads.get(head, '').startswith(_QUERIES) or (config.framework == 'mmseg' and '.loss_cls' in path)


def is_open_vocabulary(config: ConfigFacts) -> bool:
    """Whether the classes come with the text: their number in a head says nothing."""
    return any(word in kind for kind in config.heads.values() for word in _OPEN)
