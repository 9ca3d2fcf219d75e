"""Mask2Former for the instances of 10 classes, with the 80 things of the base config in head and fusion head."""

from common import write_coco, write_detection_config

names = ('ant', 'bee', 'beetle', 'butterfly', 'cricket', 'fly', 'moth', 'spider', 'tick', 'wasp')
for split, count in (('train', 14), ('val', 8)):
    write_coco(f'data/{split}.json', f'data/{split}', dict(enumerate(names, 1)), count)
write_detection_config('mask2former/mask2former_r50_8xb2-lsj-50e_coco', names)
