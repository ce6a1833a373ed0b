"""UMB archives: round trips, the bytes that the specification asks for, archives of others, hostile ones, and Storm."""

import gzip
import io
import json
import lzma
import struct
import subprocess
import sys
import tarfile
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tracebridge.chain import MarkovChain, RationalMatrix, RationalVector, RewardStructure
from tracebridge.errors import InputError, ModelError, UsageError
from tracebridge.export.names import identifier_of
from tracebridge.export.umb import umb_members, write_umb
from tracebridge.export.umb_archive import is_umb, read_archive, write_archive
from tracebridge.export.umb_reader import read_umb

DATA = Path(__file__).parent / "data"
STORM = Path(__file__).parent / "umb_storm_reference.py"
NUMBERS = ("data", "indices", "indptr")

law = settings(deadline=None, max_examples=50)


# ---------------------------------------------------------------- chains


def distribution(draw, n, largest):
    weights = draw(st.lists(st.integers(0, largest), min_size=n, max_size=n).filter(any))
    scale = draw(st.integers(1, 3))  # so that fractions are not in lowest terms
    return [weight * scale for weight in weights], sum(weights) * scale


@st.composite
def chains(draw):
    names = st.text(st.characters(exclude_categories=()), min_size=1, max_size=4)
    states = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    n = len(states)
    largest = draw(st.sampled_from([3, 10**6, 10**12, 2**80]))
    rows = [distribution(draw, n, largest) for _ in range(n)]
    exact = [{j: Fraction(top, bottom) for j, top in enumerate(tops) if top} for tops, bottom in rows]
    if draw(st.booleans()):
        indptr = np.cumsum([0, *map(len, exact)])
        indices = np.array([j for row in exact for j in row])
        tops = np.array([top for tops, _ in rows for top in tops if top], dtype=object)
        transitions = RationalMatrix(indptr, indices, tops, np.array([b for _, b in rows], dtype=object), n)
    else:
        transitions = np.array([[float(row.get(j, 0)) for j in range(n)] for row in exact])
    tops, bottom = distribution(draw, n, largest)
    if draw(st.booleans()):
        tops, bottom = [int(j == 0) for j in range(n)], 1
    initial = RationalVector(np.array(tops, dtype=object), bottom)
    if draw(st.booleans()):
        initial = initial.to_float()
    given_labels = draw(st.lists(names, max_size=3, unique=True))
    labels = {}
    for name in given_labels:
        if name not in states and name not in {"init", "deadlock"}:
            labels[name] = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    if draw(st.booleans()):
        labels[states[0]] = np.arange(n) == 0
    thirds = RationalVector(np.arange(n), 3)
    doubles = np.arange(n) / 7
    structures = [
        RewardStructure(state=doubles),
        RewardStructure(state=doubles, action=np.arange(n) / 3),
        RewardStructure.from_fractions([Fraction(i, 2**70) for i in range(n)], [Fraction(i, 6) for i in range(n)]),
        RewardStructure(state=thirds.to_float(), action=doubles, exact_state=thirds),
        RewardStructure(state=doubles, action=thirds.to_float(), exact_action=thirds),
    ]
    rewards = {name: draw(st.sampled_from(structures)) for name in draw(st.lists(names, max_size=3, unique=True))}
    words = {}
    if draw(st.booleans()):
        kinds = {
            "n": st.integers(-(2**63), 2**63 - 1),
            "b": st.booleans(),
            "x": st.floats(allow_nan=False, allow_infinity=False),
        }
        words["variables"] = {name: np.array([draw(kind) for _ in range(n)]) for name, kind in kinds.items()}
        words["constants"] = {"p": draw(st.fractions()), "on": draw(st.booleans())}
    return MarkovChain(states=states, transitions=transitions, initial=initial, labels=labels, rewards=rewards, **words)


def same_vector(a, b):
    assert (a is None) == (b is None)
    if a is not None:
        assert a.numerators.tolist() == b.numerators.tolist()
        assert a.denominator == b.denominator


