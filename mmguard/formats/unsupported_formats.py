"""Descriptions of folders without label maps, and advice on how to convert files of unsupported formats."""

from __future__ import annotations

import itertools
import os
import re
import shlex
from collections import Counter
from typing import Dict, NamedTuple, Pattern, Sequence, Set

from mmguard.config.recognition import CHECK_TARGET_ADVICE, SCAN_LABELS_ADVICE
from mmguard.files.regular import open_regular
from mmguard.formats.files import TRAINED_ENDINGS, is_gray, is_image_name, read_head, walk
from mmguard.formats.format import CannotCorrect, CannotScan, Format, LabelFiles, Sets
from mmguard.formats.options import FixOptions, ScanOptions

#: Number of files of a folder that are inspected; most folders hold one kind of file.
ENOUGH = 200

#: Number of text files that are opened.
_TEXTS = 50

#: Number of first bytes that are read to identify a JSON file.
_HEAD = 1 << 14

_VOLUMES = ('.nii.gz', '.nii', '.mha', '.mhd', '.nrrd', '.dcm')
_YOLO = re.compile(rb'\s*-?\d+( +-?[\d.]+(e-?\d+)?){4,}\s*(\n|$)')


def describe_files(files: Sequence[str], suffix: str = '') -> str:
    """Describe the files of a folder without label maps, and say what to scan instead."""
    if not files:
        return 'It contains no files: check the path, and whether the disk is mounted'
    if suffix:
        return f'No file name ends with {suffix} (--suffix); the first file is {os.path.basename(files[0])}'
    kinds = Counter(map(_get_ending, files))
    ending = max(kinds, key=lambda kind: kinds[kind])
    first = next(file for file in files if _get_ending(file) == ending)
    if ending in _VOLUMES:
        return (
            f'It contains volumes ({ending}). For nnU-Net, pass the raw data set (the folder with dataset.json); for '
            'MMSegmentation, save the slices as label maps (.png)'
        )
    if looks_like_yolo(files):
        return (
            'It looks like YOLO labels (.txt, a class and a box per line): pass the data.yaml, or a folder that holds '
            'only these files and their images'
        )
    words = next(filter(None, (_describe_file(file, os.path.dirname(file), _ALL) for file in files[:_TEXTS])), '')
    if words:
        return words[0].upper() + words[1:]
    if ending == '.json':
        return f'It contains JSON. If it is COCO or LVIS, pass the file itself, e.g. {first}'
    if ending == '.xml':
        return 'It contains XML, but no VOC boxes in the folder itself or in its Annotations/'
    kind = f'{ending or "files without ending"}, e.g. {os.path.basename(first)}'
    return f'It contains {kind}, but label maps are .png, .bmp, .tif, .npy. For data in another format, {_MAPS_ADVICE}'


def describe_json(file: str, ended_early: bool = False) -> str:
    """Describe a JSON that is not a usable COCO file. Return '' if it is truncated, or neither an object nor a list."""
    head = read_head(file, _HEAD).decode(errors='replace').lstrip()
    keys = list(dict.fromkeys(re.findall(r'"(\w+)"\s*:', head)))
    if head.startswith('['):
        if 'score' in keys:
            return "It looks like predictions in COCO's format (a list with scores): pass the annotation file"
        return 'It is a list; a COCO file is an object with "images", "annotations" and "categories"'
    if not head.startswith('{'):
        return ''
    if {'images', 'annotations', 'categories'} & set(keys):
        return '' if ended_early else 'It is a COCO file without any images, annotations or categories'
    return f'It is not a COCO file: {"its keys are " + ", ".join(keys[:6]) if keys else "it is an empty object"}'


def _get_ending(file: str) -> str:
    name = os.path.basename(file).lower()
    return '.nii.gz' if name.endswith('.nii.gz') else os.path.splitext(name)[1]


