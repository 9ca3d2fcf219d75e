"""Facts about labels for the rules, collected by a hook during training, by a scan of files, or from a config."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from mmguard.facts.volumes import VolumeFacts
from mmguard.facts.yolo import YoloFacts
from mmguard.labels.instances import describe_reasons
from mmguard.labels.spaces import VOID
from mmguard.labels.tally import Tally
from mmguard.language import Message, join
from mmguard.text import join_with_or

#: Label file or folder -> options of `mmguard fix` that correct the file or folder, named as in ``FixOptions``.
FileChanges = Mapping[str, Mapping[str, Any]]

#: Maximum number of values listed as evidence.
_FEW = 6


#: Fault of an image without the label map that a semantic branch needs.
NO_LABEL_MAP = 'with_seg=True, but the label map of an image is missing'


@dataclass
class MapFacts:
    """Statistics of label map files. File names are relative to the scanned root. Lists keep only a few entries."""

    raw: Dict[int, int] = field(default_factory=dict)  #: Value as stored -> number of pixels.
    files_with: Dict[int, int] = field(default_factory=dict)  #: Value as stored -> number of files.
    #: Form -> number of files: ``'gray8'``, ``'palette8'``, ``'gray16'``, ``'gray32'``, ``'float'``, ``'bool'``,
    #: ``'rgb'``, ``'rgba'``, ``'gray_alpha'``, ``'gray4'``, ``'gray2'``, ``'other'``.
    forms: Dict[str, int] = field(default_factory=dict)
    lossy: int = 0  #: Number of files with lossy compression (JPEG).
    #: How the framework's loader changes stored values -> number of files: ``'wrapped'`` (16-bit values modulo 256),
    #: ``'colors'`` (palette or RGB read as colors), ``'scaled'`` (fewer than 8 bits stretched to 0..255),
    #: ``'truncated'`` (fractions cut off).
    loaded_otherwise: Dict[str, int] = field(default_factory=dict)
    #: Share of the invalid pixels whose eight neighbors include a lower and a higher value, as interpolation produces.
    at_edges: Optional[float] = None
    all_void: List[str] = field(default_factory=list)  #: Files without a single pixel to train on.
    #: (label file, size of the label map, size of its image), with sizes as (height, width) or (z, y, x).
    size_mismatches: List[Tuple[str, Tuple[int, ...], Tuple[int, ...]]] = field(default_factory=list)
    missing_labels: List[str] = field(default_factory=list)  #: Stems of images without a label map.
    missing_images: List[str] = field(default_factory=list)  #: Stems of label maps without an image.
    duplicates: List[str] = field(default_factory=list)  #: Stems that several files share.
    unreadable: Dict[str, List[str]] = field(default_factory=dict)  #: Fault -> files.
    examples: Dict[int, List[str]] = field(default_factory=dict)  #: Value as stored -> first files with this value.
    #: Non-integer value in a float file -> number of pixels, for the first few values.
    fractions: Dict[float, int] = field(default_factory=dict)
    void_files: int = 0  #: Number of files without a pixel to train on; ``all_void`` names the first.
    image_forms: Dict[str, int] = field(default_factory=dict)  #: Like ``forms``, for the images.
    files_with_class: Dict[int, int] = field(default_factory=dict)  #: Label as trained -> number of files.
    #: Class -> number of pixels of all classes in the files that contain this class.
    pixels_with_class: Dict[int, int] = field(default_factory=dict)
    #: (r, g, b) -> number of pixels, in color files with few colors.
    colors: Dict[Tuple[int, int, int], int] = field(default_factory=dict)
    gray_in_color: int = 0  #: Number of color files with equal channels; ``raw`` counts the values of one channel.
    black_palettes: int = 0  #: Number of palette files whose values all have the color black.
    form_examples: Dict[str, List[str]] = field(default_factory=dict)  #: Form, as in ``forms`` -> first files.
    #: Name of a shortened list, such as ``'all_void'`` or ``'unreadable <fault>'`` -> its full length.
    counts: Dict[str, int] = field(default_factory=dict)
    sources: List[str] = field(default_factory=list)  #: The folders (or the single file) that were read.
    suffix: str = ''  #: End of the names of the files that were read; empty if all files were read.


@dataclass
class AnnotationFacts:
    """Statistics of instance annotations in any format (COCO, LVIS, VOC, YOLO, class folders)."""

    format: str = 'coco'  #: ``'coco'``, ``'voc'``, ...
    #: Category id -> name, in the order of the file (VOC: position -> name).
    categories: Dict[int, str] = field(default_factory=dict)
    #: Category (id in COCO, name in VOC, as text) -> number of annotations.
    instances_of: Dict[str, int] = field(default_factory=dict)
    images: int = 0
    annotations: int = 0
    images_without_target: int = 0  #: Images without a single usable annotation.
    #: Images without a usable annotation in which a box is unusable or a category has no name.
    images_spoiled: int = 0
    #: Other images without a usable annotation that ``filter_empty_gt=True`` keeps, because it also counts crowds and
    #: annotations that are dropped later.
    images_kept_empty: int = 0
    small_images: int = 0  #: Images that the data set's filter drops: their shorter side is below ``min_size``.
    min_size: int = 0
    missing: int = 0  #: Listed images that are not on disk; ``missing_files`` names the first.
    missing_files: List[str] = field(default_factory=list)
    unreadable: Dict[str, List[str]] = field(default_factory=dict)  #: Fault -> files.
    #: How the labels in ``LabelFacts.values`` and ``histogram`` are numbered: ``'file order'`` (position in the file's
    #: category list among the trained names, as in mmdet for COCO and LVIS), ``'class list'`` (VOC), ``'category id'``
    #: (as in DETR and torchvision), ``'COCO ids'`` (position among the 80 ids of COCO, or -1), ``'unknown'`` (a JSON
    #: without a config or an option for the numbering; counted as in ``'file order'``).
    labelled_by: str = 'file order'
    #: True if the model's number of classes is unknown, and ``num_classes`` is the number that the file needs.
    classes_counted: bool = False
    files_with_class: Dict[int, int] = field(default_factory=dict)  #: Label as trained -> number of images or files.
    #: Valid label -> number of annotations with this label and a valid box.
    usable: Dict[int, int] = field(default_factory=dict)
    sources: List[str] = field(default_factory=list)  #: The annotation files (VOC: folders) that were read.
    crowds: int = 0  #: Number of annotations excluded from training: crowds in COCO, difficult objects in VOC.
    #: Reason why mmdet silently drops annotations -> number of annotations: ``'category not in the class list'``,
    #: ``'ignore is set'``, ``'no part inside the image'``, ``'thinner than one pixel'``, ``'area is 0'``, ``'no box'``,
    #: ``'its image is not listed'``.
    left_out: Dict[str, int] = field(default_factory=dict)
    #: Category that is missing in the class list -> number of annotations.
    left_out_names: Dict[str, int] = field(default_factory=dict)
    #: The first files with dropped annotations, in formats with one file per image.
    left_out_files: List[str] = field(default_factory=list)
    duplicate_names: List[str] = field(default_factory=list)  #: Names used twice in the list of categories.
    duplicate_files: List[str] = field(default_factory=list)  #: Images listed twice; the first few.
    #: Key that mmdet requires, such as ``'annotations.area'`` -> number of records without this key.
    without_key: Dict[str, int] = field(default_factory=dict)
    sizes_compared: int = 0  #: Number of images whose size was compared with the size in the annotations.
    #: (image, size on disk, size in the annotations), with sizes as (height, width).
    size_mismatches: List[Tuple[str, Tuple[int, int], Tuple[int, int]]] = field(default_factory=list)
    #: Source of the category names: ``'categories'`` (a list in the file), ``'objects'`` (VOC), or ``''`` if the list
    #: of classes is given.
    names_from: str = 'categories'
    record_advice: str = ''  #: Advice on the keys that readers of the format require in each record; may be empty.

    @property
    def unordered_ids(self) -> List[int]:
        """Category ids in the order of the file, or [] if they are 0..N-1 or 1..N, in ascending order."""
        ids = list(self.categories)
        return [] if ids in (list(range(len(ids))), list(range(1, len(ids) + 1))) else ids


@dataclass
class BoxFacts:
    """Statistics of the bounding boxes in annotation files."""

    #: Reason (``LabelFacts.reasons``, and ``'negative'``, ``'over_edge'`` as counted below) -> ``'file: x, y, w, h'``;
    #: ``'file: x1, y1, x2, y2'`` where the format stores corners.
    box_examples: Dict[str, List[str]] = field(default_factory=dict)
    #: Boxes with a corner below 0 (VOC: after 1 was subtracted), including boxes with other faults.
    negative_boxes: int = 0
    below_minus_one: int = 0  #: Boxes with a corner below -1, which cannot result from subtracting 1.
    over_edge: int = 0  #: Boxes that begin inside the image and end more than a pixel outside.
    #: ``'x'`` or ``'y'`` if many boxes exceed the image in this direction and none in the other; else empty.
    off_axis: str = ''
    #: Other box format -> boxes that are inside their image if read in that format: ``'corners'``, ``'rows'`` and
    #: ``'centres'`` of COCO (x1, y1, x2, y2; y1, x1, y2, x2; center, width, height), ``'sizes'`` of VOC (x, y, width,
    #: height); ``'swapped'``: with width and height of the image swapped. Counted only if boxes are unusable or exceed
    #: their images, or if images differ from their annotated size.
    inside_as: Dict[str, int] = field(default_factory=dict)
    turned_boxes: int = 0  #: Boxes with a negative width or height.
    all_zero: int = 0  #: Boxes whose four numbers are 0.
    inside_now: int = 0  #: Boxes that are inside their image if read in the format of the file.
    inside_unit: int = 0  #: Boxes whose numbers are all in [0, 1], as if divided by the size of the image.
    counts_from_one: bool = False  #: True if corners are pixels counted from 1 (VOC).


@dataclass
class CocoFacts:
    """Statistics of a COCO or LVIS JSON: ids, masks, and the labels that a framework assigns."""

    framework: str = ''  #: Value of the option ``--framework``; empty if it was not given.
    min_label: int = 0  #: Label of the first class; 1 for torchvision, which trains label 0 as background.
    spare: int = 0  #: Number of outputs of the model beyond ``num_classes``.
    uncounted: int = 0  #: Number of labeled categories that RF-DETR leaves out when it counts the model's classes.
    #: Categories without annotations, to which only older releases of RF-DETR assign a label.
    parents: List[str] = field(default_factory=list)
    release: str = ''  #: Installed release of RF-DETR; empty if it is not installed.
    #: First annotation file of a scan without a config -> its {id: name}, to compare with the categories of this file.
    other_categories: Dict[str, Dict[int, str]] = field(default_factory=dict)
    #: Annotation file in the folder of the only scanned file -> its category names, in the order of the file.
    names_beside: Dict[str, List[str]] = field(default_factory=dict)
    duplicate_image_ids: List[int] = field(default_factory=list)  #: First few ids that several images share.
    duplicate_annotation_ids: List[int] = field(default_factory=list)  #: First few ids that several annotations share.
    duplicate_category_ids: List[int] = field(default_factory=list)  #: First few ids that several categories share.
    unnamed: Dict[int, int] = field(default_factory=dict)  #: Category id without a name -> number of annotations.
    unnamed_examples: List[str] = field(default_factory=list)  #: Image and id of some annotations in ``unnamed``.
    #: (label, name in the file, different name in the class list). mmdet trains the first name and shows the second.
    renamed: List[Tuple[int, str, str]] = field(default_factory=list)
    masks_read: Optional[bool] = None  #: True if masks were checked; ``None`` if the format has none.
    #: Fault of masks -> number of annotations that the loader keeps, each counted for one fault.
    mask_faults: Dict[str, int] = field(default_factory=dict)
    #: Fault of masks -> ``'image: annotation id'`` of the first annotations with this fault.
    mask_examples: Dict[str, List[str]] = field(default_factory=dict)


@dataclass
class ConfigFacts:
    """Facts about labels in a config, by path (such as ``'model.decode_head.loss_decode[0].class_weight'``)."""

    framework: str = ''  #: ``'mmseg'`` or ``'mmdet'``.
    head_classes: Dict[str, int] = field(default_factory=dict)  #: Path -> ``num_classes`` of a head.
    #: Path -> ignored value of heads, losses, metrics, and ``seg_pad_val``.
    ignore_index: Dict[str, int] = field(default_factory=dict)
    reduce_zero_label: Dict[str, bool] = field(default_factory=dict)  #: Path -> value, in data sets and loaders.
    label_map: Dict[int, int] = field(default_factory=dict)  #: Raw value -> class, as the data set maps them.
    dataset_classes: Dict[str, List[str]] = field(default_factory=dict)  #: Path -> class names of a data set.
    heads: Dict[str, str] = field(default_factory=dict)  #: Path -> type of a head, ``'DINOHead'``.
    losses: Dict[str, str] = field(default_factory=dict)  #: Path -> type of a loss, ``'OhemCrossEntropy'``.
    #: Path of a training data set -> True if the data set drops images without targets.
    filter_empty_gt: Dict[str, bool] = field(default_factory=dict)


@dataclass
class LoaderFacts:
    """Label counts of a few files as loaded by the config's pipeline, compared with the label counts of the scan."""

    files: int = 0  #: Number of files.
    #: File -> ({label: count} of the loader, {label: count} of the scan).
    differing: Dict[str, Tuple[Dict[int, int], Dict[int, int]]] = field(default_factory=dict)
    failed: Dict[str, str] = field(default_factory=dict)  #: File that the scan can read -> exception of the loader.
    unknown: str = ''  #: Reason why the loader was not run; empty if it was run.


