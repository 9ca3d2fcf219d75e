"""Detection of OpenMMLab configs from their text, before anything is run."""

from __future__ import annotations

import ast
import errno
import os
import re
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from mmguard.compat.stack import OPENMMLAB, SHIPPED, STACKS, build_base_source, find_config_file
from mmguard.errors import CannotRun
from mmguard.files.plain_data import NotPlain, parse_data
from mmguard.files.regular import read_regular
from mmguard.text import visible_name

#: A value that is unknown without running the file.
_UNKNOWN = object()
#: Calls that create plain values.
_MAKERS = ('dict', 'list', 'tuple', 'range', 'float', 'int', 'str', 'len')
#: Maximum size of a config.
_LARGEST = 8 << 20
#: Top-level keys of configs whose values have a ``type``; ``optimizer`` is one in configs for mmcv 1.x.
_PARTS = ('model', 'tta_model', 'data_preprocessor', 'optim_wrapper', 'optimizer', 'param_scheduler', 'visualizer')
_ENDINGS = ('_evaluator', '_pipeline', '_cfg', 'pipeline')


#: Checks that work with any training loop.
CHECK_TARGET_ADVICE = (
    'call `mmguard.functional.check_target(logits, target)` in your training loop (for boxes '
    '`mmguard.detection.guard_targets`)'
)
SCAN_LABELS_ADVICE = f'scan its label files with `mmguard scan FOLDER --num-classes N`, or {CHECK_TARGET_ADVICE}'
_DETR_NOTE = 'a config of RT-DETR, D-FINE or DEIM: `mmguard scan` reads it, and the annotation files that it names'
_DETECTRON2_NOTE = 'a config of detectron2: run `mmguard scan` on its data set (COCO JSON) with --framework detectron2'
_YOLO_NOTE = 'a data.yaml (YOLO): `mmguard scan` reads it and its label files'
#: Package imported by a script -> kind of script, and what to do.
_BY_IMPORT = {
    'detectron2': f'a script, or {_DETECTRON2_NOTE}',
    'yolox': 'an experiment of YOLOX: run `mmguard scan` on its data set (COCO JSON) with --framework yolox',
    'ultralytics': 'a script of ultralytics: run `mmguard scan` on the data.yaml that it trains on',
}
#: Keys of YAML and JSON -> kind of file, and what to do. Many such files share keys with OpenMMLab configs.
_BY_KEYS = [
    (set(keys.split()), words)
    for keys, words in (
        ('__include__', _DETR_NOTE),
        ('remap_mscoco_category', _DETR_NOTE),
        ('train_dataset iters', f'a config of PaddleSeg: {SCAN_LABELS_ADVICE}'),
        ('names train', _YOLO_NOTE),
        ('names val', _YOLO_NOTE),
        ('names nc', _YOLO_NOTE),
        ('DATASET', f'a config of HRNet, PIDNet or similar (label ids and weights in its code): {SCAN_LABELS_ADVICE}'),
        ('_BASE_', _DETECTRON2_NOTE),
        ('MODEL', _DETECTRON2_NOTE),
        ('images annotations', 'a COCO JSON: `mmguard scan` reads it'),
        ('backbone head', 'a model of ultralytics (YOLO): run `mmguard scan` on the data.yaml that it trains on'),
        ('task mode data', 'training arguments of ultralytics (YOLO): run `mmguard scan` on the file named by `data`'),
        ('network_def', f'a bundle of MONAI: scan the folder with dataset.json, or {SCAN_LABELS_ADVICE}'),
        ('bundle_root', f'a bundle of MONAI: scan the folder with dataset.json, or {SCAN_LABELS_ADVICE}'),
        ('trainer model', f'a config of Lightning: {SCAN_LABELS_ADVICE}'),
        ('defaults', f'a config of Hydra: {SCAN_LABELS_ADVICE}'),
        ('architectures model_type', f'a model of Hugging Face: {SCAN_LABELS_ADVICE}'),
    )
]
#: The first _SURE entries of _BY_KEYS apply even if the file has keys of an OpenMMLab config.
_SURE = 3

#: Endings of configs that are read as data, not run.
DATA_ENDINGS = ('.yaml', '.yml', '.json')


class NotAConfig(CannotRun):
    """Error for a file that is not an OpenMMLab config; its message says what the file looks like."""


def check_is_config(file: str, is_base: bool = False) -> None:
    """Raise :class:`NotAConfig` if a file is not a config, without running it.

    Missing and unparsable files pass: loading them will fail. If ``is_base`` is true, files of plain values pass, too.

    Raises:
        NotAConfig: The top level assigns no key of a config, or the file is YAML or JSON that would run code.
    """
    ending = os.path.splitext(file)[1].lower()
    text = read_text(file)
    if text is None:
        return
    try:
        looks = _describe_python(text, is_base) if ending == '.py' else _describe_keys(text, ending, is_base)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    if looks:
        raise NotAConfig(
            f'{file} is not a config of MMSegmentation or MMDetection: its top level does not set model, '
            f'*_dataloader, default_scope or _base_ as such configs do. It looks like {looks}. Nothing in it was run'
        )


