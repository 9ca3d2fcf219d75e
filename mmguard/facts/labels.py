"""Facts for the rules, collected by a hook in training, a scan of files, or from a config."""

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

#: File or folder -> options of `mmguard fix`, named as in ``FixOptions``: how label files would be corrected.
FileChanges = Mapping[str, Mapping[str, Any]]

#: Maximum number of values listed as evidence.
_FEW = 6


#: Fault of the label maps of a semantic branch, which the records of an annotation file do not name.
NO_LABEL_MAP = 'with_seg=True, but the label map of an image is missing'


@dataclass
class MapFacts:
    """Statistics of label map files. File names are relative to the scanned root; lists hold a few of each kind."""

    raw: Dict[int, int] = field(default_factory=dict)  #: Value as stored -> pixels.
    files_with: Dict[int, int] = field(default_factory=dict)  #: Value as stored -> files that contain it.
    #: Form -> number of files: ``'gray8'``, ``'palette8'``, ``'gray16'``, ``'gray32'``, ``'float'``, ``'bool'``,
    #: ``'rgb'``, ``'rgba'``, ``'gray_alpha'``, ``'gray4'``, ``'gray2'``, ``'other'``.
    forms: Dict[str, int] = field(default_factory=dict)
    lossy: int = 0  #: Files that were compressed with loss (JPEG).
    #: Change of the stored values by the framework's loader -> files: ``'wrapped'`` (16 bits modulo 256), ``'colors'``
    #: (palette or RGB read as colors), ``'scaled'`` (fewer than 8 bits stretched over 0 to 255), ``'truncated'``
    #: (fractions cut off).
    loaded_otherwise: Dict[str, int] = field(default_factory=dict)
    #: Share of the invalid pixels at the border of two other values: with a lower and a higher one among their eight
    #: neighbors, as interpolation makes them.
    at_edges: Optional[float] = None
    all_void: List[str] = field(default_factory=list)  #: Files without a single pixel to train on.
    #: Label file, its (height, width), or (z, y, x), and that of its image.
    size_mismatches: List[Tuple[str, Tuple[int, ...], Tuple[int, ...]]] = field(default_factory=list)
    #: This and the next two: stems without a partner, or with two.
    missing_labels: List[str] = field(default_factory=list)
    missing_images: List[str] = field(default_factory=list)
    duplicates: List[str] = field(default_factory=list)
    unreadable: Dict[str, List[str]] = field(default_factory=dict)  #: Fault -> files.
    examples: Dict[int, List[str]] = field(default_factory=dict)  #: Value as stored -> first files that contain it.
    #: Of float files: values that are not integers -> pixels; the first few.
    fractions: Dict[float, int] = field(default_factory=dict)
    void_files: int = 0  #: Number of files in ``all_void``, which may be cut.
    image_forms: Dict[str, int] = field(default_factory=dict)  #: As ``forms``, of the images.
    files_with_class: Dict[int, int] = field(default_factory=dict)  #: Label as trained -> files that contain it.
    #: Class -> pixels of all classes in the files that contain it.
    pixels_with_class: Dict[int, int] = field(default_factory=dict)
    #: (r, g, b) -> pixels, of color files with few colors.
    colors: Dict[Tuple[int, int, int], int] = field(default_factory=dict)
    gray_in_color: int = 0  #: Color files whose channels are equal; their ``raw`` values are those of one channel.
    black_palettes: int = 0  #: Palette files whose palette shows all of their values as black.
    form_examples: Dict[str, List[str]] = field(default_factory=dict)  #: Form -> first files of it.
    #: Full length of each list above, which may be cut: ``'all_void'``, ..., ``'unreadable <what is wrong>'``.
    counts: Dict[str, int] = field(default_factory=dict)
    sources: List[str] = field(default_factory=list)  #: The folders (or the single file) that were read.
    suffix: str = ''  #: End of the names of the files that were read; empty: all.