def has_photos_with_texts(folder: str) -> bool:
    """Return True if at least half of the JPEGs in a folder have a text file of the same name, as in YOLO."""
    stems: Dict[bool, Set[str]] = {True: set(), False: set()}
    names = itertools.chain.from_iterable(files for _, files in walk(folder, lambda name, error: None))
    for name in itertools.islice(names, _NAMES):
        stem, ending = os.path.splitext(name)
        if ending.lower() in ('.jpg', '.jpeg', '.txt'):
            stems[ending.lower() == '.txt'].add(stem)
    photos = stems[False]
    return bool(photos) and 2 * len(photos & stems[True]) >= len(photos)


def looks_like_yolo(files: Sequence[str]) -> bool:
    """Return True if most files are .txt, and at least one begins with a row of YOLO (others may be empty)."""
    texts = [file for file in files if _get_ending(file) == '.txt']
    return 2 * len(texts) > len(files) and any(_YOLO.match(read_head(file, 4096)) for file in texts[:_TEXTS])


#: Maximum numbers of inspected names of a folder, of opened files per ending, and of bytes read of each file.
_NAMES, _OPENED, _BEGINNING = 2000, 5, 1 << 12
#: A folder with more than this many label maps per file of Labelme is a folder of label maps.
_STRAY = 10
_LABELME = 'JSON of Labelme'
_DATUMARO_ADVICE = (
    'convert it to COCO with `datum convert -i {{target}} -if {} -f coco_instances -o coco`, and pass the result'
)
_LABELME_ADVICE = (
    'convert it to COCO with `python labelme2coco.py {target} coco --labels labels.txt` of Labelme '
    '(examples/instance_segmentation), and pass coco/annotations.json; labelme2voc.py next to it writes label maps'
)
_MATLAB_ADVICE = (
    'write label maps (.png) with tools/dataset_converters of mmseg and pass their folder: run voc_aug.py for SBD, '
    'coco_stuff10k.py for COCO-Stuff 10k, or pascal_context.py for Pascal-Context. That script does not read the .mat '
    'files of 459 labels: it writes SegmentationClassContext from trainval_merged.json, and needs the package `detail`'
)
_CITYSCAPES_ADVICE = (
    'write label maps with `python tools/dataset_converters/cityscapes.py data/cityscapes` of MMSegmentation, and '
    'pass their folder'
)
_DOTA_ADVICE = (
    'convert it to COCO with `python tools/data/dota/dota2coco.py DIR dota.json` of MMRotate, with annfiles/ and '
    'images/ in DIR, and pass dota.json'
)
_HUGGING_FACE_NOTE = (
    'a data set of Hugging Face: save its images and label maps, `for n, row in enumerate(dataset): '
    "row['image'].save(f'images/{n}.png'); row['label'].save(f'labels/{n}.png')`, and pass their folder. Save the "
    "images of a classification as f'{name}/{n}.png', and boxes as a COCO JSON"
)
_COCO_ADVICE = (
    'write it as a COCO JSON with images, categories and annotations (category_id, and bbox [x, y, width, height] in '
    'pixels), and pass that file'
)
_MAPS_ADVICE = (
    "write its label maps as arrays, one label per pixel, `np.save(f'labels/{n}.npy', label)`, and pass their folder, "
    f'or {CHECK_TARGET_ADVICE}'
)
_EXPORT_ADVICE = f'export it there as COCO, or {_COCO_ADVICE}'
_NO_CONVERTER_NOTE = 'for which no converter exists; `mmguard apply CONFIG` guards a training on these files'
#: Pattern of the metadata keys that hold labels.
_LABELS = r'(objects|labels?)'


class _Program(NamedTuple):
    """Kind of file that an unsupported program writes."""

    ending: str  #: Ending of the file names.
    mark: Pattern[bytes]  #: Pattern that occurs in the first bytes of such files.
    words: str  #: Description of the file, and how to convert it.


