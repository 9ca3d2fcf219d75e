"""Arguments given to a wrapper of data sets, which ignores them."""

from __future__ import annotations

from typing import Any, Iterator, List

from mmguard.config.changes import REMOVED, Changes
from mmguard.config.classes import takes
from mmguard.config.parts import Part, classes_of, datasets, says_classes
from mmguard.config.read import ReadConfig
from mmguard.findings.class_edits import move_class_list
from mmguard.findings.edits import Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose
from mmguard.findings.views import listing


class WrapperMetainfo(ConfigRule):
    """Classes given to a wrapper of data sets, which ignores them."""

    code = 'MG203'
    blames_labels = True
    summary = 'metainfo (or classes) is given to a data set that wraps another one.'
    title = '{kind} at {place} wraps a data set and takes no {key}: the classes do not arrive.'
    why = (
        'RepeatDataset, ConcatDataset, ClassBalancedDataset and MultiImageMixDataset take no class list: building '
        'fails, or the wrapped data set keeps its own classes and the labels do not fit the head.'
    )
    example = Example(
        wrong="dict(type='RepeatDataset', metainfo=dict(classes=('cat',)), dataset=dict(...))",
        right="dict(type='RepeatDataset', dataset=dict(..., metainfo=dict(classes=('cat',))))",
    )
    limits = 'Wrappers of your own are known by their arguments dataset and datasets.'
    advice = 'Write metainfo inside of every wrapped data set. If these have lists of their own, keep the right one.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for wrapper in datasets(config, wrappers=True):
            for key in ('metainfo', 'classes'):
                value = wrapper.config.get(key)
                if value is not None:
                    words = dict(kind=wrapper.name, place=wrapper.path, key=key)
                    yield self.report_at(wrapper.place(key), value, words, edits=_move_inside(config, wrapper, key))


def _move_inside(config: ReadConfig, wrapper: Part, key: str) -> List[Edit]:
    """Move the list into every wrapped data set; a second edit also changes the heads with another number."""
    value: Any = wrapper.config[key]
    metainfo = value if isinstance(value, dict) else {'classes': (value,) if isinstance(value, str) else value}
    inner = [dataset for dataset in datasets(config) if dataset.path.startswith(wrapper.path)]
    other = any(says_classes(dataset) and classes_of(dataset) != list(metainfo.get('classes', ())) for dataset in inner)
    changes: Changes = tuple(
        (dataset.place('metainfo'), {**(dataset.config.get('metainfo') or {}), **metainfo}) for dataset in inner
    )
    if wrapper.is_old:
        changes = tuple((dataset.place('classes'), tuple(metainfo['classes'])) for dataset in inner)
    title = 'Move the classes into the wrapped data sets.'
    asks = dict(question='Is the list of the wrapper the right one?', if_not='Remove it from the wrapper.')
    move = propose(title, (wrapper.place(key), REMOVED), *changes, **(asks if other else {}))
    return move_class_list(config, move, metainfo.get('classes'))


class WrapperPipeline(ConfigRule):
    """A pipeline given to a wrapper of data sets, which ignores it."""

    code = 'MG254'
    summary = 'A wrapper of data sets (RepeatDataset, ConcatDataset) is given a pipeline, which it does not take.'
    title = '{kind} takes no pipeline, but the data sets in it do: {places}.'
    why = (
        'The wrapper cannot be built: "unexpected keyword argument \'pipeline\'". The data sets inside have pipelines.'
    )
    example = Example(
        wrong="dict(type='RepeatDataset', pipeline=[...], dataset=dict(...))",
        right="dict(type='RepeatDataset', dataset=dict(..., pipeline=[...]))",
    )
    limits = 'A wrapper of your own that takes a pipeline is right, and is not reported.'
    advice = 'Write the pipeline in every data set inside of the wrapper.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for wrapper in datasets(config, wrappers=True):
            pipeline = wrapper.config.get('pipeline')
            if pipeline is None or wrapper.cls is None or takes(wrapper.cls, 'pipeline'):
                continue
            inner = [one.place('pipeline') for one in datasets(config) if _is_inside(one, wrapper)]
            words, place = dict(kind=wrapper.name, places=listing(inner)), wrapper.place('pipeline')
            changes = ((place, REMOVED), *((one, pipeline) for one in inner))
            line = f'pipeline of {wrapper.path} at {listing(inner)}'
            edit = propose('Move the pipeline into the data sets.', *changes, lines=(line,))
            steps = [step.get('type') for step in pipeline if isinstance(step, dict)]
            yield self.report_at(place, steps, words, edits=[edit])


def _is_inside(dataset: Part, wrapper: Part) -> bool:
    owner = dataset.owner
    while owner is not None and owner.path != wrapper.path:
        owner = owner.owner
    return owner is not None