class DrawnBox(NamedTuple):
    """A box in a picture of the report, with its fault."""

    corners: Tuple[float, ...]  #: x1, y1, x2, y2.
    fault: str = ''  #: Fault, a key of ``LabelFacts.reasons`` or ``BoxFacts.box_examples``; empty if the box is valid.


class BoxedImage(NamedTuple):
    """An image whose boxes the report draws."""

    file: str  #: Name in messages: the image or its label file.
    path: str  #: Path of the image; empty if it is unknown.
    size: Tuple[float, float]  #: Annotated (height, width); (1, 1) if boxes are fractions; 0 or less if unknown.
    boxes: Tuple[DrawnBox, ...]  #: Some of its boxes, the faulty boxes first.
    total: int  #: Number of boxes in the image.
    faults: Tuple[Tuple[str, int], ...]  #: (fault, number of boxes with this fault).


#: Maximum number of files with invalid labels that are named; further files are only counted.
MOST_FILES = 100_000


@dataclass
class LabelFacts:
    """Facts about the labels of a data set, a training or a batch."""

    values: Dict[int, int] = field(default_factory=dict)  #: Invalid value -> count.
    num_classes: int = 1  #: Number of classes.
    ignore_index: Optional[int] = None  #: The label to ignore.
    total: int = 0  #: Number of elements: pixels, instances or voxels.
    files: int = 0  #: Number of files.
    offending_files: int = 0  #: Number of files with an invalid value.
    kind: str = 'pixels'  #: Kind of the elements, ``'pixels'``, ``'instances'`` or ``'voxels'``.
    reasons: Dict[str, int] = field(default_factory=dict)  #: Reason why instances are invalid -> count.
    class_names: List[str] = field(default_factory=list)  #: Class names of the data set, if known.
    #: Every value that training sees, valid or not -> count; empty if only invalid values are known, as in training.
    histogram: Dict[int, int] = field(default_factory=dict)
    maps: Optional[MapFacts] = None  #: Facts about label maps, from a scan.
    annotations: Optional[AnnotationFacts] = None  #: Facts about annotation files, from a scan.
    boxes: BoxFacts = field(default_factory=BoxFacts)  #: Facts about the boxes in annotation files.
    coco: CocoFacts = field(default_factory=CocoFacts)  #: Facts about a COCO or LVIS JSON.
    yolo: Optional[YoloFacts] = None  #: Facts about YOLO label files.
    volumes: Optional[VolumeFacts] = None  #: Facts about volumes, from a scan.
    config: Optional[ConfigFacts] = None  #: Facts about the config, if there is one.
    split: str = ''  #: ``'train'``, ``'val'``, ``'test'`` (``'val, test'``), or empty if unknown.
    #: Invalid value after loading -> lowest few stored values that ``reduce_zero_label``, a ``label_map`` or an
    #: overflow in a loader turns into this value.
    stored: Dict[int, List[int]] = field(default_factory=dict)
    loader: Optional[LoaderFacts] = None  #: Labels of a few files as the config's loader returns them.
    #: File -> number of its invalid labels, for at most ``MOST_FILES`` files.
    offending: Dict[str, int] = field(default_factory=dict)
    #: The images with the most faulty boxes, which the report draws.
    boxed: List[BoxedImage] = field(default_factory=list, compare=False)

    @classmethod
    def from_tallies(cls, tallies: Sequence[Tally], kind: str, **more: Any) -> LabelFacts:
        """Return facts about the invalid labels of some images, with the names of the first files.

        Args:
            tallies (list[Tally]): Tallies of the images with invalid labels.
            kind (str): ``'pixels'``, ``'instances'`` or ``'voxels'``.
            more: Other fields of the result; they replace the computed ones.
        """
        found = sum(tallies, Tally())
        examples: Dict[int, List[str]] = {}
        for tally in tallies if kind == 'pixels' else ():
            for value in tally.values if tally.source else ():
                named = examples.setdefault(value, [])
                named += [str(tally.source)][len(named) // _FEW :]
        fields = dict(values=found.values, reasons=found.reasons, total=found.total, offending_files=len(tallies))
        maps = MapFacts(examples=examples) if examples else None
        return cls(**{**fields, 'kind': kind, 'maps': maps, **more})

    def name_of(self, label: int) -> str:
        """Return the class name of a label, or ``''`` if the name is unknown."""
        if self.annotations is not None and self.annotations.labelled_by == 'category id':
            return self.annotations.categories.get(label, '')
        return str(self.class_names[label]) if 0 <= label < len(self.class_names) else ''

    @property
    def has_config(self) -> bool:
        """True if a config was read, so that the loader is known; command-line options do not count."""
        config = self.config or ConfigFacts()
        return bool(config.head_classes or config.dataset_classes or config.heads)

    @property
    def has_known_classes(self) -> bool:
        """True if the number of classes is known."""
        return self.num_classes != 256 or bool(self.class_names)

    @property
    def above_last(self) -> List[int]:
        """Labels above the last valid label, including an ignored label."""
        return [label for label in self.histogram if label > self.last]

    @property
    def last(self) -> int:
        """The largest valid label."""
        return self.num_classes - 1 + self.coco.spare

    @property
    def void(self) -> int:
        """The ignored label, or 255 if no label is ignored."""
        return VOID if self.ignore_index is None else self.ignore_index

    @property
    def evidence(self) -> str:
        found = describe_reasons(Tally(values=self.values, reasons=self.reasons))
        if self.files and self.offending_files:
            template = '{found} in {offending} of {files} files'
            found = Message(template, found=found, offending=self.offending_files, files=self.files)
        return join('; ', filter(None, (found, self._as_stored())))

    def _as_stored(self) -> str:
        others = {label: stored for label, stored in self.stored.items() if label in self.values}
        if not others:
            return ''
        pairs: List[str] = [
            Message('{stored} for {label}', stored=join_with_or(map(str, stored)), label=label)
            for label, stored in sorted(others.items())
        ]
        pairs[_FEW:] = ['...'] if len(pairs) > _FEW else []
        return Message('these are the values after loading: the files contain {pairs}', pairs=join(', ', pairs))