#: Kinds of files whose presence stops a folder from being read in another format.
_ALONE = (
    ('.xml', '<imagesize>', f'XML of the LabelMe of MIT: {_DATUMARO_ADVICE.format("label_me")}'),
    ('.xml', r'(?s)<annotations\b.*<(meta|version|image|track)\b', f'XML of CVAT: {_DATUMARO_ADVICE.format("cvat")}'),
    ('.xml', '<robndbox>', 'XML of DIOR with oriented boxes: pass its folder of horizontal boxes, in VOC format'),
    ('.xml', '<HRSC_', f'XML of HRSC, {_NO_CONVERTER_NOTE}'),
    ('.json', '"dm_format_version"', f'JSON of Datumaro: {_DATUMARO_ADVICE.format("datumaro")}'),
    ('.json', r'"shapes"\s*:\s*\[|"imageData"', f'{_LABELME}: {_LABELME_ADVICE}'),
    ('.json', '"imgHeight"', f'JSON of Cityscapes with polygons: {_CITYSCAPES_ADVICE}'),
    (
        '.json',
        r'(?s)\A\s*\{(?=.*"boxes"\s*:\s*\[)(?=.*"labels"\s*:\s*\[)',
        f'JSON with boxes and labels of one image, which only your own training loop reads: {_COCO_ADVICE}, or '
        f'{CHECK_TARGET_ADVICE}',
    ),
    ('.json', '"classTitle"', f'JSON of Supervisely: {_EXPORT_ADVICE}'),
    ('.txt', r'(?m)^(-?\d[\d.]*\s+){8}[^\W\d][\w-]*(\s+\d+)?\s*$', f'text of DOTA: {_DOTA_ADVICE}'),
    ('.txt', r'\A[A-Za-z_]+ -?[\d.]+ -?\d( -?[\d.]+){12}', f'text of KITTI: {_DATUMARO_ADVICE.format("kitti")}'),
    ('.txt', r'\A\d+(,-?\d+){7},?\s', f'text of VisDrone: {_COCO_ADVICE}'),
    (
        '.csv',
        'ImageID,Source,LabelName',
        'csv of OpenImages: `mmguard trace CONFIG --samples 50` checks 50 samples that an mmdet config loads',
    ),
    ('.mat', 'MATLAB', f'.mat of MATLAB: {_MATLAB_ADVICE}'),
    ('.arrow', '', _HUGGING_FACE_NOTE),
    ('.parquet', r'\APAR1', _HUGGING_FACE_NOTE),
    ('metadata.jsonl', rf'(?m)^(?=.*"file_name").*"{_LABELS}"', _HUGGING_FACE_NOTE),
    ('metadata.csv', rf'\A(?=.*\bfile_name\b).*\b{_LABELS}\b', _HUGGING_FACE_NOTE),
    (
        '.pkl',
        r'(?s)\A\x80.*(data_list|lidar_points|lidar_path|point_cloud)',
        'an info file of MMDetection3D, which mmguard does not read',
    ),
    ('.label', '', 'point labels of SemanticKITTI, which mmguard does not read'),
)
_OF_TOOLS = r'"(shape_attributes|_via_\w+|from_name|\w+labels|box2d|poly2d)"|"coordinates"\s*:\s*\{'
#: Kinds of files that are mentioned only if nothing else could be read.
_OTHERS = (
    ('.json', _OF_TOOLS, f'JSON of VIA, Label Studio, BDD100K or CreateML: {_EXPORT_ADVICE}'),
    ('json', '"FeatureCollection"', f'GeoJSON: draw it with `rasterio.features.rasterize`, then {_MAPS_ADVICE}'),
    ('.json', '"(architectures|_target_|network_def)"', f'a config of another framework: {SCAN_LABELS_ADVICE}'),
    ('.txt', r'\A\d+(,-?[\d.]+){8,9}\s', f'text of MOT: {_DATUMARO_ADVICE.format("mot_seq")}'),
    ('.txt', r'\A\S+\.jpg\s*\n\d+\s*\n(\d+ ){4}', f'text of WIDER FACE: {_DATUMARO_ADVICE.format("wider_face")}'),
    ('.txt', r'\A\S+\.(jpe?g|png|bmp)( \d+(,\d+){4})+', f'a list of images with boxes: {_COCO_ADVICE}'),
    (
        '.txt',
        r'\A([^\W\d]\S*|\d+,)[ \d.,]+\n',
        'rows that are not in YOLO format, which requires numbers separated by spaces, with the class first',
    ),
    ('.csv', '(EncodedPixels|rle)', f'a table of run lengths: decode them, then {_MAPS_ADVICE}'),
    (
        '.csv',
        '',
        f'a table. For boxes, {_COCO_ADVICE}. For image classes, sort the images into one folder per class',
    ),
    *((ending, '', f'JSON lines: {_COCO_ADVICE}') for ending in ('.jsonl', '.ndjson')),
    ('.tfrecord', '', f'a TFRecord: {_DATUMARO_ADVICE.format("tf_detection_api")}'),
    *(
        (end, '', f'{end}: {_MAPS_ADVICE}')
        for end in ('.h5', '.hdf5', '.npz', '.pt', '.pth', '.pkl', '.mdb', '.zarray')
    ),
)
_KNOWN, _ALL = (
    [_Program(ending, re.compile(mark.encode()), words) for ending, mark, words in table]
    for table in (_ALONE, (*_ALONE, *_OTHERS))
)


