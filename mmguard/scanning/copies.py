"""Corrected copies of a target's label files, and the manifest of the changes."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Set, Union

from mmguard.errors import CannotRun
from mmguard.files.inside import OutsideError, resolve_inside, tell_inside
from mmguard.files.regular import LOCK, NOT_REGULAR, hold_folder, is_draft, open_regular, read_regular, write_whole
from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.formats.listings import is_image_name
from mmguard.formats.maps.folder import label_files
from mmguard.formats.options import (
    CannotCorrect,
    FixOptions,
    LabelFiles,
    NotCorrected,
    ending_of,
    keep_file,
    names_below,
)
from mmguard.formats.other_files import words_of_program
from mmguard.labels.instances import LABEL_REASON, describe_boxes
from mmguard.labels.space import OTHERS, LabelRule
from mmguard.scanning import target as formats
from mmguard.storage.urls import below, is_url
from mmguard.text import REPORT_IT, describe_error
from mmguard.version import __version__

Link = Callable[[str, Path, bool], None]


class Copies(NamedTuple):
    """Result for the files: those copied, those left out with the reasons, linked images, internal errors."""

    done: List[Dict[str, Any]]
    left_out: List[Dict[str, str]]
    linked: int
    failures: List[Exception]


MANIFEST = 'manifest.json'
_LARGEST = 1 << 30
_WRITER = 'mmguard fix'


def check_places(target: Path, out: Path) -> None:
    """Refuse ``--out`` if it is, contains or is inside TARGET, or holds files that fix did not write."""
    original, copies = target.resolve(), out.resolve()
    folder = original if target.is_dir() else original.parent
    if _is_one_of(folder, [copies, *(copies.parents if target.is_dir() else ())]):
        raise CannotCorrect(f'--out {out} is TARGET or inside it; originals are never modified: name another folder')
    if _is_one_of(copies, folder.parents):
        raise CannotCorrect(f'--out {out} contains TARGET; originals are never modified: name another folder')
    if out.exists() and not out.is_dir():
        raise CannotCorrect(f'--out {out} is a file: name a folder')
    if out.is_dir() and read_manifest(out) is None and not all(map(_is_draft_file, out.iterdir())):
        raise CannotCorrect(f'--out {out} is not empty and was not written by mmguard fix: name another folder')


def read_manifest(folder: Path) -> Optional[Dict[str, Any]]:
    """Return the manifest of a folder; ``None`` if it has none from mmguard."""
    try:
        record = json.loads(read_regular(os.path.join(folder, MANIFEST), _LARGEST))
    except (OSError, ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and record.get('written_by') == _WRITER else None


def begin(out: Path, target: str, options: FixOptions) -> None:
    """Mark a folder as written by mmguard, and remove partial files of a run that was killed."""
    write_manifest(out, target, options, finished=False)
    for place, _, names in os.walk(out):
        for path in (Path(place, name) for name in names):
            if _is_draft_file(path) and path.name != LOCK:
                path.unlink()


def write_manifest(out: Path, target: str, options: FixOptions, finished: bool = True, **found: Any) -> None:
    """Write the manifest; ``finished=False`` at the start of a run."""
    record = {
        'written_by': _WRITER,
        'version': __version__,
        'finished': finished,
        'target': target,
        'options': options.to_json(),
        **found,
    }
    text = json.dumps(record, indent=1, ensure_ascii=False) + '\n'
    # File names that are not UTF-8 contain lone surrogates, which JSON can hold only as escapes.
    write_whole(out / MANIFEST, text.encode(errors='backslashreplace'))


def _is_draft_file(path: Path) -> bool:
    return is_draft(path.name) and path.is_file() and not path.is_symlink()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def place_in(out: Path, name: str, is_inside: Callable[[str], bool]) -> Path:
    """Return the path of a file's copy; refuse a name, or a link in ``out``, that leads out of ``out``."""
    try:
        path = Path(resolve_inside(str(out), name))
    except OutsideError as error:
        raise NotCorrected(str(error)) from error
    if path.parent != Path(os.path.normpath(out)) and not is_inside(str(path.parent)):
        raise NotCorrected(f'a link in {out} leads out of it: no copy is written there')
    return path


def link(file: str, path: Path, stays_link: bool) -> None:
    """Put an uncorrected file into the copy.

    Create a hard link, or a copy if the file system has none. ``stays_link``: a link that leads out of the target
    stays a link, so that its destination never becomes a file of the copy.
    """
    source = Path(file)
    if not stat.S_ISREG(source.stat().st_mode):
        raise OSError(NOT_REGULAR)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.samefile(source) and path.is_symlink() == stays_link:
        return
    if path.is_file() or path.is_symlink():
        path.unlink()
    if stays_link:
        path.symlink_to(source.resolve())
        return
    try:
        os.link(source.resolve(), path)
    except OSError:
        write_whole(path, source.read_bytes())