@dataclass
class AnnotationFacts:
    """Statistics that every format of instances has (COCO, LVIS, VOC, YOLO, class folders)."""

    format: str = 'coco'  #: ``'coco'``, ``'voc'``, ...
    #: Category id -> name, in the order of the file (VOC: position -> name).
    categories: Dict[int, str] = field(default_factory=dict)
    #: Category (id in COCO, name in VOC, as text) -> annotations.
    instances_of: Dict[str, int] = field(default_factory=dict)
    images: int = 0
    annotations: int = 0
    images_without_target: int = 0  #: Images without a single usable annotation.
    #: Those of them that have a target of an unusable box, or of a category without a name.
    images_spoiled: int = 0
    #: The others that ``filter_empty_gt=True`` keeps, because it does not count crowds and annotations that are dropped
    #: individually as missing.
    images_kept_empty: int = 0
    small_images: int = 0  #: Images with a shorter side below ``min_size``, which the data set's filter leaves out.
    min_size: int = 0
    missing: int = 0  #: Listed images that are not on disk; ``missing_files`` names the first.
    missing_files: List[str] = field(default_factory=list)
    unreadable: Dict[str, List[str]] = field(default_factory=dict)  #: Fault -> files.
    #: Source of the labels in ``LabelFacts.values`` and ``histogram``: ``'file order'`` (as mmdet numbers COCO and
    #: LVIS: position in the file's own list, among the listed names), ``'class list'`` (VOC), ``'category id'`` (as
    #: DETR and torchvision read a JSON), ``'COCO ids'`` (their place among COCO's own ids; -1: none), ``'unknown'``
    #: (a JSON without a config or an option that says it; counted as in ``'file order'``).
    labelled_by: str = 'file order'
    #: The model's number of classes is not known: ``num_classes`` is what the file needs.
    classes_counted: bool = False
    files_with_class: Dict[int, int] = field(default_factory=dict)  #: Label as trained -> images or files that hold it.
    #: Label -> annotations that teach it: it is valid, and so is the box.
    usable: Dict[int, int] = field(default_factory=dict)
    sources: List[str] = field(default_factory=list)  #: The annotation files (VOC: folders) that were read.
    crowds: int = 0  #: Annotations that are not trained on: crowds in COCO, difficult ones in VOC.
    #: Why mmdet leaves annotations out silently -> how many: ``'category not in the class list'``, ``'ignore is set'``,
    #: ``'no part inside the image'``, ``'thinner than one pixel'``, ``'area is 0'``, ``'no box'``, ``'its image is not
    #: listed'``.
    left_out: Dict[str, int] = field(default_factory=dict)
    left_out_names: Dict[str, int] = field(default_factory=dict)  #: Category that the class list lacks -> annotations.
    #: The first files with such annotations, where an image has a file of its own.
    left_out_files: List[str] = field(default_factory=list)
    duplicate_names: List[str] = field(default_factory=list)  #: Names used twice in the list of categories.
    duplicate_files: List[str] = field(default_factory=list)  #: Images listed twice; the first few.
    #: Key that mmdet needs, as ``'annotations.area'`` -> records without it.
    without_key: Dict[str, int] = field(default_factory=dict)
    sizes_compared: int = 0  #: Images whose size was compared with that in the annotations.
    #: Image, its (height, width) on disk, that in the annotations.
    size_mismatches: List[Tuple[str, Tuple[int, int], Tuple[int, int]]] = field(default_factory=list)
    #: Source of the category names: ``'categories'`` (a list in the file), ``'objects'`` (VOC), or ``''`` if the list
    #: of classes is given.
    names_from: str = 'categories'
    record_advice: str = ''  #: What readers of the format need in each record; empty: not said.


@dataclass
class BoxFacts:
    """Statistics of boxes."""

    #: Reason (``LabelFacts.reasons``, and ``'negative'``, ``'over_edge'`` as counted below) -> ``'file: x, y, w, h'``;
    #: ``'file: x1, y1, x2, y2'`` where the format stores corners.
    box_examples: Dict[str, List[str]] = field(default_factory=dict)
    #: Boxes with a corner below 0 (VOC: after 1 was subtracted), whatever their other faults.
    negative_boxes: int = 0
    below_minus_one: int = 0  #: Those of them with a corner below -1, which subtracting 1 does not explain.
    over_edge: int = 0  #: Boxes that begin inside the image and end more than a pixel outside.
    #: ``'x'`` or ``'y'`` if many boxes end outside in this direction, and none in the other.
    off_axis: str = ''
    #: Another format of boxes -> boxes that are inside their image if they are read so: ``'corners'``, ``'rows'`` and
    #: ``'centres'`` of COCO (x1, y1, x2, y2; y1, x1, y2, x2; center, width, height), ``'sizes'`` of VOC (x, y, width,
    #: height); ``'swapped'``: with width and height of the image swapped. Counted if boxes cannot be used, or reach
    #: beyond their images, or images have another size.
    inside_as: Dict[str, int] = field(default_factory=dict)
    turned_boxes: int = 0  #: Boxes with a negative width or height.
    all_zero: int = 0  #: Boxes whose four numbers are 0.
    inside_now: int = 0  #: Boxes that are inside their image as they are read.
    inside_unit: int = 0  #: Boxes whose numbers are all in [0, 1], as if divided by the size of the image.
    counts_from_one: bool = False  #: True if corners are pixels counted from 1 (VOC).


