"""First stage of a dry run: builds from the user's config what ``Runner.train()`` builds before its first iteration."""

from __future__ import annotations

import contextlib
import copy
import re
import tempfile
import traceback
from typing import Any, ContextManager, List

import torch
from mmengine.hooks import RuntimeInfoHook
from mmengine.logging import MessageHub
from mmengine.runner import Runner
from torch.utils.data import DataLoader

from mmguard.config.classes import get_type_name
from mmguard.properties.program import Program, cache_result, is_missing, prepare_message_hub
from mmguard.properties.result import Result, broken, describe_missing, not_run, note, ran, reports_no_samples
from mmguard.properties.worker import Failure
from mmguard.text import quantity

#: Packages whose hooks are called before the first iteration (other hooks are only built). Their steps map no labels.
_PACKAGES = ('mmengine', 'mmseg', 'mmdet', 'mmcv')
#: Errors caused by the device or installation of this machine, not by the program.
_OF_THIS_MACHINE = re.compile(r'(?i)\bcpu\b|cuda|not implemented|not compiled|not installed|no kernel|memory')
#: Cause of a failure if the pipeline drops a sample in every load.
DROPPED = 'dropped'
#: {cause of a failure: pattern of its exceptions}; the cause of any other exception is its text.
_CAUSES = {
    'meta_keys': re.compile("KeyError: '(img_id|img_path|img_shape|ori_shape|pad_shape|scale_factor|flip)'"),
    DROPPED: re.compile('Cannot find valid image'),
}
#: {function of a runner: part of the config that it builds}.
_PARTS = {
    'start_runner': 'the runner',
    'build_model': 'model',
    'build_train_loop': 'train_cfg',
    'build_optim_wrapper': 'optim_wrapper',
    'scale_lr': 'auto_scale_lr',
    'build_param_scheduler': 'param_scheduler',
    'build_val_loop': 'val_evaluator',
    'register_hooks': 'hooks',
    'call_hook': 'hooks',
    'load_or_resume': 'load_from',
}


class StartedRunner(Runner):
    """Runner that does not log the environment or dump the config, and stops ``train()`` before the first iteration."""

    def _do_nothing(self, *_: Any) -> None: ...

    _log_env = dump_config = _init_model_weights = _maybe_compile = _do_nothing

    def build_train_loop(self, loop: Any) -> Any:
        built = super().build_train_loop(loop)
        built.run = lambda: None
        return built

    def call_hook(self, fn_name: str, **kwargs: Any) -> None:
        """Call ``before_run`` of the frameworks' hooks, but not of RuntimeInfoHook, which formats the config slowly."""
        for hook in self._hooks if fn_name == 'before_run' else ():
            if not is_foreign(hook) and not isinstance(hook, RuntimeInfoHook):
                hook.before_run(self)


def is_foreign(part: Any) -> bool:
    """Return True if a hook or a pipeline step is not defined in a package of OpenMMLab."""
    return type(part).__module__.partition('.')[0] not in _PACKAGES


@cache_result
def build_loader(program: Program, split: str, number: int = 0) -> DataLoader:
    """Build the user's data loader without worker processes; calls with the same ``number`` return the same loader."""
    dataset = program.build_dataset(split)
    node = copy.deepcopy(dict(program.config[f'{split}_dataloader']))
    for key in ('prefetch_factor', 'pin_memory', 'dataset'):
        node.pop(key, None)
    node.update(num_workers=0, persistent_workers=False)
    with program.scope():
        return Runner.build_dataloader({**node, 'dataset': dict(type=lambda: dataset)}, seed=0)


@cache_result
def start_runner(program: Program) -> StartedRunner:
    """Return a runner that has built all parts of a training, and stopped before the first iteration."""
    config, model = copy.deepcopy(program.config), program.build_model()
    wrapper = config.get('optim_wrapper')
    if program.device == 'cpu' and wrapper and get_type_name(wrapper.get('type')) == 'AmpOptimWrapper':
        wrapper['type'] = 'OptimWrapper'  # AmpOptimWrapper cannot be built without a GPU
        for key in ('loss_scale', 'dtype', 'use_fp16'):
            wrapper.pop(key, None)
    keys = ['train_cfg', 'auto_scale_lr', 'optim_wrapper', 'param_scheduler', 'custom_hooks', 'log_processor']
    loaders = dict(train_dataloader=build_loader(program, 'train'))
    if has_validation(program):
        keys += ['val_cfg', 'val_evaluator']
        loaders['val_dataloader'] = build_loader(program, 'val')
    load_from, folder = config.get('load_from'), tempfile.mkdtemp()
    runner = StartedRunner(
        model=model,
        work_dir=folder,
        default_hooks=dict(config.get('default_hooks') or {}),
        load_from=None if load_from and is_missing(load_from) else load_from,
        env_cfg=dict(dist_cfg=dict(backend='gloo')),
        log_level='CRITICAL',
        visualizer=dict(config.get('visualizer') or dict(type='Visualizer'), vis_backends=[], name=folder),
        default_scope=config.get('default_scope', 'mmengine'),
        randomness=dict(seed=0),
        experiment_name=folder.rpartition('/')[2],
        cfg=config,
        **loaders,
        **{key: config.get(key) for key in keys},
    )
    try:
        runner.train()
    finally:
        model.to(program.device)
        prepare_message_hub(MessageHub.get_current_instance())
    return runner


