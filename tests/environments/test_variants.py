"""CUDA variants: read from pins, found among builds, asked for in lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.environments import requirements
from bisect_env.environments.variants import builds, cuda_of, label_of, labelled, torch_pin


@pytest.mark.parametrize(
    ("pins", "cuda"),
    [
        ([("numpy", "2.0")], None),
        ([("nvidia-cuda-runtime", "13.0.96")], None),
        ([("torch", "2.11.0")], "cpu"),
        ([("torch", "2.10.0"), ("nvidia-cuda-runtime-cu12", "12.8.90")], "cu128"),
        ([("torch", "2.11.0"), ("nvidia-cuda-runtime", "13.0.96"), ("cuda-bindings", "13.2.1")], "cu130"),
        ([("Torch", "2.15.0"), ("NVIDIA_cuda-runtime", "13.2.14")], "cu132"),
        ([("torch", "2.11.0+cu128")], "cu128"),
        ([("torch", "2.11.0+cpu"), ("nvidia-cuda-runtime", "13.0.96")], "cpu"),
        ([("torch", "2.11.0+rocm6.4")], "rocm6.4"),
        ([("torch", "2.11.0+ours.3"), ("nvidia-cuda-runtime", "13.0.96")], "cu130"),
        ([("torch", "2.12.0a0+git1234567")], "cpu"),
    ],
)
def test_the_variant_of_a_lock(pins: list[tuple[str, str]], cuda: str | None) -> None:
    assert cuda_of(pins) == cuda


def test_builds_of_a_version() -> None:
    offered = ["2.11.0+cu130", "2.11.0", "2.11.0+cu128", "2.11.0", "2.11.1+cu128", "2.11.0rc1+cu128", "no version"]
    assert builds(offered, "2.11.0+cu128") == ("2.11.0", "2.11.0+cu128", "2.11.0+cu130")
    assert builds(offered, "2.11.2") == ()


def test_labels_go_where_the_index_has_them() -> None:
    lines = [
        "torch==2.11.0",
        "torchvision[x]==0.26.0 ; python_version > '3'",
        "torchaudio>=2",
        "numpy==2.0",
        "triton==3.6.0",
    ]
    offered = {
        "torch": ["2.11.0", "2.11.0+cu128", "2.11.0+cu130"],
        "torchvision": ["0.26.0+cu128"],
        "torchaudio": ["2.11.0+cu128"],
    }
    assert labelled(requirements.parse(lines), "cu128", offered) == [
        "torch==2.11.0+cu128",
        'torchvision[x]==0.26.0+cu128; python_version > "3"',
        "torchaudio>=2",
        "numpy==2.0",
        "triton==3.6.0",
    ]
    assert labelled(requirements.parse(["torch==2.11.0"]), "cu126", offered) == ["torch==2.11.0"]
    assert labelled(requirements.parse(["torch==2.11.0+cu130"]), "cu128", offered) == ["torch==2.11.0+cu130"]


@given(st.sampled_from(["2.11.0", "2.11", "2.10.1"]), st.sampled_from(["cu128", "cu130", "cpu"]))
def test_what_was_asked_for_reads_back(version: str, variant: str) -> None:
    (line,) = labelled(requirements.parse([f"torch=={version}"]), variant, {"torch": [f"{version}+{variant}"]})
    pin = torch_pin(requirements.parse([line]))
    assert pin is not None and label_of(pin) == variant and cuda_of([("torch", pin)]) == variant


def test_versions_that_are_none_have_no_label() -> None:
    assert label_of("nonsense") is None and label_of("1.0") is None
    assert torch_pin(requirements.parse(["torch>=2", "numpy==1"])) is None
