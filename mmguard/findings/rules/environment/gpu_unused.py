from __future__ import annotations

from typing import Iterator

from mmguard.findings.environment import EnvironmentFacts, version_key
from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.rule import EnvironmentRule


class GpuUnused(EnvironmentRule):
    """A torch and a driver that do not go together, or one of them without the other."""

    code = 'MG510'
    summary = 'torch does not use the GPU.'
    why = 'Training runs on the CPU, or ends at the first call of CUDA.'
    advice = 'Install a torch for the CUDA that nvidia-smi names (pytorch.org/get-started), or a newer driver.'
    severity = WARNING

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        if 'torch' in environment.missing:
            return
        torch_cuda, driver, driver_cuda = environment.torch_cuda, environment.driver, environment.driver_cuda
        severity = WARNING
        if torch_cuda is None:
            if driver is None:
                return
            cause = 'torch was installed without CUDA, so the GPU is not used.'
            advice = 'Install a torch with CUDA: pytorch.org/get-started.'
        elif driver is None:
            cause = 'torch is for CUDA, and nvidia-smi finds no driver: training runs on the CPU.'
            advice = 'Install the NVIDIA driver; nothing is to be done where no GPU is.'
        elif driver_cuda and version_key(torch_cuda)[0][0] > version_key(driver_cuda)[0][0]:
            cause, severity = 'The driver is too old for this torch.', ERROR
            advice = f'Update the driver, or install a torch for CUDA {driver_cuda}.'
        elif environment.cuda_available is False:
            cause = 'torch finds no usable GPU.'
            advice = 'Is CUDA_VISIBLE_DEVICES empty, or the container without --gpus?'
        else:
            return
        yield self.found(cause, cuda_in_words(environment), advice, severity, places=('CUDA',))


def cuda_in_words(environment: EnvironmentFacts) -> str:
    """What torch was built for, the driver and the GPUs."""
    built = 'the CPU' if environment.torch_cuda is None else f'CUDA {environment.torch_cuda}'
    driver = f'driver {environment.driver}, up to CUDA {environment.driver_cuda}' if environment.driver else ''
    gpus = f'; {", ".join(environment.gpus)}' if environment.gpus else ''
    return f'torch for {built}; {driver or "no NVIDIA driver"}{gpus}'