def write_copies(target: Union[str, Path], out: Path, options: FixOptions, to_link: Link = link) -> Copies:
    """Write corrected copies of the label files of a target; ``to_link`` puts images next to them."""
    target = os.fspath(target)
    check_is_local(target)
    check_places(Path(target), out)
    found = files_of(target, options)
    final = _final(target, options)
    out.mkdir(parents=True, exist_ok=True)
    try:
        with hold_folder(out):
            begin(out, target, options)
            copies = _write(target, out, found, final, to_link)
            write_manifest(out, target, options, files=copies.done, left_out=copies.left_out)
    except BlockingIOError as error:
        raise CannotCorrect(
            f'another mmguard fix writes to --out {out}: wait for it, or name another folder (if none is '
            f'running, delete {out / LOCK})'
        ) from error
    return copies


def check_is_local(target: str) -> None:
    """Raise :class:`CannotCorrect` for a URL."""
    if is_url(target):
        raise CannotCorrect(f'{target}: fix reads a disk: copy the data here or mount the storage, then fix the copy')


def _final(target: str, options: FixOptions) -> Set[str]:
    """Return the digests of files that were already corrected by the same rules; they must not be mapped twice."""
    earlier = read_manifest(Path(target)) if os.path.isdir(target) else None
    if earlier is None:
        return set()
    if earlier.get('finished') is False:
        raise CannotCorrect(
            f'{target} is what an interrupted mmguard fix of {earlier.get("target")} left: run that again first'
        )
    files = earlier.get('files') if earlier.get('options') == options.to_json() else None
    listed = files if isinstance(files, list) else []
    return {str(entry.get('sha256_after')) for entry in listed if isinstance(entry, dict)}


def _write(target: str, out: Path, found: LabelFiles, final: Set[str], to_link: Link) -> Copies:
    done: List[Dict[str, Any]] = []
    left_out: List[Dict[str, str]] = []
    failures: List[Exception] = []
    taken: Dict[str, str] = {}
    linked = 0
    is_of_target = tell_inside(target if os.path.isdir(target) else os.path.dirname(target))
    is_in_out = tell_inside(str(out))
    for path, name in found.files:
        try:
            if name in found.images:
                to_link(path, place_in(out, name, is_in_out), not is_of_target(path))
                linked += 1
                continue
            with open_regular(path) as file:
                data = file.read()
            if path != target and not is_of_target(path):
                raise NotCorrected('a link that leads out of TARGET: copy what it leads to there (cp -L)')
            before = digest(data)
            corrected = keep_file(data, name) if before in final else found.correct(data, name)
            new_name = name[: len(name) - len(ending_of(name))] + corrected.ending
            if new_name in taken:
                raise NotCorrected(f'its copy would have the name of that of {taken[new_name]}')
            write_whole(place_in(out, new_name, is_in_out), corrected.data, _CHECKS.get(corrected.ending.lower()))
        except (NotCorrected, OSError, MemoryError) as error:
            left_out.append(
                {'file': name, 'reason': getattr(error, 'strerror', None) or str(error) or type(error).__name__}
            )
            continue
        except Exception as error:  # continue with the other files
            left_out.append({'file': name, 'reason': f'{describe_error(error)}; {REPORT_IT}'})
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
            with suppress(OSError, NotCorrected):
                place_in(out, name, is_in_out).unlink()
    return Copies(done, left_out, linked, failures)


def _is_one_of(folder: Path, others: Iterable[Path]) -> bool:
    """Return True if a folder is among others, even if spelled differently."""
    there = folder.exists()
    return any(other == folder or (there and other.exists() and other.samefile(folder)) for other in others)


def _check_json(path: Path) -> None:
    from mmguard.formats.labelme.read import is_labelme_file, scan_labelme

    if is_labelme_file(str(path)):
        with suppress(ValueError):  # an image may have no shape
            _check(scan_labelme(str(path), look=False))
        return
    from mmguard.formats.coco.read import scan_coco

    _check(scan_coco(str(path)))


def _check_xml(path: Path) -> None:
    from mmguard.formats.voc.read import VocImage, scan_voc_files

    _check(scan_voc_files(str(path.parent), [VocImage('', path.name)], images=False))


#: Copies are read as `mmguard scan` reads them before they get their names: none that it rejects is written.
_CHECKS: Dict[str, Callable[[Path], None]] = {'.json': _check_json, '.xml': _check_xml}