@dataclass
class CocoFacts:
    """Statistics of a COCO or LVIS JSON: ids, masks, and what a framework makes of them."""

    framework: str = ''  #: That of the option ``--framework``; empty: it was not given.
    min_label: int = 0  #: The first class; torchvision trains a label below it, 0, as background.
    spare: int = 0  #: Number of outputs of the model beyond ``num_classes``.
    uncounted: int = 0  #: Categories with a label that RF-DETR does not count for its model.
    #: Categories that have a label only in older releases of RF-DETR: no annotation has them.
    parents: List[str] = field(default_factory=list)
    release: str = ''  #: Installed release of RF-DETR; empty: none is installed.
    #: The first other file of a scan without a config -> its categories.
    other_categories: Dict[str, Dict[int, str]] = field(default_factory=dict)
    #: Files next to the only one that was scanned -> their category names, in the order of the file.
    names_beside: Dict[str, List[str]] = field(default_factory=dict)
    #: This and the next two: ids used twice; the first few.
    duplicate_image_ids: List[int] = field(default_factory=list)
    duplicate_annotation_ids: List[int] = field(default_factory=list)
    duplicate_category_ids: List[int] = field(default_factory=list)
    unnamed: Dict[int, int] = field(default_factory=dict)  #: Category id without a name -> annotations.
    unnamed_examples: List[str] = field(default_factory=list)  #: Image and id of some of these annotations.
    #: Label, its name in the file, its name in the class list, where they differ: mmdet trains the first and shows the
    #: second.
    renamed: List[Tuple[int, str, str]] = field(default_factory=list)
    masks_read: Optional[bool] = None  #: True if masks were checked; ``None`` if the format has none.
    #: Fault of masks that were read -> annotations that a loader does not leave out, one fault each.
    mask_faults: Dict[str, int] = field(default_factory=dict)
    #: The same -> ``'image: annotation id'`` of the first.
    mask_examples: Dict[str, List[str]] = field(default_factory=dict)


@dataclass
class ConfigFacts:
    """Facts about labels in a config. Paths are places in it, ``model.decode_head.loss_decode[0].class_weight``."""

    framework: str = ''  #: ``'mmseg'`` or ``'mmdet'``.
    head_classes: Dict[str, int] = field(default_factory=dict)  #: Path -> ``num_classes`` of a head.
    #: Path -> ignored value of heads, losses, metrics, and ``seg_pad_val``.
    ignore_index: Dict[str, int] = field(default_factory=dict)
    reduce_zero_label: Dict[str, bool] = field(default_factory=dict)  #: Path -> value, in data sets and loaders.
    label_map: Dict[int, int] = field(default_factory=dict)  #: Raw value -> class, as the data set maps them.
    dataset_classes: Dict[str, List[str]] = field(default_factory=dict)  #: Path -> class names of a data set.
    heads: Dict[str, str] = field(default_factory=dict)  #: Path -> type of a head, ``'DINOHead'``.
    losses: Dict[str, str] = field(default_factory=dict)  #: Path -> type of a loss, ``'OhemCrossEntropy'``.
    #: Path of a training data set -> True if it leaves out images without targets.
    filter_empty_gt: Dict[str, bool] = field(default_factory=dict)


@dataclass
class LoaderFacts:
    """A few files as loaded by the config's own loader, compared with the scan."""

    files: int = 0  #: Number of files.
    #: File -> label -> count as the loader returns them, and as the scan counts them.
    differing: Dict[str, Tuple[Dict[int, int], Dict[int, int]]] = field(default_factory=dict)
    failed: Dict[str, str] = field(default_factory=dict)  #: File that the scan can read -> exception of the loader.
    unknown: str = ''  #: Why the loader was not run; empty if it was.


