"""Reading data: files, categories, boxes, samples."""

from __future__ import annotations

from mmguard.findings.signatures.signature import Cause, Signature

_SCAN = 'mmguard scan CONFIG'
_NAMES = Cause(
    'Class names of the config are not those of the annotations (spelling, case): every image is left out.',
    ('MG140', 'MG203', 'MG205', 'MG154'),
    clue=r'coco|categor|classes|filter|voc',
    tell='The scan compares both lists.',
)
_NO_FILES = Cause(
    'Folder, suffix or list of files name nothing that is there.',
    ('MG150', 'MG129'),
    clue=r'glob|listdir|scandir|img_dir|data_prefix|suffix|num_samples',
    tell='Count the files with `ls`.',
)

SIGNATURES = (
    Signature(
        'MG472',
        'The data set is empty (need at least one array to concatenate, num_samples=0).',
        r'need at least one array to (?:concatenate|stack)|stack expects a non-empty TensorList'
        r'|torch\.cat\(\): expected a non-empty list|zero-size array to reduction operation'
        r'|expected a non-empty list of Tensors|max\(\) arg is an empty sequence|No objects to concatenate'
        r'|num_samples should be a positive integer value|num_samples=0|[Dd]ataset(?: \S+)? (?:is|has) (?:empty|no )'
        r'|Found 0 (?:images|files|samples)|No (?:images|samples|data) found|has 0 length'
        r'|Cannot find valid image after \d+|max_refetch',
        'After filtering no image, or no prediction, is left.',
        (
            _NAMES,
            Cause(
                'Every image is smaller than min_size, or holds no box.',
                ('MG145', 'MG174', 'MG146'),
                clue=r'min_size|filter_cfg|find valid image',
                tell='The scan says how many are left out, and why.',
            ),
            _NO_FILES,
            Cause('No box has an area.', ('MG109', 'MG172', 'MG173')),
        ),
        _SCAN,
    ),
    Signature(
        'MG474',
        'num_classes of a head is not the number of classes of the data set.',
        r'num_classes.{0,40}does not match[es]* the length of .{0,20}(?:CLASSES|classes)'
        r'|num_classes` \(\d+\) in|Add comma if number of classes is 1',
        'mmdet compares every head with the class list of the data set, and one differs.',
        (
            Cause(
                'The data set does not get the class list and falls back to its own (80 of COCO, 20 of VOC).',
                ('MG203', 'MG205', 'MG201'),
                clue=r'length of .{0,24}[ (](?:80|20|1203|500|365|8|10|13|15)\)',
                tell='The number of the data set is a known one, not yours: metainfo=dict(classes=...) in every '
                'data set, inside of wrappers.',
            ),
            Cause(
                'A wrapper (RepeatDataset, ConcatDataset) holds the class list: it belongs to the inner data set.',
                ('MG203',),
                clue=r'in (?:Repeat|Concat|ClassBalanced|MultiImageMix)\w*|RepeatDataset',
                tell='The message names the wrapper.',
            ),
            Cause(
                'num_classes of one head was not changed (mask_head, each stage of a cascade).',
                ('MG201',),
                clue=r'num_classes`? \((?:80|81|20|150|19)\)',
                tell='The number of the head is 80.',
            ),
            Cause("One name without a comma: ('cat') is a string.", ('MG205',), clue='Add comma'),
        ),
        'mmguard check CONFIG',
    ),
    Signature(
        'MG475',
        'A category or class name is not in the map.',
        r"KeyError: -?\d+\b|KeyError: '?[\w ./-]+'?",
        'A map from category to label does not have what an annotation holds.',
        (
            Cause(
                'The annotations use category ids that `categories` does not list.',
                ('MG149', 'MG117'),
                clue=r'KeyError: -?\d',
                tell='The key is a number.',
            ),
            Cause(
                'A name in the annotations that the class list does not have (case, blanks, another language).',
                ('MG140', 'MG154'),
                clue=r"KeyError: '",
                tell='The key is a name.',
            ),
            Cause('A map of COCO ids (remap_mscoco_category) over ids of your own.', ('MG138',), clue=r'mscoco|remap'),
        ),
        _SCAN,
        place=r'cat2label|cat_ids|category|label_map|class_to_i|name2|cls_to|labels_map|classes\.index|id_to|label2|_map\[|2label',
    ),
    Signature(
        'MG476',
        'The annotation file lacks something that its reader needs.',
        r"KeyError: '(?:annotations|categories|images|info|licenses|area|iscrowd|bbox|segmentation|image_id|category_id"
        r'|id|file_name|width|height|instances|data_list|metainfo|labels|channel_names|numTraining|file_ending'
        r"|segments_info|img_path|seg_map_path|gt_seg_map|gt_masks|gt_bboxes|ignore_flag|bbox_label)'"
        r'|Annotation must (?:contain|have) data_list|Annotation file format .{0,60}not supported',
        'A record has no such key: not COCO, another version of it, or a step of the pipeline that makes it is '
        'missing.',
        (
            Cause('Records of the annotation file lack keys.', ('MG153', 'MG176'), tell='The scan lists them.'),
            Cause(
                'A step that loads it is missing in the pipeline, or stands too late (with_mask, with_seg).',
                (),
                clue=r"'(?:gt_\w+|img_path|seg_map_path)'",
                tell='The key begins with gt_.',
            ),
            Cause(
                'A file of another kind: predictions (a list), VOC or YOLO in place of COCO.', clue=r"'images'|'data_l"
            ),
            Cause('dataset.json of nnU-Net v1.', ('MG180',), clue=r"'(?:channel_names|file_ending|labels)'"),
        ),
        _SCAN,
    ),
    Signature(
        'MG478',
        'A file is not there.',
        r'FileNotFoundError:|No such file or directory|NotADirectoryError|IsADirectoryError',
        'A path that config, list or annotation file name does not exist.',
        (
            Cause(
                'data_root and data_prefix together give another folder; suffixes differ (.jpg, .png, .JPG).',
                ('MG150', 'MG129'),
                clue=r'\.(?:jpe?g|png|tiff?|bmp)',
                tell='The path in the message, with `ls`.',
            ),
            Cause(
                'The annotation file names images that are not on disk.',
                ('MG150',),
                clue=r'\.(?:jpe?g|png)',
            ),
            Cause('The annotation file, or a config, stands elsewhere.', (), clue=r'\.(?:json|xml|py|txt|pkl|yaml)'),
            Cause('nnUNet_raw, nnUNet_preprocessed or nnUNet_results is not set.', clue=r'nnUNet'),
        ),
        _SCAN,
    ),
    Signature(
        'MG479',
        'An image or label file cannot be read.',
        r'cannot identify image file|image file is truncated|broken data stream|Truncated File Read'
        r'|OpenCV.{0,200}\!(?:_src|buf)\.empty'
        r"|'NoneType' object has no attribute '(?:shape|astype|copy|ndim|dtype)'|decode error|DecompressionBomb"
        r'|bad (?:number|magic)|Premature end|itk::ERROR|ImageFileError|Could not (?:open|read)',
        'The reader gave nothing back: the file is damaged, empty, or of another kind.',
        (
            Cause('A damaged or empty file.', ('MG132', 'MG192'), tell='The scan names the files.'),
            Cause(
                'The path does not exist: OpenCV says nothing and returns None.',
                ('MG150', 'MG129'),
                clue='NoneType|empty',
            ),
            Cause('A suffix that does not say what it is.', ('MG191', 'MG131')),
        ),
        _SCAN,
    ),
    Signature(
        'MG480',
        'A box ends before it begins (albumentations, torchvision).',
        r'[xy]_max is less than or equal to [xy]_min|Expected [xy]_(?:min|max) for bbox .{0,200}to be in the range'
        r'|All bounding boxes should have positive height and width|Expected target boxes to be a? ?(?:of type|tensor)',
        'The annotation has a box without area, or outside the image.',
        (
            Cause('Boxes without area, or beyond the image.', ('MG109', 'MG152'), tell='The scan names the files.'),
            Cause(
                'Another format than is wanted: COCO boxes (x, y, width, height) for two corners, or '
                '`bbox_params(format=...)`.',
                ('MG172', 'MG173'),
                clue=r'to be in the range',
                tell='All files fail, not one.',
            ),
            Cause(
                'An image without objects: boxes of shape (0,) where (0, 4) is wanted.',
                ('MG146',),
                clue=r'boxes to be|\[N, 4\]',
            ),
        ),
        _SCAN,
    ),
    Signature(
        'MG483',
        'nnU-Net: label files hold values that dataset.json does not declare.',
        r'[Uu]nexpected labels found in file|Some images have errors|Expected: \[.{0,200}\] ?,? ?[Ff]ound: \['
        r'|Unexpected labels found',
        'Every value in the files must be declared in `labels`, from 0 on without a gap.',
        (
            Cause('0/255 masks: divide by 255.', ('MG103', 'MG185'), clue=r'[Ff]ound: \[0\.?,? 255\.?\]|\[0,? 255\]'),
            Cause(
                'Images in place of segmentations: intensities.',
                ('MG196', 'MG131', 'MG186', 'MG185'),
                clue=r'-10\d\d|-\d{3}|\b(?:[3-9]\d\d|\d{4})\b',
                tell='Dozens of values, negative ones among them.',
            ),
            Cause(
                'Gray pictures: values in between.', ('MG106', 'MG136', 'MG185'), clue=r'(?:\d{1,9}\.?,?\s{1,9}){12}'
            ),
            Cause('`labels` in dataset.json is empty or incomplete.', ('MG181', 'MG180'), clue=r'Expected: \[\]'),
            Cause(
                'Values that were not renumbered (a gap, as 0, 1, 2, 4 of BraTS), or one that is not declared.',
                ('MG118', 'MG116', 'MG185'),
                clue=r'1\.?,? +2\.?,? +4\.?\]|[Ff]ound: \[(?:\d\d?\.?[ ,]*){2,10}\]',
                tell='A handful of small values.',
            ),
        ),
        'mmguard scan $nnUNet_raw/DatasetXXX_NAME',
        bare=True,
    ),
    Signature(
        'MG400',
        'nnU-Net: the pseudo Dice of a class is nan.',
        r'[Pp]seudo dice.{0,2000}?\bnan|[Gg]lobal foreground Dice:?\s*\[[^\]]*\bnan',
        'No patch of the validation held the class, and none was predicted: 0 divided by 0. In some epochs that is '
        'harmless, in every epoch the network is never asked for the class.',
        (
            Cause(
                'No label file holds the value that dataset.json declares for it: the files were not renumbered, or '
                'the class is not in these cases.',
                ('MG194', 'MG185', 'MG181', 'MG193', 'MG196'),
                clue=r'nan in all [\d,]+ epochs',
                tell='It is nan in every epoch.',
            ),
            Cause(
                'The class is rare, and the patches of this epoch missed it: nothing is to be done.',
                (),
                clue=r'\A(?!.*nan in all)',
                tell='Other epochs have a number for it.',
            ),
            Cause(
                'No case of the validation fold holds the class.',
                (),
                tell='Other folds have a number for it: see splits_final.json.',
            ),
        ),
        'mmguard scan $nnUNet_raw/DatasetXXX_NAME',
    ),
    Signature(
        'MG484',
        'nnU-Net: the data set does not verify.',
        r'verify_dataset_integrity|[Ll]abels? (?:values )?must be consecutive|consecutive integers'
        r'|labels? must start at 0'
        r'|Did not find the expected number of training cases|not all (?:training cases|training labels) have'
        r'|Missing images:'
        r'|Error: Shape mismatch between segmentation and corresponding images|Error: Spacing mismatch',
        'Files, channels, shapes or labels are not as dataset.json says.',
        (
            Cause(
                'Labels have a gap or do not begin with 0.', ('MG181', 'MG116', 'MG185'), clue=r'consecutive|start at'
            ),
            Cause('Cases and files do not pair up.', ('MG184', 'MG183', 'MG129'), clue=r'training cases|have|Missing'),
            Cause('Shapes or spacings differ.', ('MG188', 'MG189', 'MG190'), clue=r'Shape|Spacing'),
        ),
        'mmguard scan $nnUNet_raw/DatasetXXX_NAME',
    ),
    Signature(
        'MG429',
        'Results are about images that the annotation file does not have (pycocotools).',
        r'Results do not correspond to current coco set|results in not an array of objects',
        'The metric reads another annotation file than the data set, or the ids of images differ in type.',
        (
            Cause('ann_file of the evaluator is another file.', ('MG229',), tell='Compare both in the config.'),
            Cause('Image ids are text in one and numbers in the other.', ('MG176',)),
        ),
        'mmguard check CONFIG',
    ),
)