def _check(facts: LabelFacts) -> None:
    found = facts.annotations or AnnotationFacts()
    # The image of a VOC copy without a size is in another folder.
    wrong = [what for what in found.unreadable if not what.startswith('has no size')]
    wrong += describe_boxes(facts.reasons)
    wrong += [f'{count:,} without {key}' for key, count in found.without_key.items()]
    if facts.reasons.get(LABEL_REASON) or found.unnamed:
        wrong.append('annotations of categories that are not listed')
    for what, ids in (('images', found.duplicate_image_ids), ('categories', found.duplicate_category_ids)):
        wrong += [f'{what} that share an id: {", ".join(map(str, ids[:5]))}'] if ids else []
    if found.format == 'coco' and found.annotations and found.images_without_target == found.images:
        wrong.append('only crowds, ignored objects and boxes thinner than a pixel would be left')
    if wrong:
        raise NotCorrected(f'not correctable here: {"; ".join(wrong)}')


#: Folder of the images of a VOC data set; it has no labels.
IMAGES = 'JPEGImages'


def files_of(target: str, options: FixOptions) -> LabelFiles:
    """Return the label files of a target that can be corrected."""
    from mmguard.formats.labelme.write import files_of_labelme
    from mmguard.formats.yolo.write import files_of_yolo

    if not os.path.exists(target):
        raise CannotCorrect(f'{target} does not exist: name a folder of label maps, a COCO JSON or a VOC folder')
    try:
        found = formats.format_of(target, options.suffix)
    except CannotRun as error:
        raise CannotCorrect(str(error)) from error
    if found == formats.OTHER_PROGRAM:
        raise CannotCorrect(f'{target}: nothing is corrected, {words_of_program(target)}')
    if found == formats.YOLO:
        return files_of_yolo(target, options)
    if found == formats.LABELME:
        return files_of_labelme(target, options)
    if os.path.isfile(target):
        return _files_of_coco(target, options)
    names = sorted(names_below(target))
    has_xml = any(map(_is_xml, names))
    if found == formats.VOC or (has_xml and not any(map(is_image_name, names))):
        return _files_of_voc(target, names, options)
    return _files_of_maps(target, options)


def _files_of_coco(target: str, options: FixOptions) -> LabelFiles:
    from mmguard.formats.coco.write import correct_coco

    if not target.lower().endswith('.json'):
        raise CannotCorrect(f'{target}: a single file must be a COCO or LVIS .json; of label maps, name the folder')
    if OTHERS in options.label_map:
        raise CannotCorrect(
            '--label-map: * means all other values, of label maps only; for a JSON name every category id'
        )
    return LabelFiles([(target, os.path.basename(target))], lambda data, name: correct_coco(data, options))


def _files_of_voc(target: str, names: List[str], options: FixOptions) -> LabelFiles:
    from mmguard.formats.voc.write import correct_voc

    if options.label_map:
        raise CannotCorrect('--label-map maps numbers; VOC has names: name the valid ones with --classes')
    images = _images_beside(names)
    lists = [name for name in names if 'ImageSets' in Path(name).parts]
    return LabelFiles(
        [(os.path.join(target, name), name) for name in (*filter(_is_xml, names), *lists, *sorted(images))],
        lambda data, name: correct_voc(data, options) if _is_xml(name) else keep_file(data, name),
        images,
    )


def _files_of_maps(target: str, options: FixOptions) -> LabelFiles:
    from mmguard.formats.maps.write import correct_map

    maps = sorted(below(path, target) for path in label_files(target, options.suffix))
    if not maps:
        if options.suffix:
            raise CannotCorrect(f'{target}: no label map has a name that ends with {options.suffix} (--suffix)')
        raise CannotCorrect(f'{target} holds no labels that fix corrects: name their folder, or a COCO .json itself')
    import PIL.Image  # noqa: F401  without it no label map can be written

    if options.num_classes is None:
        raise CannotCorrect('label maps do not say how many classes there are: add --num-classes N')
    try:
        LabelRule(options.num_classes or 1, options.ignore_index, options.on_invalid, options.label_map)
    except (TypeError, ValueError) as error:
        raise CannotCorrect(str(error)) from error
    return LabelFiles(
        [(os.path.join(target, name), name) for name in maps],
        lambda data, name: correct_map(data, ending_of(name), options),
    )


def _is_xml(name: str) -> bool:
    return name.lower().endswith('.xml')


def _images_beside(names: List[str]) -> FrozenSet[str]:
    """Return the images of a VOC folder: those in JPEGImages, and those with the name of an XML file."""
    annotated = {os.path.splitext(name)[0] for name in names if _is_xml(name)}
    return frozenset(
        name
        for name in names
        if not _is_xml(name)
        and (IMAGES in Path(name).parts or (is_image_name(name) and os.path.splitext(name)[0] in annotated))
    )