def read_text(file: str) -> Optional[str]:
    """Read a Python, YAML or JSON file, and fill in its templates; return ``None`` for other or unreadable files.

    Raises:
        NotAConfig: The file is too large.
    """
    if os.path.splitext(file)[1].lower() not in ('.py', '.yaml', '.yml', '.json') or not os.path.isfile(file):
        return None
    try:
        text = read_regular(file, _LARGEST).decode()
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise NotAConfig(f'{file}: {error.strerror}: too large for a config. Nothing in it was run') from error
        return None
    except UnicodeDecodeError:
        return None
    text = text.replace('\r\n', '\n').replace('\r', '\n')
    # Fill in templates as mmengine does before parsing, except values from bases and the environment.
    folder, base = os.path.split(os.path.abspath(file))
    stem, ending = os.path.splitext(base)
    known = {'fileDirname': folder, 'fileBasename': base, 'fileBasenameNoExtension': stem, 'fileExtname': ending}
    return re.sub(r'\{\{([^{}\n]*)\}\}', lambda found: known.get(found.group(1).strip(), '_').replace('\\', '/'), text)


def _describe_python(text: str, is_base: bool) -> str:
    """Describe Python code that is not a config (a script, another framework's config); return '' for a config."""
    tree = ast.parse(text)
    if is_base and all(map(_is_plain, tree.body)):
        return ''
    script = any('__name__' in ast.dump(node.test) for node in tree.body if isinstance(node, ast.If))
    assigned = list(_find_assigned(tree.body))
    names = {name for name, _ in assigned}
    # In OpenMMLab every model has a type, in the config itself or in a base.
    other = any(
        name == 'model' and isinstance(value, Mapping) and not {'type', None} & set(value) for name, value in assigned
    )
    if other and not is_base and not {'_base_', 'default_scope'} & names:
        return f'a config of another framework (its model has no type): {SCAN_LABELS_ADVICE}'
    if not script and any(_is_telling(name, value) for name, value in assigned):
        return ''
    imported = sorted({name for node in ast.walk(tree) for name in _find_imported(node)})
    known = next((words for package, words in _BY_IMPORT.items() if package in imported), '')
    if known:
        return known
    return f'a script{f" (it imports {join_names(imported)})" if imported else ""}: {SCAN_LABELS_ADVICE}'


def join_names(names: Sequence[str]) -> str:
    """Join the first six names with commas."""
    return ', '.join(names[:6])


