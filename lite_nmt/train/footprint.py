"""What training cost, as Lite Transformer's Table 3 reports it: device hours, energy, CO2 and cloud price."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

import torch

# Strubell, Ganesh and McCallum 2019, section 2: what a data centre adds to its machines' power, and what an
# average US kilowatt-hour emits (0.954 pounds).
OVERHEAD = 1.58
CO2_PER_KWH = 0.433
# Assumed draw and cloud prices where nothing better is known; prices run from spot to on demand.
CPU_CORE_WATTS, CPU_CORE_PRICE = 10.0, (0.01, 0.05)
GPU_WATTS, GPU_PRICE = 300.0, (0.43, 4.00)


@dataclass(frozen=True)
class Footprint:
    """Estimates, under the assumptions that ``assumed`` spells out; only the hours are measured."""

    hours: float
    devices: int
    device: str
    kwh: float
    co2_kg: float
    price_low: float
    price_high: float
    assumed: str

    def sentence(self) -> str:
        """The report in one line."""
        return (
            f"training took {self.hours * self.devices:.2f} {self.device} hours, about {self.kwh:.3g} kWh, "
            f"{self.co2_kg:.2g} kg CO2e, ${self.price_low:.2f} to ${self.price_high:.2f} in a cloud ({self.assumed})"
        )


def footprint(seconds: float, device: torch.device, processes: int) -> Footprint:
    """Estimate what ``seconds`` of training on ``processes`` GPUs, or on their CPU threads, cost."""
    hours = seconds / 3600
    if device.type == "cuda":
        name, count, prices = torch.cuda.get_device_name(device), processes, GPU_PRICE
        limit = _power_limit()
        watts, source = (limit, "its power limit") if limit else (GPU_WATTS, "assumed")
    else:
        name, prices, watts, source = "CPU core", CPU_CORE_PRICE, CPU_CORE_WATTS, "assumed"
        count = min(processes * torch.get_num_threads(), os.cpu_count() or 1)
    kwh = OVERHEAD * hours * count * watts / 1000
    low, high = (price * hours * count for price in prices)
    assumed = (
        f"{watts:.0f} W a device, {source}; data-centre overhead {OVERHEAD}; {CO2_PER_KWH} kg CO2e a kWh; "
        f"${prices[0]:.2f} to ${prices[1]:.2f} a device hour"
    )
    return Footprint(hours, count, name, kwh, kwh * CO2_PER_KWH, low, high, assumed)


def _power_limit() -> float | None:
    """The GPU's power limit in watts, from the driver's own tool."""
    if shutil.which("nvidia-smi") is None:
        return None
    command = ["nvidia-smi", "--query-gpu=power.limit", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
        return float(answer.stdout.splitlines()[0])
    except (IndexError, ValueError, OSError, subprocess.TimeoutExpired):
        return None
