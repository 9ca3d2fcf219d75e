"""A stand-in for RT-DETR (lyuwenyu/RT-DETR, rtdetr_pytorch): what of it depends on targets, in small.

Denoising queries are made of the targets, by an embedding of their labels; a batch without any has none, and with them
go the embedding's gradient and the losses `*_dn_*`. The matcher indexes scores by label. Matching is greedy here.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

QUERIES, GROUPS = 6, 2


class SmallRTDETR(nn.Module):
    def __init__(self, num_classes, dim=32, layers=2):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, dim, 8, 8), nn.ReLU())
        self.enc_score_head, self.enc_bbox_head = nn.Linear(dim, num_classes), nn.Linear(dim, 4)
        self.denoising_class_embed = nn.Embedding(num_classes + 1, dim, padding_idx=num_classes)
        self.query_pos_head = nn.Linear(4, dim)
        self.decoder = nn.ModuleList(
            nn.TransformerDecoderLayer(dim, 4, 64, 0.0, batch_first=True) for _ in range(layers)
        )
        self.dec_score_head = nn.ModuleList(nn.Linear(dim, num_classes) for _ in range(layers))
        self.dec_bbox_head = nn.ModuleList(nn.Linear(dim, 4) for _ in range(layers))

    def forward(self, images, targets):
        memory = self.backbone(images).flatten(2).transpose(1, 2)
        scores, boxes = self.enc_score_head(memory), self.enc_bbox_head(memory)
        top = scores.amax(-1).topk(QUERIES, 1).indices[..., None]
        scores, boxes, content = (x.gather(1, top.expand(-1, -1, x.shape[-1])) for x in (scores, boxes, memory))
        aux = [{'pred_logits': scores, 'pred_boxes': boxes.sigmoid()}]
        content, boxes = content.detach(), boxes.detach()
        noised_class, noised_box, mask, dn_meta = self.denoising(targets, len(images))
        if dn_meta is not None:
            content, boxes = torch.cat([noised_class, content], 1), torch.cat([noised_box, boxes], 1)
        outputs = []
        for layer, score_head, bbox_head in zip(self.decoder, self.dec_score_head, self.dec_bbox_head):
            content = layer(content + self.query_pos_head(boxes.sigmoid()), memory, tgt_mask=mask)
            refined = bbox_head(content) + boxes
            outputs.append({'pred_logits': score_head(content), 'pred_boxes': refined.sigmoid()})
            boxes = refined.detach()
        out = {}
        if dn_meta is not None:
            number = dn_meta['number']
            out['dn_aux_outputs'] = [{key: value[:, :number] for key, value in one.items()} for one in outputs]
            out['dn_meta'] = dn_meta
            outputs = [{key: value[:, number:] for key, value in one.items()} for one in outputs]
        return {**out, **outputs[-1], 'aux_outputs': [*outputs[:-1], *aux]}

    def denoising(self, targets, size):
        most = max(len(target['labels']) for target in targets)
        if most == 0:
            return None, None, None, None
        padding = self.denoising_class_embed.padding_idx
        labels, boxes = torch.full((size, most), padding), torch.full((size, most, 4), 0.5)
        for i, target in enumerate(targets):
            labels[i, : len(target['labels'])] = target['labels']
            boxes[i, : len(target['labels'])] = target['boxes']
        noised = (boxes.repeat(1, GROUPS, 1) + 0.02 * torch.randn(size, GROUPS * most, 4)).clamp(0.01, 0.99).logit()
        number = GROUPS * most
        mask = torch.zeros(number + QUERIES, number + QUERIES, dtype=torch.bool)
        mask[number:, :number] = True  # what is to be found must not see the answer
        return self.denoising_class_embed(labels.repeat(1, GROUPS)), noised, mask, {'number': number, 'most': most}


class SetCriterion(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.num_classes = num_classes

    def forward(self, outputs, targets):
        number = self.average_number(targets)
        losses = self.losses_of(outputs, targets, self.match(outputs, targets), number, '')
        for i, aux in enumerate(outputs['aux_outputs']):
            losses.update(self.losses_of(aux, targets, self.match(aux, targets), number, f'_aux_{i}'))
        for i, aux in enumerate(outputs.get('dn_aux_outputs', ())):
            most = outputs['dn_meta']['most']
            places = [torch.arange(len(target['labels'])) for target in targets]
            matched = [(torch.cat([p + g * most for g in range(GROUPS)]), p.repeat(GROUPS)) for p in places]
            losses.update(self.losses_of(aux, targets, matched, number * GROUPS, f'_dn_{i}'))
        return losses

    def average_number(self, targets):
        """Instances per rank, at least 1."""
        number = torch.tensor([float(sum(len(target['labels']) for target in targets))])
        if dist.is_initialized():
            dist.all_reduce(number)
            number /= dist.get_world_size()
        return number.clamp(min=1).item()

    @torch.no_grad()
    def match(self, outputs, targets):
        matched = []
        for scores, boxes, target in zip(outputs['pred_logits'].sigmoid(), outputs['pred_boxes'], targets):
            cost = torch.cdist(boxes, target['boxes'], p=1) - scores[:, target['labels']]
            pairs = []
            for _ in range(len(target['labels'])):
                query, place = divmod(int(cost.argmin()), cost.shape[1])
                pairs.append((query, place))
                cost[query], cost[:, place] = float('inf'), float('inf')
            queries, places = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).unbind(1)
            matched.append((queries, places))
        return matched

    def losses_of(self, outputs, targets, matched, number, suffix):
        logits, boxes = outputs['pred_logits'], outputs['pred_boxes']
        classes = torch.full(logits.shape[:2], self.num_classes)
        for i, (target, (queries, places)) in enumerate(zip(targets, matched)):
            classes[i, queries] = target['labels'][places]
        wanted = F.one_hot(classes, self.num_classes + 1)[..., :-1].float()
        found = torch.cat([one[queries] for one, (queries, _) in zip(boxes, matched)])
        there = torch.cat([target['boxes'][places] for target, (_, places) in zip(targets, matched)])
        bce = F.binary_cross_entropy_with_logits(logits, wanted, reduction='none').mean(1).sum() * logits.shape[1]
        l1 = F.l1_loss(found, there, reduction='sum')
        return {f'loss_bce{suffix}': bce / number, f'loss_bbox{suffix}': l1 / number}