def describe_program(target: str) -> str:
    """Describe a file, or the first file of a known kind in a folder on disk, or return '' if no kind is recognized."""
    if os.path.isfile(target):
        return _describe_file(target, os.path.dirname(os.path.abspath(target)), _ALL)
    seen = 0
    for folder, names in walk(target, lambda *_: None):
        maps = next((name for name in names if is_image_name(name)), '')
        is_trained = any(name.endswith(TRAINED_ENDINGS) for name in names)
        if maps and (is_trained or (is_gray(os.path.join(folder, maps)) and not _is_of_labelme(folder, names))):
            return ''
        for ending in dict.fromkeys(one.ending for one in _KNOWN):
            some = [os.path.join(folder, name) for name in names if name.lower().endswith(ending)][:_OPENED]
            words = next(filter(None, (_describe_file(path, target) for path in some)), '')
            if words:
                return words
        seen += len(names)
        if seen > _NAMES:
            break
    return ''


def _is_of_labelme(folder: str, names: Sequence[str]) -> bool:
    """Return True if a folder holds files of Labelme, and at most ``_STRAY`` label maps per JSON file."""
    files = [os.path.join(folder, name) for name in names if name.lower().endswith('.json')]
    is_stray = _STRAY * len(files) < sum(map(is_image_name, names))
    return not is_stray and any(_LABELME in _describe_file(path, folder) for path in files[:_OPENED])


def _describe_file(path: str, folder: str, table: Sequence[_Program] = _KNOWN) -> str:
    known = [one for one in table if os.path.basename(path).lower().endswith(one.ending)]
    try:
        with open_regular(path) as file:
            head = file.read(_BEGINNING) if known else b''
    except (OSError, ValueError):
        return ''
    words = next((one.words for one in known if one.mark.search(head)), '')
    return f'it contains {words.replace("{target}", shlex.quote(folder))}' if words else ''


class UnsupportedFormat(Format):
    """The format of files of an unsupported program; reading them raises an error that names a converter."""

    name = 'other program'
    endings = ('',)

    def detect(self, target: str) -> bool:
        return bool(describe_program(target))

    def sets(self, target: str, options: ScanOptions) -> Sets:
        raise CannotScan(f'{target} was not read: {describe_program(target)}')

    def files(self, target: str, options: FixOptions) -> LabelFiles:
        raise CannotCorrect(f'{target} was not corrected: {describe_program(target)}')