def same_bits(a, b):
    assert a.states == b.states
    for part in NUMBERS:
        assert getattr(a.transitions, part).tobytes() == getattr(b.transitions, part).tobytes()
    assert (a.rationals is None) == (b.rationals is None)
    if a.rationals is not None:
        for part in ("indptr", "indices", "numerators", "denominators"):
            assert getattr(a.rationals, part).tolist() == getattr(b.rationals, part).tolist()
    assert a.initial.tobytes() == b.initial.tobytes()
    same_vector(a.initial_rationals, b.initial_rationals)
    assert [(k, v.tolist()) for k, v in a.labels.items()] == [(k, v.tolist()) for k, v in b.labels.items()]
    assert list(a.rewards) == list(b.rewards)
    for one, other in zip(a.rewards.values(), b.rewards.values(), strict=True):
        assert one.state.tobytes() == other.state.tobytes()
        assert (one.action is None) == (other.action is None)
        assert one.action is None or one.action.tobytes() == other.action.tobytes()
        same_vector(one.exact_state, other.exact_state)
        same_vector(one.exact_action, other.exact_action)
    assert list(a.variables) == list(b.variables)
    for one, other in zip(a.variables.values(), b.variables.values(), strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()
    assert list(a.constants.items()) == list(b.constants.items())
    assert list(map(type, a.constants.values())) == list(map(type, b.constants.values()))


def packed(members, compression=None):
    file = io.BytesIO()
    write_archive(file, members.items(), compression)
    return file.getvalue()


def read_bytes(data, **options):
    return read_umb(io.BytesIO(data), path="m.umb", **options)


def small_chain(**changed):
    parts = {
        "states": ("ask", "tool-call", "done"),
        "transitions": RationalMatrix.from_rows([{1: Fraction(1, 3), 2: Fraction(2, 3)}, {0: 1}, {2: 1}]),
        "initial": RationalVector(np.array([1, 0, 0]), 1),
        "labels": {"success": np.array([False, False, True])},
        "rewards": {"cost": RewardStructure(state=np.array([1.0, 0.5, 0.0]), action=np.array([0.25, 2.0, 0.0]))},
    }
    return MarkovChain(**parts | changed)


# ---------------------------------------------------------------- round trips


@law
@given(chains(), st.sampled_from([None, "gzip", "xz"]))
def test_the_very_chain_comes_back(chain, compression):
    data = packed(umb_members(chain), compression)
    assert data == packed(umb_members(chain), compression)
    assert is_umb(data[:4096])
    same_bits(read_bytes(data), chain)


def test_a_chain_of_many_states_comes_back(tmp_path):
    n = 50_000
    rng = np.random.default_rng(0)
    matrix = np.zeros((n, 2))
    matrix[:, 0] = rng.random(n)
    matrix[:, 1] = 1 - matrix[:, 0]
    targets = np.column_stack([np.arange(n), (np.arange(n) + 1) % n])
    order = np.argsort(targets, axis=1)
    P = csr_array(
        (
            np.take_along_axis(matrix, order, 1).ravel(),
            np.take_along_axis(targets, order, 1).ravel(),
            2 * np.arange(n + 1),
        ),
        shape=(n, n),
    )
    chain = MarkovChain(
        states=tuple(f"ü{i}" for i in range(n)),
        transitions=P,
        initial=np.full(n, 1 / n),
        labels={"a": rng.random(n) < 0.5},
    )
    write_umb(chain, tmp_path / "m.umb")
    same_bits(read_umb(tmp_path / "m.umb"), chain)
    assert not any("aps/state-" in name for name in umb_members(chain))


def test_files_appear_whole_or_not_at_all(tmp_path):
    write_umb(small_chain(), tmp_path / "m.umb", compression="gzip")
    assert [path.name for path in tmp_path.iterdir()] == ["m.umb"]
    with pytest.raises(InputError, match="cannot be written"):
        write_umb(small_chain(), tmp_path / "no" / "m.umb")


def test_what_cannot_be_read_back_is_not_written(monkeypatch):
    monkeypatch.setattr("tracebridge.export.umb.MAX_STATES", 3)
    with pytest.raises(UsageError, match="3 states are more than"):
        umb_members(small_chain())


# ---------------------------------------------------------------- the bytes of the specification


def test_the_arrays_are_those_of_the_specification(tmp_path):
    write_umb(small_chain(), tmp_path / "m.umb")
    with tarfile.open(tmp_path / "m.umb") as archive:
        members = {held.name: archive.extractfile(held).read() for held in archive}
    assert next(iter(members)) == "index.json"
    index = json.loads(members["index.json"])
    assert index["transition-system"] == {
        "time": "discrete",
        "#players": 0,
        "#states": 3,
        "#initial-states": 1,
        "#choices": 3,
        "#choice-actions": 0,
        "#branches": 4,
        "#branch-actions": 0,
        "#observations": 0,
        "branch-probability-type": {"type": "rational", "size": 128},
    }
    assert members["state-is-initial.bin"] == struct.pack("<Q", 0b001)
    assert members["choice-to-branches.bin"] == struct.pack("<4Q", 0, 2, 3, 4)
    assert members["branch-to-target.bin"] == struct.pack("<4Q", 1, 2, 0, 2)
    assert members["branch-to-probability.bin"] == struct.pack("<qQqQqQqQ", 1, 3, 2, 3, 1, 1, 1, 1)
    aps = {held["alias"]: name for name, held in index["annotations"]["aps"].items()}
    assert members[f"annotations/aps/{aps['success']}/states/values.bin"] == struct.pack("<Q", 0b100)
    assert members[f"annotations/aps/{aps['tool_x2d_call']}/states/values.bin"] == struct.pack("<Q", 0b010)
    reward = index["annotations"]["rewards"]["reward-0"]
    assert reward == {"applies-to": ["states", "branches"], "type": {"type": "double", "size": 64}, "alias": "cost"}
    folder = "annotations/rewards/reward-0"
    assert members[f"{folder}/states/values.bin"] == struct.pack("<3d", 1, 0.5, 0)
    assert members[f"{folder}/branches/values.bin"] == struct.pack("<4d", 0.25, 0.25, 2, 0)


def test_a_spread_start_becomes_an_added_state():
    members = umb_members(small_chain(initial=RationalVector(np.array([1, 0, 2]), 3)))
    index = json.loads(members["index.json"])
    assert index["transition-system"]["#states"] == 4
    assert members["state-is-initial.bin"] == struct.pack("<Q", 0b1000)
    assert members["branch-to-target.bin"] == struct.pack("<6Q", 1, 2, 0, 2, 0, 2)
    assert members["branch-to-probability.bin"][-32:] == struct.pack("<qQqQ", 1, 3, 2, 3)
    aliases = {held["alias"] for held in index["annotations"]["aps"].values()}
    assert {"start", "initial"} <= aliases


def test_numbers_wider_than_64_bits_take_more_words():
    chain = MarkovChain(
        states=("a", "b"),
        transitions=RationalMatrix.from_rows([{0: Fraction(1, 2**64), 1: 1 - Fraction(1, 2**64)}, {1: 1}]),
        initial=RationalVector(np.array([1, 0]), 1),
    )
    members = umb_members(chain)
    assert json.loads(members["index.json"])["transition-system"]["branch-probability-type"]["size"] == 256
    half = [number.to_bytes(16, "little") for number in (1, 2**64, 2**64 - 1, 2**64, 1, 1)]
    assert members["branch-to-probability.bin"] == b"".join(half)


# ---------------------------------------------------------------- archives of others


def index_of(n, m, *, kind="double", size=64, **more):
    return {
        "format-version": 1,
        "format-revision": 7,
        "transition-system": {
            "time": "discrete",
            "#players": 0,
            "#states": n,
            "#initial-states": 1,
            "#choices": n,
            "#choice-actions": 0,
            "#branches": m,
            "#branch-actions": 0,
            "#observations": 0,
            "branch-probability-type": {"type": kind, "size": size},
        },
        **more,
    }


def foreign(index=None, **replaced):
    """The archive of another tool: 0 -> 1/4 1 + 3/4 2, the others absorb."""
    members = {
        "index.json": json.dumps(index or index_of(3, 4)).encode(),
        "state-is-initial.bin": struct.pack("<Q", 1),
        "choice-to-branches.bin": struct.pack("<4Q", 0, 2, 3, 4),
        "branch-to-target.bin": struct.pack("<4Q", 1, 2, 1, 2),
        "branch-to-probability.bin": struct.pack("<4d", 0.25, 0.75, 1, 1),
    }
    members |= replaced.pop("members", {})
    return {name: data for name, data in members.items() if data is not None}


def with_annotations(group, held, kind="double", applies=("states",), **more):
    return index_of(3, 4, annotations={group: {held: {"applies-to": list(applies), "type": {"type": kind}, **more}}})


def test_what_storm_wrote():
    chain = read_umb(DATA / "dtmc_by_storm.umb")
    assert chain.states[:5] == ("b=true,s=0", "b=true,s=1", "b=true,s=-1", "b=false,s=0", "b=true,s=3")
    assert chain.transitions.toarray()[0, 1:3].tolist() == [1 / 3, 2 / 3]
    assert chain.variables["s"].tolist() == [0, 1, -1, 0, 3, 1, -1, 3]
    assert chain.variables["b"].tolist() == [True, True, True, False, True, False, False, False]
    assert [chain.states[i] for i in np.flatnonzero(chain.labels["done"])] == ["b=true,s=3", "b=false,s=3"]
    assert list(chain.labels) == ["done", "other"]
    assert chain.rewards["cost"].state.tolist() == [1.5, 0, 0, 1.5, 0, 0, 0, 0]
    assert chain.rewards["cost"].action.tolist() == [0, 2, 0, 0, 0, 2, 0, 0]
    assert chain.initial.tolist() == [1, 0, 0, 0, 0, 0, 0, 0]


def test_what_umbi_wrote():
    """It read an archive of ours with an added first state, dropped all labels but the last, and wrote it again."""
    chain = read_umb(DATA / "dtmc_by_umbi.umb")
    assert chain.states == ("x=1,b=true", "x=2,b=false", "x=3,b=true", "x=0,b=false")
    assert chain.rationals.row(0) == {1: Fraction(1, 3), 2: Fraction(2, 3)}
    assert chain.rationals.row(3) == {0: Fraction(1, 3), 2: Fraction(2, 3)}
    assert chain.exact_initial() == [0, 0, 0, 1]
    assert chain.labels["start"].tolist() == [False, False, False, True]
    assert chain.rewards["cost"].action.tolist() == [0.25, 2, 0, 0]


def test_unordered_and_repeated_branches_are_added():
    members = {
        "choice-to-branches.bin": struct.pack("<4Q", 0, 4, 5, 6),
        "branch-to-target.bin": struct.pack("<6Q", 2, 1, 2, 0, 1, 2),
    }
    doubles = members | {"branch-to-probability.bin": struct.pack("<6d", 0.5, 0.25, 0.25, 0, 1, 1)}
    chain = read_bytes(packed(foreign(index_of(3, 6), members=doubles)))
    assert chain.transitions.toarray()[0].tolist() == [0, 0.25, 0.75]
    thirds = struct.pack("<12q", 1, 2, 1, 3, 1, 6, 0, 5, 1, 1, 7, 7)
    exact = members | {"branch-to-probability.bin": thirds}
    chain = read_bytes(packed(foreign(index_of(3, 6, kind="rational", size=128), members=exact)))
    assert chain.rationals.row(0) == {1: Fraction(1, 3), 2: Fraction(2, 3)}
    assert chain.is_exact


def test_absent_members_have_their_defaults():
    members = {"branch-to-target.bin": None, "choice-to-branches.bin": None}
    members["branch-to-probability.bin"] = struct.pack("<3d", 1, 1, 1)
    chain = read_bytes(packed(foreign(index_of(3, 3), members=members)))
    assert chain.transitions.toarray()[:, 0].tolist() == [1, 1, 1]
    assert chain.states == ("state0", "state1", "state2")


def test_labels_that_every_chain_has():
    aps = {
        name: {"alias": name, "applies-to": ["states"], "type": {"type": "bool"}}
        for name in ("init", "deadlock", "state1")
    }
    bits = {"init": 1, "deadlock": 0b110, "state1": 1}
    members = {f"annotations/aps/{name}/states/values.bin": struct.pack("<Q", held) for name, held in bits.items()}
    chain = read_bytes(packed(foreign(index_of(3, 4, annotations={"aps": aps}), members=members)))
    assert {name: mask.tolist() for name, mask in chain.labels.items()} == {
        "mended_deadlock": [False, True, True],
        "state1": [True, False, False],
    }
    assert chain.states == ("_state0", "_state1", "_state2")


def test_bit_fields_of_variables():
    variables = [
        {"name": "a", "type": {"type": "uint", "size": 8}, "offset": -128},
        {"name": "b", "type": {"type": "int", "size": 16}},
        {"name": "c", "type": {"type": "bool", "size": 3}},
        {"padding": 2},
        {"name": "d", "type": {"type": "int", "size": 59}},
        {"name": "e", "type": {"type": "double"}},
        {"name": "f", "type": {"type": "uint", "size": 0}},
    ]
    wanted = [(56, -16897, True, -1, -0.0), (-128, 32767, False, 2**58 - 1, 1e300), (0, 0, True, -(2**58), 0.1)]
    data = b""
    for a, b, c, d, e in wanted:
        number = (a + 128) | (b % 2**16) << 8 | (4 * c) << 24 | 0b11 << 27 | (d % 2**59) << 29
        data += (number | struct.unpack("<Q", struct.pack("<d", e))[0] << 88).to_bytes(19, "little")
    index = index_of(3, 4, valuations={"states": {"unique": True, "classes": [{"variables": variables}]}})
    chain = read_bytes(packed(foreign(index, members={"valuations/states/valuations.bin": data})))
    assert data.startswith(bytes([0b10111000, 0b11111111, 0b10111101]))  # the specification's second example
    assert list(zip(*(chain.variables[name].tolist() for name in "abcde"), strict=True)) == wanted
    assert chain.variables["f"].tolist() == [0, 0, 0]
    assert chain.states[0] == "a=56,b=-16897,c=true,d=-1,e=-0.0,f=0"


def test_rewards_of_choices_and_of_branches():
    index = with_annotations("rewards", "r0", applies=["choices"], alias="cost")
    members = {"annotations/rewards/r0/choices/values.bin": struct.pack("<3d", 1, 2, 3)}
    reward = read_bytes(packed(foreign(index, members=members))).rewards["cost"]
    assert (reward.state.tolist(), reward.action.tolist()) == ([0, 0, 0], [1, 2, 3])
    index = with_annotations("rewards", "r0", kind="rational", applies=["branches"])
    members = {"annotations/rewards/r0/branches/values.bin": struct.pack("<8q", 1, 2, 2, 4, 1, 3, 0, 1)}
    reward = read_bytes(packed(foreign(index, members=members))).rewards["r0"]
    assert reward.fractions(action=True) == [Fraction(1, 2), Fraction(1, 3), 0]


def test_other_ways_to_write_a_tar_archive():
    members = foreign()
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=form) as archive:
            for name, data in members.items():
                held = tarfile.TarInfo(f"./{name}")
                held.size, held.mtime = len(data), 1.5  # a fraction of a second needs an extended header
                archive.addfile(held, io.BytesIO(data))
            folder = tarfile.TarInfo("annotations/")
            folder.type = tarfile.DIRTYPE
            archive.addfile(folder)
            far = tarfile.TarInfo("annotations/" + "x" * 90 + "/" + "y" * 120 + "/values.bin")
            if form != tarfile.USTAR_FORMAT:
                archive.addfile(far)
        assert read_bytes(file.getvalue()).n_states == 3
        names = read_archive(io.BytesIO(file.getvalue()))
        assert (far.name in names) == (form != tarfile.USTAR_FORMAT)


