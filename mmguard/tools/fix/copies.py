"""Corrected copies of the label files of a target, and the manifest that says what was changed."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, FrozenSet, Iterator, List, NamedTuple, Set, Tuple, Union

from mmguard.files.whole import write_whole
from mmguard.labels.space import OTHERS
from mmguard.text.failures import REPORT_IT, words_of
from mmguard.tools.fix.checked import check_for
from mmguard.tools.fix.maps import Corrected
from mmguard.tools.fix.options import CannotCorrect, FixOptions, NotCorrected, as_label_map
from mmguard.tools.fix.output import begin, check_places, digest, digests_after, link, read_manifest, write_manifest
from mmguard.tools.scan.sources.folders import walk
from mmguard.tools.storage.files import FILES
from mmguard.tools.storage.urls import below, is_url, joined

if TYPE_CHECKING:
    from mmguard.tools.fix.yolo import YoloFiles

#: Of the content of a file, and its name.
Correct = Callable[[bytes, str], Corrected]
Link = Callable[[str, Path], bool]
#: Of a VOC data set: nothing in it is a label.
IMAGES = 'JPEGImages'


class Copies(NamedTuple):
    """What became of the files.

    Attributes:
        done (list[dict]): Those with a copy, as the manifest has them.
        left_out (list[dict]): Those without, and why.
        linked (int): Images.
        failures (list[Exception]): Of those without, what nobody foresaw: a fault of mmguard's own.
    """

    done: List[Dict[str, Any]]
    left_out: List[Dict[str, str]]
    linked: int
    failures: List[Exception]


def write_copies(target: Union[str, Path], out: Path, options: FixOptions, to_link: Link = link) -> Copies:
    """Writes corrected copies of the label files of a target.

    Args:
        target (str): A folder of label maps, a COCO or LVIS JSON, a VOC folder (or one of XML files), a folder or
            data.yaml of YOLO, a folder or JSON of Labelme, Cityscapes or CVAT, or a folder of oriented
            boxes (DOTA, DIOR, HRSC); or the URL of one of the first three.
        out (Path): Where the copies go.
        options (FixOptions): What is valid.
        to_link (callable): Puts images beside their annotations; says whether it did.

    Raises:
        CannotCorrect, OSError: Nothing could be done.
    """
    target = os.fspath(target)
    if not is_url(target):
        check_places(Path(target), out)
    files, correct, images = _plan(target, options)
    final = _final(target, options)
    out.mkdir(parents=True, exist_ok=True)
    begin(out, target, options)
    copies = _write(out, files, correct, final, to_link, images)
    write_manifest(out, target, options, files=copies.done, left_out=copies.left_out)
    return copies


def _plan(target: str, options: FixOptions) -> Tuple[List[Tuple[str, str]], Correct, FrozenSet[str]]:
    """The label files with their names in the copy, what corrects one, and which of them are images beside them."""
    from mmguard.tools.fix.coco import correct_coco
    from mmguard.tools.fix.cvat import plan_of_cvat
    from mmguard.tools.fix.hf import plan_of_image_folder
    from mmguard.tools.fix.maps import correct_map
    from mmguard.tools.fix.oriented import plan_of_oriented
    from mmguard.tools.fix.shapes import plan_of_cityscapes, plan_of_labelme
    from mmguard.tools.fix.voc import correct_voc
    from mmguard.tools.fix.yolo import yolo_files
    from mmguard.tools.scan.annotations.cityscapes import is_cityscapes
    from mmguard.tools.scan.annotations.cvat import is_cvat
    from mmguard.tools.scan.annotations.hf import is_image_folder
    from mmguard.tools.scan.annotations.labelme import is_labelme
    from mmguard.tools.scan.annotations.oriented.labels import format_of
    from mmguard.tools.scan.annotations.voc import is_voc
    from mmguard.tools.scan.sources.folder import label_files
    from mmguard.tools.scan.sources.folders import is_image_name

    if not FILES.exists(target):
        raise CannotCorrect(f'{target} does not exist: name a folder of label maps, a COCO JSON or a VOC folder')
    if not is_url(target) and is_cvat(target):
        return plan_of_cvat(Path(target), options)
    if not is_url(target) and not options.suffix and format_of(target):
        return plan_of_oriented(Path(target), options)
    if not is_url(target) and not options.suffix and is_image_folder(target):
        return plan_of_image_folder(Path(target), options)
    texts = None if is_voc(target) else yolo_files(target)
    if texts is not None:
        return _plan_of_yolo(texts, options)
    if not is_url(target) and is_cityscapes(target, options.suffix):
        return plan_of_cityscapes(Path(target), options)
    if not (is_url(target) or options.suffix or is_voc(target)) and is_labelme(target):
        return plan_of_labelme(Path(target), options)
    if FILES.is_file(target):
        if not target.lower().endswith('.json'):
            raise CannotCorrect(f'{target}: a single file must be a COCO or LVIS .json; of label maps, name the folder')
        if OTHERS in options.label_map:
            raise CannotCorrect(
                '--label-map: * stands for all other values of label maps; of a JSON name every category id'
            )
        return [(target, os.path.basename(target))], lambda data, name: correct_coco(data, options), frozenset()
    names = sorted(_walk(target))
    in_voc = [name for name in names if name.lower().endswith('.xml')]
    if in_voc and (is_voc(target) or not any(map(is_image_name, names))):
        if options.label_map:
            raise CannotCorrect('--label-map maps numbers; VOC has names: name the valid ones with --classes')
        images = _images_beside(names)
        lists = [name for name in names if 'ImageSets' in Path(name).parts]
        files = [(os.path.join(target, name), name) for name in (*in_voc, *lists, *sorted(images))]
        return (
            files,
            lambda data, name: (
                correct_voc(data, options) if _ending(name).lower() == '.xml' else _unchanged(data, name)
            ),
            images,
        )
    maps = sorted(below(path, target) for path in label_files(target, options.suffix))
    if not maps:
        if options.suffix:
            raise CannotCorrect(f'{target}: no label map has a name that ends with {options.suffix} (--suffix)')
        raise CannotCorrect(f'{target} holds no labels that fix corrects: name their folder, or a COCO .json itself')
    import PIL.Image  # noqa: F401  without it no map is written at all

    if options.num_classes is None:
        raise CannotCorrect('label maps do not say how many classes there are: add --num-classes N')
    _check_rule(options)
    return (
        [(os.path.join(target, name), name) for name in maps],
        lambda data, name: correct_map(data, _ending(name), options),
        frozenset(),
    )


def _plan_of_yolo(texts: YoloFiles, options: FixOptions) -> Tuple[List[Tuple[str, str]], Correct, FrozenSet[str]]:
    from mmguard.tools.fix.yolo import correct_data_yaml, correct_text
    from mmguard.tools.scan.sources.folders import is_image_name
    from mmguard.tools.scan.yolo.declared import is_data_yaml

    names = sorted(_walk(texts.folder))
    own = {name for name in names if name in texts.texts or is_data_yaml(joined(texts.folder, name))}
    # Behind a URL nothing can be linked: images stay there, lists of them are written.
    others = {name for name in names if is_image_name(name)} if is_url(texts.folder) else {*names} - own

    def correct(data: bytes, name: str) -> Corrected:
        if name in texts.texts:
            return correct_text(data, options, texts.kpt_shape, texts.texts[name])
        return correct_data_yaml(data, _ending(name)) if name in own else _unchanged(data, name)

    return [(joined(texts.folder, name), name) for name in names], correct, frozenset(others)


def _ending(name: str) -> str:
    return os.path.splitext(name)[1]


def _unchanged(data: bytes, name: str) -> Corrected:
    return Corrected(data, _ending(name), [], {}, {})


def _images_beside(names: List[str]) -> FrozenSet[str]:
    """The images of a VOC folder: those in JPEGImages, and those beside an XML file of their name."""
    from mmguard.tools.scan.sources.folders import is_image_name

    annotated = {os.path.splitext(name)[0] for name in names if name.lower().endswith('.xml')}
    return frozenset(
        name
        for name in names
        if not name.lower().endswith('.xml')
        and (IMAGES in Path(name).parts or (is_image_name(name) and os.path.splitext(name)[0] in annotated))
    )


def _check_rule(options: FixOptions) -> None:
    from mmguard.labels.space import LabelRule

    try:
        LabelRule(options.num_classes or 1, options.ignore_index, options.on_invalid, as_label_map(options.label_map))
    except (TypeError, ValueError) as error:
        raise CannotCorrect(str(error)) from error


def _walk(folder: str) -> Iterator[str]:
    if is_url(folder):
        for far in walk(folder, _cannot_list):
            yield from (below(f'{far.path}/{name}', folder) for name in far.names)
        return
    for place, _, names in os.walk(folder):
        for name in names:
            yield os.path.relpath(os.path.join(place, name), folder)


def _cannot_list(folder: str, error: OSError) -> None:
    raise CannotCorrect(f'{folder} cannot be listed: {error}')


def _final(target: str, options: FixOptions) -> Set[str]:
    """Digests of what was corrected by the same rules: it is not mapped a second time."""
    earlier = read_manifest(Path(target)) if os.path.isdir(target) else None
    if earlier is None:
        return set()
    if earlier.get('finished') is False:
        raise CannotCorrect(
            f'{target} is what an interrupted mmguard fix of {earlier.get("target")} left: run that again first'
        )
    return digests_after(earlier) if earlier.get('options') == options.to_json() else set()


def _write(
    out: Path,
    files: List[Tuple[str, str]],
    correct: Correct,
    final: Set[str],
    to_link: Link,
    images: FrozenSet[str],
) -> Copies:
    done: List[Dict[str, Any]] = []
    left_out: List[Dict[str, str]] = []
    failures: List[Exception] = []
    taken: Dict[str, str] = {}
    linked = 0
    readers = FILES.readers([path for path, name in files if name not in images], _read)
    for path, name in files:
        try:
            if name in images:
                linked += to_link(path, out / name)
                continue
            data = next(readers)()
            before = digest(data)
            corrected = _unchanged(data, name) if before in final else correct(data, name)
            new_name = name[: len(name) - len(_ending(name))] + corrected.ending
            if new_name in taken:
                raise NotCorrected(f'its copy would have the name of that of {taken[new_name]}')
            write_whole(out / new_name, corrected.data, check_for(corrected.ending))
        except (NotCorrected, OSError, MemoryError) as error:
            left_out.append({'file': name, 'reason': str(error) or type(error).__name__})
            continue
        except Exception as error:  # the other files are written all the same
            left_out.append({'file': name, 'reason': f'{words_of(error)}; {REPORT_IT}'})
            failures.append(error)
            continue
        taken[new_name] = name
        done.append(
            {
                'file': name,
                'written': new_name,
                'changes': corrected.changes,
                'values': corrected.values,
                'counts': corrected.counts,
                'sha256_before': before,
                'sha256_after': digest(corrected.data),
            }
        )
    for entry in left_out:  # an earlier run may have written it
        for name in {entry['file'], f'{os.path.splitext(entry["file"])[0]}.png'} - taken.keys():
            with suppress(OSError):
                (out / name).unlink()
    return Copies(done, left_out, linked, failures)


def _read(path: str) -> bytes:
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise NotCorrected('no regular file')  # reading a pipe would wait for ever
    return Path(path).read_bytes()
