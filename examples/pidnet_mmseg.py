"""PIDNet of MMSegmentation on labels with one class too many: `python examples/pidnet_mmseg.py`

The config is mmseg's, with small images and few iterations. `# mmguard` marks the added lines. In a config file they
are a few lines (configs/pidnet), which `mmguard apply CONFIG -o OUT` writes. Needs mmengine, mmcv and mmsegmentation.
"""

import json
import tempfile
from pathlib import Path

import numpy as np

try:
    import mmseg
    from mmengine import Config
    from mmengine.runner import Runner
    from PIL import Image
except ImportError as error:
    raise SystemExit(f'this example needs mmengine, mmcv and mmsegmentation, see docs/stacks.md: {error}') from None

import mmguard  # mmguard

SHIPPED = Path(mmseg.__file__).parent / '.mim/configs/pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py'
SIZE, NUM_CLASSES = (64, 128), 19


def write_images(root, number=4):
    """Write images as in Cityscapes; every other label map has label 19, invalid for a head with 19 classes."""
    for i in range(number):
        label = np.tile(np.arange(SIZE[1]) * NUM_CLASSES // SIZE[1], (SIZE[0], 1)).astype(np.uint8)
        label[:8] = 255  # ordinary ignored pixels
        if i % 2:
            label[20 : 20 + i, 30:40] = NUM_CLASSES
        noise = np.random.default_rng(i).integers(0, 256, (*SIZE, 3), dtype=np.uint8)
        for folder, suffix, array in (('leftImg8bit', '', noise), ('gtFine', '_labelTrainIds', label)):
            path = root / folder / f'train/ulm/ulm_{i:06d}_000019_{folder}{suffix}.png'
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(array).save(path)


def stock_config(root):
    config = Config.fromfile(SHIPPED)
    config.model.data_preprocessor.size = SIZE
    config.model.backbone.update(norm_cfg=dict(type='BN'), init_cfg=None)
    config.model.decode_head.norm_cfg = dict(type='BN')
    config.train_dataloader.update(batch_size=2, num_workers=0, persistent_workers=False)
    config.train_dataloader.dataset.data_root = str(root)
    config.train_cfg.update(max_iters=4, val_interval=99)
    config.default_hooks.update(checkpoint=None, logger=dict(type='LoggerHook', interval=1))
    config.update(work_dir=str(root / 'work'), log_level='ERROR')
    for key in ('val', 'test'):
        config[f'{key}_dataloader'] = config[f'{key}_cfg'] = config[f'{key}_evaluator'] = None
    load, annotations, *_, edge, pack = config.train_pipeline
    config.train_dataloader.dataset.pipeline = [load, annotations, edge, pack]
    return config


def main():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_images(root)
        try:
            Runner.from_cfg(stock_config(root)).train()
        except IndexError as error:
            print(f'stock: dies, IndexError: {error} (on a GPU: device-side assert triggered)')
        runner = Runner.from_cfg(mmguard.guard_config(stock_config(root)))  # mmguard
        runner.train()
        loss = runner.message_hub.get_scalar('train/loss').data[0]
        print(f'guarded: {runner.iter} iterations, loss {loss[0]:.2f} -> {loss[-1]:.2f}')
        for line in (Path(runner.log_dir) / 'label_guard.jsonl').read_text().splitlines():
            record = json.loads(line)
            for sample in record['samples']:
                name = Path(sample['source']).name
                values = sample.get('values', 'as before')
                print(f'iter {record["iter"]}: {name}: {sample["skipped"]} px left out, values {values}')


if __name__ == '__main__':
    main()
