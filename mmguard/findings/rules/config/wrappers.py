"""Arguments given to a wrapper of data sets, which ignores them."""

from __future__ import annotations

from typing import Any, Iterator, List

from mmguard.config.changes import REMOVED, Changes
from mmguard.config.parts import Part, find_datasets, get_class_names, says_classes
from mmguard.config.read import ReadConfig
from mmguard.findings.class_edits import move_class_list
from mmguard.findings.edits import Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose


class WrapperMetainfo(ConfigRule):
    code = 'MG203'
    follows = ('MG102', 'MG107', 'MG108', 'MG140', 'MG154', 'MG201', 'MG202', 'MG204')
    about_labels = True
    summary = 'metainfo (or classes) is given to a data set that wraps another one.'
    title = '{kind} at {place} wraps a data set and does not take {key}: the wrapped data set does not get the classes.'
    why = (
        'RepeatDataset, ConcatDataset, ClassBalancedDataset and MultiImageMixDataset do not take a class list: '
        'building fails, or the wrapped data set keeps its own classes and the labels do not fit the head.'
    )
    example = Example(
        wrong="dict(type='RepeatDataset', metainfo=dict(classes=('cat',)), dataset=dict(...))",
        right="dict(type='RepeatDataset', dataset=dict(..., metainfo=dict(classes=('cat',))))",
    )
    limits = 'Wrappers of your own are recognized by their arguments dataset and datasets.'
    advice = 'Write metainfo inside of every wrapped data set. If these have lists of their own, keep the right one.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for wrapper in find_datasets(config, wrappers=True):
            for key in ('metainfo', 'classes'):
                value = wrapper.config.get(key)
                if value is not None:
                    words = dict(kind=wrapper.name, place=wrapper.path, key=key)
                    yield self.report_at(wrapper.place(key), value, words, edits=_move_inside(config, wrapper, key))


def _move_inside(config: ReadConfig, wrapper: Part, key: str) -> List[Edit]:
    """Return an edit that moves the list into every wrapped data set, and one that also changes differing heads."""
    value: Any = wrapper.config[key]
    metainfo = value if isinstance(value, dict) else {'classes': (value,) if isinstance(value, str) else value}
    inner = [dataset for dataset in find_datasets(config) if dataset.path.startswith(wrapper.path)]
    other = any(
        says_classes(dataset) and get_class_names(dataset) != list(metainfo.get('classes', ())) for dataset in inner
    )
    changes: Changes = tuple(
        (dataset.place('metainfo'), {**(dataset.config.get('metainfo') or {}), **metainfo}) for dataset in inner
    )
    if wrapper.is_old:
        changes = tuple((dataset.place('classes'), tuple(metainfo['classes'])) for dataset in inner)
    title = 'Move the classes into the wrapped data sets.'
    asks = dict(question='Is the list of the wrapper the right one?', if_not='Remove it from the wrapper.')
    move = propose(title, (wrapper.place(key), REMOVED), *changes, **(asks if other else {}))
    return move_class_list(config, move, metainfo.get('classes'))
