"""Which GPUs are ours: CUDA's, Slurm's and the container's variables, MIG, and ``--gpus``, without a GPU."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.errors import BadInput
from bisect_env.trials.records import Device
from bisect_env.trials.visibility import Card, choose, label


def gpu(index: int, uuid: str, name: str = "NVIDIA H200") -> Device:
    return Device(uuid, name, index, 1 << 37, "580.159.04")


CARDS = tuple(Card(gpu(index, uuid)) for index, uuid in enumerate(("GPU-aa11", "GPU-aa22", "GPU-bb33", "GPU-cc44")))
MIG = (
    Card(gpu(0, "GPU-aa11"), (gpu(0, "MIG-1111-x"), gpu(0, "MIG-1222-y"))),
    Card(gpu(1, "GPU-bb22")),
    Card(gpu(2, "GPU-cc33"), ()),
)


def chosen(variables: dict[str, str], wanted: str | None = None, cards: tuple[Card, ...] = CARDS) -> list[str]:
    return [device.uuid for device in choose(cards, variables, wanted).devices]


ALL = ["GPU-aa11", "GPU-aa22", "GPU-bb33", "GPU-cc44"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", ALL[:1]),
        ("3,1", ["GPU-cc44", "GPU-aa22"]),
        (" 1 , 2 ", ALL[1:3]),
        ("", []),
        (" ", []),
        ("-1", []),
        ("1,-1,2", ["GPU-aa22"]),
        ("0,9,1", ["GPU-aa11"]),
        ("0,,1", ["GPU-aa11"]),
        ("0,0", []),
        ("0,1,0", []),
        ("1gpu,+2gpu", ALL[1:3]),
        ("NoDevFiles", []),
        ("GPU-bb33", ["GPU-bb33"]),
        ("GPU-b", ["GPU-bb33"]),
        ("GPU-aa", []),
        ("GPU-cc,GPU-aa2", ["GPU-cc44", "GPU-aa22"]),
        ("GPU-cc,GPU-zz,GPU-bb", ["GPU-cc44"]),
        ("GPU-bb,GPU-bb33", []),
        ("GPU-bb,1", ["GPU-bb33"]),
        ("1,GPU-bb", ["GPU-aa22"]),
        ("MIG-1111", []),
    ],
)
def test_cuda_visible_devices(text: str, expected: list[str]) -> None:
    assert chosen({"CUDA_VISIBLE_DEVICES": text}) == expected


def test_nothing_set_leaves_everything_and_needs_no_note() -> None:
    choice = choose(CARDS, {})
    assert [device.uuid for device in choice.devices] == ALL
    assert choice.notes == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, ["MIG-1111-x", "MIG-1222-y", "GPU-bb22"]),
        ("0", ["MIG-1111-x", "MIG-1222-y"]),
        ("1", ["GPU-bb22"]),
        ("2", []),
        ("MIG-1222", ["MIG-1222-y"]),
        ("MIG-1", []),
        ("GPU-aa11", ["MIG-1111-x", "MIG-1222-y"]),
    ],
)
def test_a_mig_card_gives_its_mig_devices(text: str | None, expected: list[str]) -> None:
    variables = {} if text is None else {"CUDA_VISIBLE_DEVICES": text}
    choice = choose(MIG, variables)
    assert [device.uuid for device in choice.devices] == expected
    assert any("GPU 2 has MIG on and no MIG device" in note for note in choice.notes)


def test_mig_devices_of_one_card_have_different_labels() -> None:
    first, second, whole = choose(MIG, {}).devices
    assert len({label(first), label(second), label(whole)}) == 3
    assert label(whole) == "1"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "1,2"}, ALL[1:3]),
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "1-3"}, ALL[1:]),
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0,1,2", "SLURM_STEP_GPUS": "2"}, ["GPU-bb33"]),
        # A user's own CUDA_VISIBLE_DEVICES does not widen the allocation.
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "1,2", "CUDA_VISIBLE_DEVICES": "0,1"}, ["GPU-aa22"]),
        # Confined by cgroup: four allocated GPUs of a larger node, counted from 0 here.
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "4,5,6,7", "CUDA_VISIBLE_DEVICES": "0,1,2,3"}, ALL),
        ({"SLURM_JOB_ID": "7"}, ALL),
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "odd"}, ALL),
        ({"SLURM_JOB_GPUS": "1"}, ALL),
        ({"NVIDIA_VISIBLE_DEVICES": "none"}, []),
        ({"NVIDIA_VISIBLE_DEVICES": "all"}, ALL),
        # The container toolkit's CDI mode sets this in containers that do have GPUs.
        ({"NVIDIA_VISIBLE_DEVICES": "void"}, ALL),
    ],
)
def test_slurm_and_containers(variables: dict[str, str], expected: list[str]) -> None:
    choice = choose(CARDS, variables)
    assert [device.uuid for device in choice.devices] == expected
    assert choice.notes or expected == ALL, "fewer GPUs than there are need an explanation"


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [("2", ["GPU-bb33"]), ("3,0", ["GPU-cc44", "GPU-aa11"]), ("GPU-bb", ["GPU-bb33"]), ("0,0", ["GPU-aa11"]), ("", [])],
)
def test_gpus_option(wanted: str, expected: list[str]) -> None:
    assert chosen({}, wanted) == expected


@pytest.mark.parametrize("wanted", ["4", "-1", "GPU-zz", "zero"])
def test_gpus_option_with_an_unknown_entry_is_refused_with_what_there_is(wanted: str) -> None:
    with pytest.raises(BadInput, match=r"--gpus: entry 2.*no GPU that this process may use\n.*GPU 0, GPU 1, GPU 2"):
        chosen({}, f"0,{wanted}")


def test_gpus_option_cannot_reach_beyond_what_is_visible() -> None:
    assert chosen({"CUDA_VISIBLE_DEVICES": "2,3"}, "3") == ["GPU-cc44"]
    with pytest.raises(BadInput, match="GPU 2, GPU 3"):
        chosen({"CUDA_VISIBLE_DEVICES": "2,3"}, "0")


def test_an_ambiguous_uuid_names_the_candidates() -> None:
    with pytest.raises(BadInput, match="GPU-aa11, GPU-aa22"):
        chosen({}, "GPU-aa")


def test_numbers_on_a_host_of_several_models_are_doubtful() -> None:
    mixed = (CARDS[0], Card(gpu(1, "GPU-dd55", "NVIDIA A2")))
    assert any("CUDA_DEVICE_ORDER" in note for note in choose(mixed, {"CUDA_VISIBLE_DEVICES": "1"}).notes)
    ordered = {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert not any("CUDA_DEVICE_ORDER" in note for note in choose(mixed, ordered).notes)


ENTRY = st.sampled_from(["0", "1", "2", "3", "7", "-1", "", "GPU-a", "GPU-aa11", "GPU-bb", "MIG-1", "x", " 1", "GPU-"])


@given(st.lists(ENTRY, max_size=6), st.lists(ENTRY, max_size=4), st.sampled_from([CARDS, MIG]))
def test_restrictions_only_ever_take_away(visible: list[str], slurm: list[str], cards: tuple[Card, ...]) -> None:
    everything = choose(cards, {}).devices
    variables = {"CUDA_VISIBLE_DEVICES": ",".join(visible)}
    alone = choose(cards, variables).devices
    both = choose(cards, {**variables, "SLURM_JOB_ID": "1", "SLURM_JOB_GPUS": ",".join(slurm)}).devices
    assert set(both) <= set(alone) <= set(everything)
    assert len(set(alone)) == len(alone)


@given(st.lists(st.integers(0, 3), unique=True))
def test_valid_numbers_are_kept_in_their_order(numbers: list[int]) -> None:
    assert chosen({"CUDA_VISIBLE_DEVICES": ",".join(map(str, numbers))}) == [ALL[number] for number in numbers]