class DrawnBox(NamedTuple):
    """A box in a picture of the report, with its fault."""

    corners: Tuple[float, ...]  #: x1, y1, x2, y2.
    fault: str = ''  #: Reason as in ``LabelFacts.reasons`` and ``BoxFacts.box_examples``; empty: none.


class BoxedImage(NamedTuple):
    """An image whose boxes the report draws."""

    file: str  #: Its name in messages: the image or its label file.
    path: str  #: Path of the image; empty if it is not known.
    size: Tuple[float, float]  #: Height and width as stated; (1, 1): boxes are fractions; not above 0: not known.
    boxes: Tuple[DrawnBox, ...]  #: The first ones, those with a fault first.
    total: int  #: Number of its boxes.
    faults: Tuple[Tuple[str, int], ...]  #: Fault -> number of its boxes.


#: Maximum number of files with invalid labels that are named; all are counted.
MOST_FILES = 100_000


@dataclass
class LabelFacts:
    """Facts about the labels of a data set, a training or a batch."""

    values: Dict[int, int] = field(default_factory=dict)  #: Invalid value -> count.
    num_classes: int = 1  #: Number of classes.
    ignore_index: Optional[int] = None  #: The label to ignore.
    total: int = 0  #: Elements seen.
    files: int = 0  #: Files seen.
    offending_files: int = 0  #: Files with an invalid value.
    kind: str = 'pixels'  #: Kind of the elements, ``'pixels'``, ``'instances'`` or ``'voxels'``.
    reasons: Dict[str, int] = field(default_factory=dict)  #: Of instances, why they are invalid -> count.
    class_names: List[str] = field(default_factory=list)  #: Class names of the data set, if known.
    #: Every value that training sees, valid or not -> count; empty if only invalid ones are known (in training).
    histogram: Dict[int, int] = field(default_factory=dict)
    maps: Optional[MapFacts] = None  #: Of label maps, from a scan.
    annotations: Optional[AnnotationFacts] = None  #: Of annotation files, from a scan.
    boxes: BoxFacts = field(default_factory=BoxFacts)  #: Of their boxes.
    coco: CocoFacts = field(default_factory=CocoFacts)  #: Of what only a COCO or LVIS JSON has.
    yolo: Optional[YoloFacts] = None  #: Of YOLO label files.
    volumes: Optional[VolumeFacts] = None  #: Of volumes, from a scan.
    config: Optional[ConfigFacts] = None  #: Of the config, if there is one.
    split: str = ''  #: ``'train'``, ``'val'``, ``'test'`` (``'val, test'``), or empty if unknown.
    #: Invalid value -> other values in the files that become it, the lowest few: after ``reduce_zero_label``, a
    #: ``label_map`` or the wrapping of a loader.
    stored: Dict[int, List[int]] = field(default_factory=dict)
    loader: Optional[LoaderFacts] = None  #: A few files as the config's loader returns them.
    #: File with invalid labels -> their number; at most ``MOST_FILES``.
    offending: Dict[str, int] = field(default_factory=dict)
    #: The images with the most faulty boxes, to draw them.
    boxed: List[BoxedImage] = field(default_factory=list, compare=False)

    @classmethod
    def from_tallies(cls, tallies: Sequence[Tally], kind: str, **more: Any) -> LabelFacts:
        """Return facts about the invalid labels of some images, with the names of the first files.

        Args:
            tallies (list[Tally]): Tallies of the images with invalid labels.
            kind (str): Kind of the elements.
            more: Other fields, or better values of these.
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
        """Return the name of a label; empty if unknown."""
        if self.annotations is not None and self.annotations.labelled_by == 'category id':
            return self.annotations.categories.get(label, '')
        return str(self.class_names[label]) if 0 <= label < len(self.class_names) else ''

    @property
    def has_known_classes(self) -> bool:
        """True if the number of classes is known."""
        return self.num_classes != 256 or bool(self.class_names)

    @property
    def last(self) -> int:
        """The largest valid label."""
        return self.num_classes - 1 + self.coco.spare

    @property
    def void(self) -> int:
        """The ignored label; where nothing is ignored, the usual one."""
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
        return Message('as training sees them: the files hold {pairs}', pairs=join(', ', pairs))
