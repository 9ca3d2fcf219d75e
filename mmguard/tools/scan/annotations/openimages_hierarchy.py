"""OpenImages' ``hierarchy_file``: which class is a kind of which. mmdet walks it before it reads a box."""

from __future__ import annotations

import json
import os
from typing import Any, Container, List

from mmguard.files.regular import open_regular
from mmguard.tools.scan.annotations.faults import Faults, short

#: mmdet's walk calls itself once for each level, and Python has an end to that.
DEEPEST = 400


def check_hierarchy(path: str, labels: Container[str], faults: Faults) -> None:
    """Reads a hierarchy as mmdet does. Never raises for what it holds.

    Args:
        path (str): The JSON file.
        labels (container of str): The labels of the label file; each node's must be one of them.
        faults (Faults): Takes what is wrong.
    """
    source = os.path.basename(path) or path
    try:
        with open_regular(path) as file:
            tree = json.loads(file.read().decode('utf-8'))
    except RecursionError:
        faults.add('is nested too deeply', source)
    except UnicodeDecodeError:
        faults.add('is not UTF-8', source)
    except OSError as error:
        faults.add(f'cannot be opened: {error.strerror or error}', source)
    except ValueError as error:  # of JSON, or of a path with a null byte
        faults.add('is no JSON: mmdet stops here', f'{source}: {short(str(error))}')
    else:
        _check_nodes(tree, labels, faults, source)


def _check_nodes(tree: Any, labels: Container[str], faults: Faults, source: str) -> None:
    level: List[Any] = [tree]
    for depth in range(DEEPEST):
        below: List[Any] = []
        for node in level:
            children = node.get('Subcategory', []) if isinstance(node, dict) else None
            if not isinstance(children, list):
                faults.add('is no tree of "LabelName" and "Subcategory": mmdet stops here', f'{source}: {short(node)}')
                continue
            if depth and 'LabelName' in node and not _is_known(node['LabelName'], labels):
                what = 'a label of the hierarchy is not in the label file: mmdet stops here'
                faults.add(what, f'{source}: {short(node["LabelName"])}')
            if 'LabelName' in node or not depth:  # mmdet does not look below a node without
                below += children
        if not below:
            return
        level = below
    faults.add('is nested too deeply', source)


def _is_known(label: Any, labels: Container[str]) -> bool:
    return isinstance(label, str) and label in labels
