"""Names for the numbers of parameters by which DistributedDataParallel complains."""

from __future__ import annotations

from typing import Any

from mmguard.distributed.reach import trainable


def with_names(message: str, module: Any) -> str:
    """A message of DistributedDataParallel, with the names of the parameters that it numbers.

    Args:
        message (str): Of an exception; any other is returned as it is.
        module (nn.Module): The model.
    """
    from mmguard.findings.unused import unused_in  # only a run that has failed needs it

    said = unused_in([message])
    if not said.indices or said.names or module is None:
        return message
    names = [name for name, _ in trainable(module)]
    lines = [
        f'Parameters which did not receive grad for rank {rank}: '
        f'{", ".join(names[one] for one in indices if one < len(names))}'
        for rank, indices in said.indices.items()
    ]
    return '\n'.join([message, *lines])