# ---------------------------------------------------------------- hostile archives


def tar_with(change):
    """An archive of which the header of the second member was changed."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for k, (held_name, held_data) in enumerate(foreign().items()):
            held = tarfile.TarInfo(held_name)
            held.size = len(held_data)
            if k == 1:
                change(held)
            archive.addfile(held, io.BytesIO(held_data))
    return file.getvalue()


@pytest.mark.parametrize("name", ["/etc/passwd", "../up.bin", "a/../../b", "a//b", "a/./b", "a b", "nüll", "a/", "."])
def test_names_that_lead_out_of_the_archive(name):
    with pytest.raises(ModelError, match="no name for a member") as caught:
        read_bytes(tar_with(lambda held: setattr(held, "name", name)))
    assert caught.value.problems[0].location.path == "m.umb"


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_members_that_are_no_files(kind):
    with pytest.raises(ModelError, match="link or a device"):
        read_bytes(tar_with(lambda held: setattr(held, "type", kind)))


def test_a_member_twice():
    file = io.BytesIO()
    write_archive(file, [*foreign().items(), ("branch-to-target.bin", b"")])
    with pytest.raises(ModelError, match=r"branch-to-target\.bin: this member stands in the archive twice"):
        read_bytes(file.getvalue())


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bytes])
def test_a_bomb_is_refused_before_it_is_decompressed(pack):
    held = tarfile.TarInfo("big.bin")
    held.size = 2**32
    folders = tarfile.TarInfo("a/")
    folders.type = tarfile.DIRTYPE
    with pytest.raises(ModelError, match="larger than 5120"):
        read_bytes(pack(folders.tobuf(tarfile.USTAR_FORMAT) * 20), max_bytes=5120)
    bomb = pack(held.tobuf(tarfile.USTAR_FORMAT) + bytes(2**20))
    with pytest.raises(
        ModelError, match=f"big.bin: this member of {2**32} bytes makes the archive larger than {2**30}"
    ):
        read_bytes(bomb)
    with pytest.raises(ModelError, match="larger than 2000"):
        read_bytes(packed(foreign()), max_bytes=2000)


def test_an_extended_header_may_not_set_sizes_or_be_large():
    for records, message in ((b"12 size=999\n", "'size'"), (b"99 path=a\n", "damaged"), (b"x" * 2**17, "larger than")):
        held = tarfile.TarInfo("pax")
        held.type, held.size = tarfile.XHDTYPE, len(records)
        data = held.tobuf(tarfile.USTAR_FORMAT) + records.ljust(-(-len(records) // 512) * 512, b"\0")
        with pytest.raises(ModelError, match=message):
            read_bytes(data + packed(foreign()))


def test_no_archive_at_all(tmp_path):
    for data in (
        b"",
        b"dtmc\n" * 300,
        b"\x1f\x8b\x08junk",
        b"\xfd7zXZ\0junk",
        gzip.compress(b"x" * 9000),
        b"\0" * 1024,
    ):
        assert not is_umb(data)
        with pytest.raises(ModelError):
            read_bytes(data)
    with pytest.raises(ModelError, match="no such file"):
        read_umb(tmp_path / "none.umb")
    with pytest.raises(ModelError, match="cannot be read"):
        read_umb(tmp_path)


def edited(**changed):
    index = index_of(3, 4)
    index["transition-system"] |= changed
    return index


AP = "annotations/aps/a/states/values.bin"
REWARD = "annotations/rewards/r/states/values.bin"
BRANCH_REWARD = "annotations/rewards/r/branches/values.bin"
VALUATION = "valuations/states/valuations.bin"


def declared(*variables, classes=1):
    held = [{"variables": list(variables)}] * classes
    return index_of(3, 4, valuations={"states": {"unique": False, "classes": held}})


@pytest.mark.parametrize(
    ("index", "members", "message"),
    [
        (None, {"index.json": None}, "has no index.json"),
        (None, {"index.json": b"{"}, "index.json: not JSON"),
        (None, {"index.json": b"[]"}, "index.json: format-version is None"),
        (None, {"index.json": b"\xff"}, "index.json: not UTF-8"),
        (None, {"index.json": b'{"a":1,"a":2}'}, "given twice"),
        (None, {"index.json": b"[" * 10**5}, "nested too deeply"),
        ({"format-version": 2}, {}, "format-version is 2; 0 and 1 are known"),
        ({"format-version": 1}, {}, "format-revision"),
        (edited(**{"#players": 2}), {}, "#players 2"),
        (edited(time="stochastic"), {}, "'stochastic'"),
        (edited(**{"#observations": 2}), {}, "#observations is 2"),
        (edited(**{"#states": 0}), {}, "#states is 0"),
        (edited(**{"#states": 2**62, "#choices": 2**62}), {}, "#states is"),
        (edited(**{"#states": -1}), {}, "#states is -1"),
        (edited(**{"#states": 3.5}), {}, "Expected `int`"),
        (edited(**{"#choices": 4}), {}, "#choices is 4"),
        (edited(**{"#branches": 2}), {}, "#branches is 2"),
        (edited(**{"#branches": 5}), {}, "branch-to-probability.bin: has 32 bytes where the index asks for 40"),
        (edited(**{"branch-probability-type": None}), {}, "no probabilities"),
        (edited(**{"branch-probability-type": {"type": "double-interval"}}), {}, "double-interval"),
        (edited(**{"branch-probability-type": {"type": "rational", "size": 64}}), {}, "with 64 bits"),
        (edited(**{"branch-probability-type": {"type": "rational"}}), {}, "32 bytes where the index asks for 64"),
        (edited(**{"#initial-states": 2}), {}, "1 states are initial where the index says 2"),
        (edited(**{"#initial-states": 2}), {"state-is-initial.bin": struct.pack("<Q", 3)}, "2 states are initial"),
        (edited(**{"#initial-states": 0}), {"state-is-initial.bin": None}, "0 states are initial"),
        (None, {"state-is-initial.bin": struct.pack("<Q", 9)}, "bit 3 is set"),
        (None, {"state-is-initial.bin": b"\1"}, "has 1 bytes where the index asks for 8"),
        (None, {"branch-to-probability.bin": None}, "lacks the probabilities"),
        (None, {"branch-to-probability.bin": struct.pack("<4d", 0.25, 0.65, 1, 1)}, "'state0': its row sums to 0.9"),
        (None, {"branch-to-probability.bin": struct.pack("<4d", -0.5, 1.5, 1, 1)}, "'state0': the probability .* -0.5"),
        (None, {"branch-to-probability.bin": struct.pack("<4d", float("nan"), 1, 1, 1)}, "'state0': .*nan"),
        (None, {"branch-to-target.bin": struct.pack("<4Q", 1, 2, 3, 2)}, "entry 2 is 3, but the largest index is 2"),
        (None, {"branch-to-target.bin": struct.pack("<4Q", 1, 2**64 - 1, 1, 2)}, "branch-to-target.bin: entry 1 is 18"),
        (None, {"choice-to-branches.bin": struct.pack("<4Q", 1, 2, 3, 4)}, "entry 0 is 1"),
        (None, {"choice-to-branches.bin": struct.pack("<4Q", 0, 3, 2, 4)}, "entry 2 is 2, below entry 1"),
        (None, {"choice-to-branches.bin": struct.pack("<4Q", 0, 2, 3, 5)}, "the last entry is 5"),
        (None, {"choice-to-branches.bin": struct.pack("<4Q", 0, 2, 2, 4)}, "state 1 leads nowhere"),
        (None, {"choice-to-branches.bin": None}, "choice-to-branches.bin: is absent"),
        (None, {"state-to-choices.bin": struct.pack("<4Q", 0, 2, 2, 3)}, "state-to-choices.bin: state 1 leads nowhere"),
        (with_annotations("aps", "a", "uint"), {}, "type bool, not uint"),
        (with_annotations("aps", "a", "bool", ("branches",)), {}, "applies to"),
        (with_annotations("aps", "a", "bool"), {AP: b""}, "has 0 bytes"),
        (with_annotations("aps", "a", "bool", alias="init"), {AP: struct.pack("<Q", 2)}, "'init' holds in other"),
        (with_annotations("aps", "a", "bool", alias=""), {AP: struct.pack("<Q", 2)}, "'' cannot be given as a label"),
        (with_annotations("rewards", "r", "int"), {}, "type 'int'"),
        (with_annotations("rewards", "r"), {REWARD: struct.pack("<3d", 0, -1, 0)}, "'state1': its reward 'r' is -1"),
        (with_annotations("rewards", "r", "rational"), {REWARD: struct.pack("<6q", 0, 1, 1, 0, 0, 1)}, "denominator 0"),
        (
            with_annotations("rewards", "r", applies=["branches"]),
            {BRANCH_REWARD: struct.pack("<4d", 1, 2, 0, 0)},
            "the branches of choice 0 have different rewards",
        ),
        (with_annotations("rewards", "r", applies=["choices", "branches"]), {}, "at once"),
        (with_annotations("rewards", "r", **{"probability-type": {"type": "double"}}), {}, "distributions"),
        (declared({"name": "x", "type": {"type": "uint", "size": 4}}), {}, "4 bits, which is no whole number of bytes"),
        (declared({"name": "x", "type": {"type": "uint"}}), {}, "is absent, but the index declares variables"),
        (declared({"name": "x", "type": {"type": "string"}}), {VALUATION: bytes(24)}, "'string'"),
        (declared({"name": "x", "type": {"type": "uint"}}), {VALUATION: b"\xff" * 24}, "beyond 63 bits"),
        (
            declared({"name": "x", "type": {"type": "int"}, "offset": 2**62}),
            {VALUATION: b"\x7f" * 24},
            "beyond 64 bits",
        ),
        (
            declared({"name": "x y", "type": {"type": "int"}}),
            {VALUATION: bytes(24)},
            "cannot be the name of a variable",
        ),
        (declared({"padding": 8}, classes=2), {}, "2 classes"),
        (declared(*[{"name": "x", "type": {"type": "int"}}] * 2), {VALUATION: bytes(48)}, "or two are"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(index, members, message):
    with pytest.raises(ModelError, match=message) as caught:
        read_bytes(packed(foreign(index, members=members)))
    assert all(problem.location.path == "m.umb" for problem in caught.value.problems)


def test_rationals_beyond_what_python_prints_or_rounds():
    def pair(top, bottom, half):
        return top.to_bytes(half, "little") + bottom.to_bytes(half, "little")

    one = pair(1, 1, 2000)
    huge, many_digits = pair(2**9000, 1, 2000), pair(2**15989, 2**15990 - 1, 2000)
    index = index_of(3, 4, kind="rational", size=32_000)
    for first in (huge, many_digits):
        members = {"branch-to-probability.bin": first + one + one + one}
        with pytest.raises(ModelError, match="a rational number of the archive has too many digits"):
            read_bytes(packed(foreign(index, members=members)))
    with pytest.raises(UsageError, match="constant 'p' has more than 14000 bits"):
        umb_members(small_chain(constants={"p": Fraction(2**15000)}))


def test_a_short_archive_cannot_ask_for_all_memory():
    aps = {f"a{i}": {"applies-to": ["states"], "type": {"type": "bool"}} for i in range(10_000)}
    index = index_of(10**6, 10**6, annotations={"aps": aps})
    members = {"branch-to-probability.bin": b""}
    with pytest.raises(ModelError, match="need more memory"):
        read_bytes(packed(foreign(index, members=members)))


def test_damaged_archives_are_refused_or_read_but_never_crash():
    chain = small_chain(initial=RationalVector(np.array([1, 0, 2]), 3), variables={"x": np.array([1, 2, 3])})
    whole = packed(umb_members(chain))
    packed_whole = packed(umb_members(chain), "gzip")
    for data in (whole, packed_whole):
        for end in range(0, len(data) - 1024, 97):
            with pytest.raises(ModelError):
                read_bytes(data[:end])
    random = Random(0)
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(random.randint(1, 3)):
            data[random.randrange(len(data))] = random.randrange(256)
        with suppress(ModelError):
            read_bytes(bytes(data))


@pytest.mark.parametrize(
    ("member", "data", "message"),
    [
        ("annotations/aps/state-1/states/values.bin", struct.pack("<Q", 1), "the label of state 1 holds elsewhere"),
        ("tracebridge/state-names/strings.bin", b"asktool-call\xff\xfe\xfd\xfc", "string 2 is not UTF-8"),
        ("tracebridge/state-names/strings.bin", b"short", "the last range ends at 5"),
        ("branch-to-target.bin", struct.pack("<6Q", 1, 3, 0, 2, 0, 2), "to which nothing leads"),
        ("branch-to-target.bin", struct.pack("<6Q", 1, 2, 0, 2, 0, 1), "not that of the first state"),
        ("state-is-initial.bin", struct.pack("<Q", 1), "does not start in it"),
    ],
)
def test_edited_archives_of_ours_are_refused(member, data, message):
    members = umb_members(small_chain(initial=RationalVector(np.array([1, 0, 2]), 3)))
    assert member in members
    with pytest.raises(ModelError, match=message):
        read_bytes(packed(members | {member: data}))


def test_an_archive_of_a_later_layout_is_refused():
    members = umb_members(small_chain())
    members["index.json"] = members["index.json"].replace(b'"layout": 1', b'"layout": 2')
    with pytest.raises(ModelError, match="layout 2 of tracebridge is unknown"):
        read_bytes(packed(members))


# ---------------------------------------------------------------- Storm


def ask_storm(requests):
    done = subprocess.run(
        [sys.executable, str(STORM)],
        input=json.dumps(requests),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout[done.stdout.index("[") :])


@pytest.mark.storm
def test_storm_reads_what_is_written(tmp_path):
    awkward = {"min", "1st", "tool call", "ü"}
    exact = small_chain(labels={name: np.array([False, True, True]) for name in awkward})
    spread = small_chain(
        initial=RationalVector(np.array([1, 2, 0]), 3),
        variables={"x": np.array([-5, 2**40, 7]), "b": np.array([True, False, True])},
        constants={"p": Fraction(1, 3)},
    )
    floats = small_chain(transitions=exact.transitions, initial=exact.initial)
    formulas = ['P=? [F<=2 "success"]', 'P=? [F "done"]', 'R{"cost"}=? [F "done"]', 'R{"cost"}=? [C<=3]']
    requests = []
    for name, chain in {"exact": exact, "spread": spread, "floats": floats}.items():
        write_umb(chain, tmp_path / f"{name}.umb", compression="gzip" if name == "exact" else None)
        known = [text for text in formulas if chain is not exact or "success" not in text]
        requests.append({"path": str(tmp_path / f"{name}.umb"), "formulas": known})
    requests[2]["export"] = str(tmp_path / "again.umb")
    found, first, double = ask_storm(requests)
    assert found["rows"] == [[[1, "1/3"], [2, "2/3"]], [[0, "1"]], [[2, "1"]]]
    assert found["labels"] == {
        "init": [0],
        "ask": [0],
        "done": [2],
        "tool_x2d_call": [1],
        **{identifier_of(name): [1, 2] for name in awkward},
    }
    # By hand: in 0 one earns 1 + 1/4, in 1 it is 1/2 + 2; from 0 the loop over 1 comes back with 1/3.
    to_the_end = (Fraction(5, 4) + Fraction(1, 3) * Fraction(5, 2)) / (1 - Fraction(1, 3))
    three_steps = Fraction(5, 4) + Fraction(1, 3) * (Fraction(5, 2) + Fraction(5, 4))
    assert [Fraction(value) for value in found["values"]] == [1, to_the_end, three_steps]
    assert first["start"] == 3
    assert first["rows"][3] == [[0, "1/3"], [1, "2/3"]]
    assert first["labels"]["initial"] == [0, 1]
    assert first["valuations"][:3] == [{"b": True, "x": -5}, {"b": False, "x": 2**40}, {"b": True, "x": 7}]
    within = Fraction(1, 3) * Fraction(2, 3)  # two steps from the added state are one of the chain
    spread_cost = Fraction(1, 3) * to_the_end + Fraction(2, 3) * (Fraction(5, 2) + to_the_end)
    assert [Fraction(value) for value in first["values"][:3]] == [within, 1, spread_cost]
    expected = [2 / 3, 1, float(to_the_end), float(three_steps)]
    assert [float(value) for value in double["values"]] == pytest.approx(expected, rel=1e-12)
    again = read_umb(tmp_path / "again.umb")
    assert again.states == ("state0", "state1", "state2")
    assert again.transitions.data.tobytes() == floats.transitions.data.tobytes()
    assert again.label("success").tolist() == [False, False, True]
