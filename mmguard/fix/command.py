"""What ``mmguard fix`` does, and says."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

from mmguard.files import write_whole
from mmguard.fix.maps import Mended
from mmguard.fix.options import CannotMend, FixOptions, NotMended, as_label_map
from mmguard.fix.output import MANIFEST, check_places, digest, link, manifest_text, read_manifest
from mmguard.words import counted

Mend = Callable[[bytes, str], Mended]
COMPLETE, LEFT_OUT = 0, 1
#: Of a VOC folder: nothing in it is a label.
IMAGES = 'JPEGImages'
_SHOWN = 10


def fix(target: Path, out: Path, options: FixOptions) -> int:
    """Writes mended copies of the label files of a target.

    Args:
        target (Path): A folder of label maps, a COCO or LVIS JSON, or a VOC folder (or one of XML files).
        out (Path): Where the copies go.
        options (FixOptions): What is valid.

    Returns:
        int: 0; 1 where files were left out.

    Raises:
        CannotMend, OSError: Nothing could be done.
    """
    check_places(target, out)
    files, mend = _plan(target, options)
    out.mkdir(parents=True, exist_ok=True)
    return _write(target, out, options, files, mend)


def _plan(target: Path, options: FixOptions) -> Tuple[List[Tuple[Path, str]], Mend]:
    """The label files with their names in the copy, and what mends one."""
    from mmguard.fix.coco import mend_coco
    from mmguard.fix.maps import is_map, mend_map
    from mmguard.fix.voc import mend_voc

    if not target.exists():
        raise CannotMend(f'{target} does not exist: name a folder of label maps, a COCO JSON or a VOC folder')
    if target.is_file():
        if target.suffix.lower() != '.json':
            raise CannotMend(f'{target}: a single file must be a COCO or LVIS .json; of label maps, name the folder')
        return [(target, target.name)], lambda data, ending: mend_coco(data, options)
    names = sorted(_walk(target))
    maps = [name for name in names if is_map(name)]
    in_voc = [name for name in names if name.lower().endswith('.xml')]
    if in_voc and ((target / 'Annotations').is_dir() or not maps):
        if options.label_map:
            raise CannotMend('--label-map maps numbers; VOC has names: name the valid ones with --classes')
        kept = [name for name in names if name.startswith(('ImageSets' + os.sep, IMAGES + os.sep))]
        files = [(target / name, name) for name in (*in_voc, *kept)]
        return (
            files,
            lambda data, ending: (
                mend_voc(data, options) if ending.lower() == '.xml' else Mended(data, ending, [], {}, {})
            ),
        )
    if not maps:
        raise CannotMend(f'{target} holds neither label maps nor VOC .xml: name the folder that does')
    if options.num_classes is None:
        raise CannotMend('label maps do not say how many classes there are: add --num-classes N')
    _check_rule(options)
    return [(target / name, name) for name in maps], lambda data, ending: mend_map(data, ending, options)


def _check_rule(options: FixOptions) -> None:
    from mmguard.labels import LabelRule

    try:
        LabelRule(options.num_classes or 1, options.ignore_index, options.on_invalid, as_label_map(options.label_map))
    except (TypeError, ValueError) as error:
        raise CannotMend(str(error)) from error


def _walk(folder: Path) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        for name in names:
            yield os.path.relpath(os.path.join(place, name), folder)


def _write(target: Path, out: Path, options: FixOptions, files: List[Tuple[Path, str]], mend: Mend) -> int:
    done: List[Dict[str, Any]] = []
    left_out: List[Dict[str, str]] = []
    earlier = read_manifest(target) if target.is_dir() else None
    # What was mended by the same rules is not mapped a second time.
    final = set()
    if earlier is not None and earlier.get('options') == options.to_json():
        final = {record['sha256_after'] for record in earlier['files']}
    taken: Dict[str, str] = {}
    linked = 0
    for path, name in files:
        if earlier is not None and name == MANIFEST:
            continue
        if name.startswith(IMAGES + os.sep) and not name.lower().endswith('.xml'):
            try:
                link(path, out / name)
                linked += 1
            except OSError as error:
                left_out.append({'file': name, 'reason': str(error)})
            continue
        try:
            data = _read(path)
            before = digest(data)
            ending = os.path.splitext(name)[1]
            mended = Mended(data, ending, [], {}, {}) if before in final else mend(data, ending)
            new_name = name[: len(name) - len(ending)] + mended.ending
            if new_name in taken:
                raise NotMended(f'its copy would have the name of that of {taken[new_name]}')
        except (NotMended, OSError, MemoryError) as error:
            left_out.append({'file': name, 'reason': str(error) or type(error).__name__})
            continue
        taken[new_name] = name
        write_whole(out / new_name, mended.data)
        done.append(
            {
                'file': name,
                'written': new_name,
                'changes': mended.changes,
                'values': mended.values,
                'counts': mended.counts,
                'sha256_before': before,
                'sha256_after': digest(mended.data),
            }
        )
    write_whole(out / MANIFEST, manifest_text(target, options, done, left_out))
    _tell(out, done, left_out, linked)
    return LEFT_OUT if left_out else COMPLETE


def _read(path: Path) -> bytes:
    if not stat.S_ISREG(path.stat().st_mode):
        raise NotMended('no regular file')  # reading a pipe would wait for ever
    return path.read_bytes()


def _tell(out: Path, done: List[Dict[str, Any]], left_out: List[Dict[str, str]], linked: int) -> None:
    changed = [record for record in done if record['changes']]
    print(
        f'{counted(len(done), "file")} in {out}: {len(changed):,} mended, {len(done) - len(changed):,} copied unchanged'
    )
    if linked:
        print(f'{counted(linked, "image")} linked, not copied: the same bytes on disk')
    for record in changed[:_SHOWN]:
        print(f'  {record["file"]}: {"; ".join(record["changes"])}')
    if len(changed) > _SHOWN:
        print(f'  and {len(changed) - _SHOWN:,} more, see {out / MANIFEST}')
    if left_out:
        print(f'{len(left_out):,} left out:')
        for entry in left_out[:_SHOWN]:
            print(f'  {entry["file"]}: {entry["reason"]}')
    if not changed and not left_out:
        print('nothing to change')
