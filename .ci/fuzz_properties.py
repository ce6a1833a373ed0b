"""Coverage-guided fuzzing of the property language: whatever text comes in, an answer or a clear refusal comes out.

For text that parses: what is printed parses to the same tree, formatting is idempotent, and lint, explanations, the
forms for other tools and the resolution of constants end in an answer or an error of the project's own.

    python .ci/fuzz_properties.py -max_total_time=60 [CORPUS_FOLDER]
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["tracebridge"]):
    from tracebridge.errors import TracebridgeError
    from tracebridge.pctl import explain, format_properties, lint, parse_properties, resolve_constants
    from tracebridge.pctl.folding import fold_steps
    from tracebridge.pctl.printer import format_formula

ROOT = Path(__file__).resolve().parent.parent
WORDS = Path(__file__).with_name("property_words.dict")
SEEDS = [
    'P=? [ F<=3 "a" ]',
    '"n": P>=0.5 [ !"a" U[2,5] "b" ]; "m": "n" & true',
    'const int k=2; label "l" = "a" | !"b"; //@ requirement R\nR{"steps"}<=k*2 [ C<=k ]',
    'filter(max, P=? [ G ("a" => (X F "b")) ], "init")',
    'P=? [ F "a" || G<=3 "b" ] / S=? [ "c" ]',
    'quantile(min k, P>=0.9 [ F{"cost"}<=k "done" ])',
    'P=? [ F^{rew{"a"}<=5,steps<=4} "b" ]',
    'E [ G "a" ] | A [ "a" W "b" ]',
    'multi(Pmax=? [ F "a" ], R{"r"}min>=3 [ C ])',
    'T=? [ F "a" ] + R{1}=? [ C<=5 discount=0.9 ] - log(2,3) + (true ? 1 : 0)',
    'P=? [ F "a" {"b"}{min} ]',
    'P=? [ HOA: {"x.hoa", "p" -> "a"} ]',
    "<<p1>> P>=0.5 [ F true ]",
]


def test_one_input(data: bytes) -> None:
    """One text; any exception but a `TracebridgeError` is a finding."""
    text = data.decode("utf-8", "replace")
    try:
        file = parse_properties(text)
    except TracebridgeError:
        return
    formatted = format_properties(file)
    again = parse_properties(formatted)
    assert again == file, (text, formatted)  # noqa: S101
    assert format_properties(again) == formatted, (text, formatted)  # noqa: S101
    lint(file)
    for entry in file.properties:
        explain(entry)
        for target in ("prism", "storm"):
            with contextlib.suppress(TracebridgeError):
                format_formula(entry.formula, target=target)
    with contextlib.suppress(TracebridgeError):
        for entry in resolve_constants(file).properties:
            fold_steps(entry.formula)


def main() -> None:
    """Fuzz from the packaged properties and the seeds; libFuzzer's options are taken from the command line."""
    with tempfile.TemporaryDirectory() as folder:
        seeds = Path(folder, "seeds")
        seeds.mkdir()
        texts = [*SEEDS, *(path.read_text("utf-8") for path in sorted((ROOT / "properties").glob("*.props")))]
        for i, text in enumerate(texts):
            (seeds / f"{i:03}").write_text(text, "utf-8")
        options = [
            "-max_len=4096",
            "-timeout=20",
            "-seed=1",
            f"-dict={WORDS}",
            f"-artifact_prefix={folder}/",
            *sys.argv[1:],
            str(seeds),
        ]
        atheris.Setup([sys.argv[0], *options], test_one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