def _find_imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name.split('.')[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module.split('.')[0]


def _find_assigned(body: List[ast.stmt]) -> Iterator[Tuple[str, Any]]:
    """Yield (name, value) for each assignment at the top level of a file."""
    for node in body:
        if isinstance(node, ast.With):
            if any('read_base' in ast.dump(item.context_expr) for item in node.items):
                yield '_base_', ''  # the bases of the new style
            yield from _find_assigned(node.body)
        elif isinstance(node, (ast.If, ast.For, ast.Try)):
            yield from _find_assigned(node.body)
        elif isinstance(node, ast.Assign):
            yield from ((target.id, _evaluate(node.value)) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, _evaluate(node.value)


def _evaluate(node: ast.expr) -> Any:
    """Return the value of a constant or list, a dict's keys with value ``_UNKNOWN``, or ``_UNKNOWN`` for the rest."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_evaluate(one) for one in node.elts]
    if isinstance(node, ast.Dict):
        return {key.value: _UNKNOWN for key in node.keys if isinstance(key, ast.Constant)}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == 'dict':
        return {keyword.arg: _UNKNOWN for keyword in node.keywords}
    return node.value if isinstance(node, ast.Constant) else _UNKNOWN


def _is_plain(node: ast.AST) -> bool:
    """Return True if a statement only creates values, without imports or calls except ``dict(...)`` and similar."""
    return all(
        not isinstance(inner, (ast.Import, ast.ImportFrom))
        and (not isinstance(inner, ast.Call) or (isinstance(inner.func, ast.Name) and inner.func.id in _MAKERS))
        for inner in ast.walk(node)
    )


def _describe_keys(text: str, ending: str, is_base: bool) -> str:
    """Describe YAML or JSON that is not a config: the program that reads it, or its fault. Return '' for a config."""
    try:
        data = parse_data(text, ending)
    except NotPlain as error:
        return str(error)
    if not isinstance(data, Mapping):
        return 'data without keys'
    if is_base or '_base_' in data or 'default_scope' in data:
        return ''
    first = next((words for keys, words in _BY_KEYS[:_SURE] if keys <= set(data)), '')
    if first or any(_is_telling(str(name), value) for name, value in data.items()):
        return first
    known = next((words for keys, words in _BY_KEYS[_SURE:] if keys <= set(data)), '')
    keys = join_names([visible_name(str(key), 60) for key in data])
    return known or f'a file of another program, with the keys {keys}: {SCAN_LABELS_ADVICE}'


def _is_telling(name: str, value: Any) -> bool:
    """Return True if an assignment is typical of an OpenMMLab config; scripts may assign ``model`` or ``data``, too."""
    if name in ('_base_', 'default_scope'):
        return isinstance(value, (str, list))
    parts = value if isinstance(value, list) else [value]
    keys = {str(key) for part in parts if isinstance(part, Mapping) for key in part}
    if name in _PARTS or name.endswith(_ENDINGS):
        return 'type' in keys
    if name.endswith('_dataloader'):
        return bool(keys & {'dataset', 'batch_size'})
    return name == 'data' and bool(keys & {'samples_per_gpu', 'workers_per_gpu', 'train_dataloader'})


#: Maximum number of base files.
_MOST = 1000


def check_bases(file: str) -> List[str]:
    """Check a config file and the bases that can be found without running code, and return all their paths.

    Missing and unparsable files are accepted: they fail when they are loaded.

    Raises:
        NotAConfig: A file is not a config, or includes itself.
    """
    check_is_config(file)
    seen: Dict[str, bool] = {}
    _walk(os.path.abspath(file), [], seen)
    return list(seen)


def _walk(file: str, path: List[str], seen: Dict[str, bool]) -> None:
    if file in path:
        chain = [os.path.basename(one) for one in (*path[path.index(file) :], file)]
        raise NotAConfig(f'{file}: its _base_ is circular: {" -> ".join(chain)}. Nothing in it was run')
    if file in seen or len(seen) > _MOST or len(path) > 100:
        return
    seen[file] = True
    if path:
        check_is_config(file, is_base=True)
    for base in find_bases(file):
        _walk(base, [*path, file], seen)


def find_bases(file: str) -> List[str]:
    """Return the paths of a config's base files, except bases that are only known after running the config."""
    ending = os.path.splitext(file)[1].lower()
    text = read_text(file)
    if text is None:
        return []
    folder = os.path.dirname(file)
    try:
        if ending == '.py':
            body = ast.parse(text).body
            named = [*_find_text_style_bases(body), *_find_new_style_bases(body, folder)]
        else:
            data = parse_data(text, ending)
            said = data.get('_base_') if isinstance(data, dict) else None
            named = [said] if isinstance(said, str) else said if isinstance(said, list) else []
    except (SyntaxError, ValueError, NotPlain, RecursionError, MemoryError):
        return []
    paths = [_resolve_path(name, folder) for name in named if isinstance(name, str)]
    return [os.path.abspath(path) for path in paths if '\0' not in path and os.path.isfile(path)]


def _resolve_path(name: str, folder: str) -> str:
    try:
        return find_config_file(name) if '::' in name else os.path.join(folder, name)
    except (ModuleNotFoundError, FileNotFoundError):
        return ''


def _find_text_style_bases(body: Sequence[ast.stmt]) -> Iterator[Any]:
    for node in body:
        if isinstance(node, ast.Assign) and any(getattr(target, 'id', '') == '_base_' for target in node.targets):
            for one in node.value.elts if isinstance(node.value, (ast.List, ast.Tuple)) else [node.value]:
                if isinstance(one, ast.Constant):
                    yield one.value
                elif isinstance(one, ast.BinOp):
                    yield _find_shipped(one)


def _find_shipped(node: ast.BinOp) -> str:
    """Return ``'mmseg::...'`` for an expression that ``build_base_source`` writes, or '' for any other expression."""
    path = node.right.value if isinstance(node.right, ast.Constant) and isinstance(node.right.value, str) else ''
    names = [f'{package}::{path[len(SHIPPED) :]}' for package in STACKS[OPENMMLAB] if path.startswith(SHIPPED)]
    said = ast.dump(node)
    return next((name for name in names if ast.dump(ast.parse(build_base_source(name), mode='eval').body) == said), '')


def _find_new_style_bases(body: Sequence[ast.stmt], folder: str) -> Iterator[str]:
    """Yield the files that ``with read_base():`` blocks import from, with paths as mmengine resolves them."""
    for node in body:
        if not isinstance(node, ast.With) or 'read_base' not in ast.dump(node.items[0].context_expr):
            continue
        for inner in node.body:
            if isinstance(inner, ast.ImportFrom) and inner.module and inner.level:
                yield os.path.join(folder, *['..'] * (inner.level - 1), *inner.module.split('.')) + '.py'