def has_validation(program: Program) -> bool:
    """Return True if the config has a validation whose data loader can be built."""
    with contextlib.suppress(Exception):  # reported with the data
        return bool(program.config.get('val_cfg') and build_loader(program, 'val'))
    return False


def check_build(program: Program) -> List[Result]:
    """Build data sets, loaders, model, hooks, optimizer, schedulers and evaluator, and load ``load_from``."""
    results = []
    for split in ('train', 'val'):
        if split == 'val' and not program.config.get('val_dataloader'):
            continue
        try:
            dataset = program.build_dataset(split)
            build_loader(program, split)
            words = f'built on your {len(dataset):,} samples, with your sampler and collate function'
            results.append(ran(f'{split} data ({type(dataset).__name__})', words, dict(samples=len(dataset))))
        except Exception as error:
            results.append(judge_failure(f'{split} data', error, split))
    try:
        program.build_model()
    except Exception as error:
        return [*results, judge_failure('model', error)]
    if any(one.data.get('split') == 'train' for one in results):
        return results
    load_from = program.config.get('load_from')
    if load_from and '://' not in load_from and is_missing(load_from):
        results.append(broken('load_from', f'{load_from} does not exist'))
    try:
        runner = start_runner(program)
    except Exception as error:
        return [*results, judge_failure('', error)]
    words = f'built: {type(runner.model).__name__}, {type(runner.optim_wrapper).__name__}, '
    words += f'{quantity(len(runner.hooks), "hook")}' + (', evaluator' if has_validation(program) else '')
    results.append(ran('training', f'{words}; hooks were called up to before_run'))
    foreign = sorted({type(hook).__name__ for hook in runner.hooks if is_foreign(hook)} - {'LabelGuardHook'})
    if foreign:
        results.append(note('hooks', f'built, but not run, because other packages define them: {", ".join(foreign)}'))
    if load_from and '://' in load_from:
        results.append(note('load_from', f'{load_from} was not loaded: the program runs without network'))
    return results


def judge_failure(subject: str, error: Exception, split: str = '') -> Result:
    """Return a result for an exception: broken, or not run if missing files or this machine are the cause."""
    frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    subject = [subject, *(_PARTS[one] for one in frames if one in _PARTS)][-1]
    failure, missing = describe_failure(error), describe_missing(error)
    data = dict(split=split, failure=next((cause for cause, sign in _CAUSES.items() if sign.search(failure)), failure))
    if reports_no_samples(error):
        return broken(subject, 'the data set has no samples: `mmguard scan CONFIG` says why', data)
    if missing:
        return not_run('', missing, data)
    if _OF_THIS_MACHINE.search(str(error)):
        return not_run(subject, failure, data)
    if data['failure'] == 'meta_keys':
        failure += ': is this key among the meta_keys of the Pack step?'
    return broken(subject, failure, data)


def describe_failure(error: Exception) -> str:
    """Describe an exception, with its place in the user's code, or else in the package that raised it."""
    found = Failure.describe(error)
    frames = traceback.extract_tb(error.__traceback__)
    place = found.place or (f'{frames[-1].filename.rpartition("/")[2]}:{frames[-1].lineno}' if frames else '')
    return str(found._replace(place=place))


def enter_autocast(program: Program) -> ContextManager[Any]:
    """Return the autocast context of AmpOptimWrapper; a null context for other optimizer wrappers."""
    if get_type_name((program.config.get('optim_wrapper') or {}).get('type')) != 'AmpOptimWrapper':
        return contextlib.nullcontext()
    # Some kernels are missing for half precision on the CPU.
    dtype = torch.bfloat16 if program.device == 'cpu' else torch.float16
    return torch.autocast(program.device.partition(':')[0], dtype=dtype)
