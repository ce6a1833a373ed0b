"""A stand-in for the executable of PRISM 4.10, for machines without it: the protocol, and its own small model checker.

It runs as a program of its own, knows nothing of tracebridge, and does what PRISM was seen or read to do: it refuses
options that it does not know, iterates by Gauss-Seidel in doubles and eliminates in rationals, has no bounded operator,
no X, no LTL and no rewards but F and S in exact mode, loses the labels of explicit files there, explores what can be
reached of a text, and writes results the way PRISM's StateValues and ResultsExporter do. Models of type mdp it reads as
text; in rationals it tries every policy, in doubles it takes steps only. The environment variable FAKE_PRISM names a
way to fail.
"""

import itertools
import os
import re
import signal
import sys
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

ARITY = {
    "version": 0, "importmodel": 1, "dtmc": 0, "explicit": 0, "gs": 0, "relative": 0, "epsilon": 1, "maxiters": 1,
    "exact": 0, "exportstates": 1, "exportvector": 1, "exportresults": 1,
}  # fmt: skip


def say(text):
    sys.stdout.write(f"{text}\n")


def fail(message):
    say(f"\nError: {message}.")
    sys.exit(1)


class RefusedError(Exception):
    """What PRISM writes in the place of a result."""


# ---------------------------------------------------------------- models


class Model:
    def __init__(self, rows, labels, rewards, initial, number):
        self.rows, self.labels, self.rewards, self.initial, self.number = rows, labels, rewards, initial, number
        self.states = range(len(rows))


class Choices(Model):
    """Of an mdp: for each state its rows, and what they earn; ``rows`` have all successors, for the graph."""

    def __init__(self, options, gains, labels, rewards, initial, number):
        rows = [{j: None for row in held for j in row} for held in options]
        super().__init__(rows, labels, rewards, initial, number)
        self.options, self.gains = options, gains


def explicit(files, number):
    stem, _, endings = files.rpartition(".")
    endings = endings.split(",")
    assert endings[0] == "tra", endings
    lines = Path(f"{stem}.tra").read_text().split("\n")
    n, entries = map(int, lines[0].split())
    rows = [{} for _ in range(n)]
    for line in lines[1 : entries + 1]:
        i, j, p = line.split()
        rows[int(i)][int(j)] = number(p)
    assert lines[entries + 1 :] == [""]
    for i, row in enumerate(rows):
        if abs(sum(row.values()) - 1) > 1e-8:
            fail(f"Probabilities sum to {sum(row.values())} in state {i}")
    labels = {}
    if "lab" in endings:
        head, *lines = Path(f"{stem}.lab").read_text().split("\n")
        names = dict(re.findall(r'(\d+)="(\w+)"', head))
        labels = {name: set() for name in names.values()}
        for line in filter(None, lines):
            state, _, held = line.partition(":")
            for key in held.split():
                labels[names[key]].add(int(state))
    if "sta" in endings:
        assert Path(f"{stem}.sta").read_text() == "(s)\n" + "".join(f"{i}:({i})\n" for i in range(n))
    rewards = None
    if "srew" in endings:
        head, *lines = [line for line in Path(f"{stem}.srew").read_text().split("\n") if line and line[0] != "#"]
        assert head.split() == [str(n), str(len(lines))]
        rewards = [number("0")] * n
        for line in lines:
            i, value = line.split()
            rewards[int(i)] = number(value)
    (initial,) = labels.get("init", {0})
    return Model(rows, labels, rewards, initial, number)


def text_model(path, number):
    text = re.sub(r"//[^\n]*", "", Path(path).read_text())
    assert text.split()[0] in {"dtmc", "mdp"}
    low, _, initial = map(int, re.search(r"s : \[(\d+)\.\.(\d+)\] init (\d+);", text).groups())
    commands = {}
    for action, state, updates in re.findall(r"\[(\w*)\] s=(\d+) -> ([^;]*);", text):
        row = {}
        for update in updates.split(" + "):
            p, target = re.fullmatch(r"(\S+):\(s'=(\d+)\)", update).groups()
            row[int(target)] = number(p)
        if abs(sum(row.values()) - 1) > 1e-12:
            fail(f"Probabilities sum to {sum(row.values())} instead of 1 for a command")
        commands.setdefault(int(state), {})[action] = row
    reached, waiting = {initial}, [initial]
    while waiting:
        for target in (target for row in commands[waiting.pop()].values() for target in row):
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    assert reached == set(range(low, max(commands) + 1)), "the text leaves states out of reach"
    labels = {name: where(rule, reached) for name, rule in re.findall(r'label "(\w+)" = ([^;]*);', text)}
    rewards = None
    if found := re.search(r'rewards "\w+"\s*\n(.*?)endrewards', text, re.S):
        rewards = [number("0")] * len(reached)
        for state, value in re.findall(r"^\s*s=(\d+) : ([^;]*);", found[1], re.M):
            rewards[int(state)] += number(value)
    if text.split()[0] == "dtmc":
        return Model([commands[i][""] for i in sorted(reached)], labels, rewards, initial, number)
    gains = {(i, action): rewards[i] for i in reached for action in commands[i]} if rewards else {}
    for action, state, value in re.findall(r"^\s*\[(\w+)\] s=(\d+) : ([^;]*);", found[1] if found else "", re.M):
        gains[int(state), action] += number(value)
    options = [list(commands[i].values()) for i in sorted(reached)]
    earned = [[gains.get((i, action), number("0")) for action in commands[i]] for i in sorted(reached)]
    return Choices(options, earned, labels, rewards, initial, number)


def where(rule, states):
    code = re.sub(r"(?<![<>])=", "==", rule).replace("&", " and ").replace("|", " or ").replace("false", "False")
    assert re.fullmatch(r"[s\d=<>() andorFalse]*", code), code
    return {s for s in states if eval(code, {"s": s})}  # noqa: S307 - digits and comparisons, as asserted


# ---------------------------------------------------------------- formulas


def parse(text):
    tokens = re.findall(r'"\w+"|\d+|<=|>=|=\?|[A-Za-z]+|[][(){}!&|<>=,]', text)
    return Parser(tokens)


class Parser:
    def __init__(self, tokens):
        self.tokens, self.at = tokens, 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self, wanted=None):
        token = self.peek()
        if wanted is not None and token != wanted:
            fail(f"Syntax error ({token}, {self.tokens})")
        self.at += 1
        return token

    def bound(self):
        """The first and the last step."""
        match self.peek():
            case "<=":
                self.take()
                return 0, int(self.take())
            case "<":
                self.take()
                return 0, int(self.take()) - 1
            case ">=":
                self.take()
                return int(self.take()), None
            case ">":
                self.take()
                return int(self.take()) + 1, None
            case "=":
                self.take()
                k = int(self.take())
                return k, k
            case "[":
                self.take()
                first = int(self.take())
                self.take(",")
                last = int(self.take())
                self.take("]")
                return first, last
        return None

    def formula(self):
        left = self.join()
        if self.peek() in {"U", "W", "R"} and self.tokens[self.at + 1] != "=?":
            kind, bound = self.take(), self.bound()
            return (kind, bound, left, self.join())
        return left

    def join(self):
        left = self.unary()
        while self.peek() in {"&", "|"}:
            left = (self.take(), left, self.unary())
        return left

    def unary(self):
        token = self.take()
        match token:
            case "!":
                return ("!", self.unary())
            case "(":
                inner = self.formula()
                self.take(")")
                return inner
            case "X":
                return ("X", self.unary())
            case "F" | "G":
                bound = self.bound()
                return (token, bound, self.unary())
            case "E" | "A":
                return (token, self.bracketed())
            case "P" | "S":
                self.take("=?")
                return (token, self.bracketed())
            case "R":
                self.take("=?")
                return ("R", self.reward())
            case "Pmin" | "Pmax":
                self.take("=?")
                return (token, self.bracketed())
            case "Rmin" | "Rmax":
                self.take("=?")
                return (token, self.reward())
            case "filter":
                self.take("(")
                self.take("state")
                self.take(",")
                inner = self.formula()
                for part in (",", "s", "="):
                    self.take(part)
                state = int(self.take())
                self.take(")")
                return ("filter", inner, state)
            case "true":
                return ("true",)
            case "false":
                return ("false",)
        if token is None or not token.startswith('"'):
            fail(f"Syntax error ({token}, {self.tokens})")
        return ("label", token[1:-1])

    def bracketed(self):
        self.take("[")
        inner = self.formula()
        self.take("]")
        return inner

    def reward(self):
        self.take("[")
        kind = self.peek()
        if kind in {"C", "S", "I"}:
            self.take()
            bound = None if kind == "S" else self.bound()
            self.take("]")
            return (kind, bound)
        inner = self.formula()
        self.take("]")
        return inner


# ---------------------------------------------------------------- checking


class Checker:
    def __init__(self, model, exact, epsilon):
        self.m, self.exact, self.epsilon = model, exact, epsilon
        self.one, self.zero = model.number("1"), model.number("0")

    def truths(self, f):
        states = set(self.m.states)
        match f:
            case ("true",):
                return states
            case ("false",):
                return set()
            case ("label", name):
                if name not in self.m.labels:
                    fail(f'Unknown label "{name}" in property')
                return self.m.labels[name]
            case ("!", a):
                return states - self.truths(a)
            case ("&", a, b):
                return self.truths(a) & self.truths(b)
            case ("|", a, b):
                return self.truths(a) | self.truths(b)
            case ("E", path):
                return self.exists(path)
            case ("A", path):
                return states - self.exists(negation(path))
        raise RefusedError(f"no truth value: {f}")

    def exists(self, path):
        match path:
            case ("X", a):
                a = self.truths(a)
                return {s for s in self.m.states if a & set(self.m.rows[s])}
            case ("F", None, a):
                return self.back(set(self.m.states), self.truths(a))
            case ("U", None, a, b):
                return self.back(self.truths(a), self.truths(b))
            case ("G", None, a):
                kept = set(self.truths(a))
                while dead := {s for s in kept if not kept & set(self.m.rows[s])}:
                    kept -= dead
                return kept
            case ("!", ("X", a)):
                return self.exists(("X", ("!", a)))
            case ("!", ("F", None, a)):
                return self.exists(("G", None, ("!", a)))
            case ("!", ("G", None, a)):
                return self.exists(("F", None, ("!", a)))
        raise RefusedError("A with U is not yet supported")

    def back(self, stay, goal):
        found = set(goal)
        while more := {s for s in stay - found if found & set(self.m.rows[s])}:
            found |= more
        return found

    def values(self, f):
        match f:
            case ("Pmin" | "Pmax" | "Rmin" | "Rmax", what):
                return self.optimum(f[0], what)
            case ("P" | "R", _) if isinstance(self.m, Choices):
                fail("nondeterministic models need Pmin/Pmax or Rmin/Rmax")
            case ("P", path):
                return self.probability(path)
            case ("R", what):
                return self.reward(what)
            case ("S", a):
                held = self.truths(a)
                return self.long_run([self.one if s in held else self.zero for s in self.m.states])
            case ("filter", inner, state):
                return [self.values(inner)[state]] * len(self.m.rows)
        held = self.truths(f)
        return [s in held for s in self.m.states]

    def optimum(self, asked, what):
        """Over all choices: by every policy in rationals, a step at a time in doubles."""
        best = min if asked.endswith("min") else max
        if not self.exact:
            return self.steps(best, asked, what)
        found = None
        for policy in itertools.product(*map(range, map(len, self.m.options))):
            rows = [options[k] for options, k in zip(self.m.options, policy, strict=True)]
            gains = [earned[k] for earned, k in zip(self.m.gains, policy, strict=True)]
            chain = Checker(Model(rows, self.m.labels, gains, self.m.initial, self.m.number), True, self.epsilon)
            values = chain.probability(what) if asked[0] == "P" else chain.reward(what)
            found = values if found is None else list(map(best, found, values))
        return found

    def steps(self, best, asked, what):
        everywhere = set(self.m.states)

        def step(values, gains=None):
            gains = gains or [[0.0] * len(options) for options in self.m.options]
            return [
                best(gain + sum(p * values[j] for j, p in row.items()) for gain, row in zip(earned, held, strict=True))
                for earned, held in zip(gains, self.m.options, strict=True)
            ]

        match asked[0], what:
            case "P", ("X", a):
                held = self.truths(a)
                return step([float(s in held) for s in everywhere])
            case "P", ("U", (first, last), a, b) if last is not None:
                stay, goal = self.truths(a), self.truths(b)
                values = [float(s in goal) for s in everywhere]
                for k in range(last):
                    stepped = step(values)
                    reached = [1.0 if s in goal else stepped[s] if s in stay else 0.0 for s in everywhere]
                    values = reached if k < last - first else [stepped[s] if s in stay else 0.0 for s in everywhere]
                return values
            case "R", ("C", (_, k)):
                values = [0.0] * len(self.m.rows)
                for _ in range(k):
                    values = step(values, self.m.gains)
                return values
            case "R", ("I", (k, _)):
                values = self.m.rewards
                for _ in range(k):
                    values = step(values)
                return values
        raise RefusedError(f"in doubles this would be iterated: {what}")

    def probability(self, path):
        everywhere = set(self.m.states)
        match path:
            case ("!", inner):
                return self.complement(self.probability(inner))
            case ("X", a) if is_state(a):
                if self.exact:
                    raise RefusedError("Next operator not supported by exact engine")
                held = self.truths(a)
                return self.step([self.one if s in held else self.zero for s in everywhere])
            case ("F", bound, a) if is_state(a):
                return self.until(everywhere, self.truths(a), bound)
            case ("G", bound, a) if is_state(a):
                return self.complement(self.until(everywhere, everywhere - self.truths(a), bound))
            case ("U", bound, a, b) if is_state(a) and is_state(b):
                return self.until(self.truths(a), self.truths(b), bound)
            case ("W", bound, a, b) if is_state(a) and is_state(b):
                a, b = self.truths(a), self.truths(b)
                return self.complement(self.until(a - b, everywhere - a - b, bound))
            case ("R", bound, a, b) if is_state(a) and is_state(b):
                return self.complement(self.until(everywhere - self.truths(a), everywhere - self.truths(b), bound))
        if self.exact:
            raise RefusedError("The exact engine does not yet handle LTL-style path formulas")
        return self.progressed(path)

    def complement(self, values):
        return [self.one - value for value in values]

    def step(self, values):
        return [sum(p * values[j] for j, p in row.items()) for row in self.m.rows]

    def until(self, stay, goal, bound):
        if bound is None:
            return self.reach(stay, goal)
        if self.exact:
            raise RefusedError("Bounded until operator not supported by exact engine")
        first, last = bound
        if last is not None and last < first:
            raise RefusedError(f"Invalid bounds [{first},{last}]")
        values = self.reach(stay, goal) if last is None else [float(s in goal) for s in self.m.states]
        for _ in range(0 if last is None else last - first):
            stepped = self.step(values)
            values = [1.0 if s in goal else stepped[s] if s in stay else 0.0 for s in self.m.states]
        for _ in range(first):
            stepped = self.step(values)
            values = [stepped[s] if s in stay else 0.0 for s in self.m.states]
        return values

    def reach(self, stay, goal):
        possible = self.back(stay, goal)
        certain = set(self.m.states) - self.back(stay - goal, set(self.m.states) - possible)
        known = {s: self.one if s in certain else self.zero for s in self.m.states if s in certain or s not in possible}
        return self.solve(known, [self.zero] * len(self.m.rows))

    def solve(self, known, gain):
        """x = gain + P x off the known values: Gauss-Seidel in doubles, elimination in rationals."""
        unknown = [s for s in self.m.states if s not in known]
        x = [known.get(s, self.zero) for s in self.m.states]
        if self.exact:
            return self.eliminated(unknown, x, gain)
        change = 1.0
        while change > self.epsilon and unknown:
            change = 0.0
            for s in unknown:
                row = self.m.rows[s]
                new = gain[s] + sum(p * x[j] for j, p in row.items() if j != s)
                new /= 1 - row.get(s, 0.0)
                if new:
                    change = max(change, abs(new - x[s]) / new)
                x[s] = new
        return x

    def eliminated(self, unknown, x, gain):
        rows = []
        for s in unknown:
            row = [-self.m.rows[s].get(j, self.zero) for j in unknown]
            row[unknown.index(s)] += self.one
            rows.append([*row, gain[s] + sum(p * x[j] for j, p in self.m.rows[s].items() if j not in unknown)])
        for k in range(len(rows)):
            pivot = next(i for i in range(k, len(rows)) if rows[i][k])
            rows[k], rows[pivot] = rows[pivot], rows[k]
            rows[k] = [value / rows[k][k] for value in rows[k]]
            for i in range(len(rows)):
                if i != k and (factor := rows[i][k]):
                    rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
        for k, s in enumerate(unknown):
            x[s] = rows[k][-1]
        return x

    def reward(self, what):
        gain = self.m.rewards
        match what:
            case ("S", None):
                return self.long_run(gain)
            case ("F", None, a):
                return self.until_goal(gain, self.truths(a))
        if self.exact:
            raise RefusedError(f"The exact engine does not yet handle the {what[0]} operator in the R operator")
        match what:
            case ("I", (k, _)):
                values = gain
                for _ in range(k):
                    values = self.step(values)
                return values
            case ("C", (_, k)):
                values = [0.0] * len(gain)
                for _ in range(k):
                    values = [g + v for g, v in zip(gain, self.step(values), strict=True)]
                return values
            case ("C", None):
                never = set(self.m.states) - self.back(set(self.m.states), {s for s in self.m.states if gain[s]})
                return self.until_goal(gain, never)
        raise RefusedError("R operator contains a path formula that is not supported")

    def until_goal(self, gain, goal):
        everywhere = set(self.m.states)
        never = everywhere - self.back(everywhere, goal)
        endless = self.back(everywhere - goal, never)
        known = dict.fromkeys(endless, float("inf")) | dict.fromkeys(goal, self.zero)
        return self.solve(known, gain)

    def long_run(self, gain):
        """Where every recurrent class is one state."""
        total = [self.zero] * len(self.m.rows)
        for s in self.m.states:
            if set(self.m.rows[s]) == {s} and gain[s]:
                total = [t + p * gain[s] for t, p in zip(total, self.reach(set(self.m.states), {s}), strict=True)]
        return total

    def progressed(self, path):
        """The probability of a co-safe path formula: that of reaching pairs of a state and nothing left to do."""
        pairs, rows, waiting = {}, [], []

        def pair(state, rest):
            if (state, rest) not in pairs:
                pairs[state, rest] = len(pairs)
                rows.append({})
                waiting.append((state, rest))
            return pairs[state, rest]

        starts = [pair(s, path) for s in self.m.states]
        while waiting:
            state, rest = waiting.pop()
            after = self.progress(rest, state)
            if after in (True, False):
                pairs_row = {pairs[state, rest]: self.one}
            else:
                pairs_row = {pair(j, after): p for j, p in self.m.rows[state].items()}
            rows[pairs[state, rest]] = pairs_row
        done = {i for (state, rest), i in pairs.items() if self.progress(rest, state) is True}
        product = Checker(Model(rows, {}, None, 0, self.m.number), self.exact, self.epsilon)
        values = product.reach(set(product.m.states), done)
        return [values[i] for i in starts]

    def progress(self, path, state):
        match path:
            case True | False:
                return path
            case ("&" | "|", a, b) if not is_state(path):
                a, b = self.progress(a, state), self.progress(b, state)
                if path[0] == "|":
                    return True if True in (a, b) else b if a is False else a if b is False else ("|", a, b)
                return False if False in (a, b) else b if a is True else a if b is True else ("&", a, b)
            case ("X", a):
                return a
            case ("F", None, a):
                now = self.progress(a, state)
                return True if now is True else path if now is False else ("|", now, path)
            case ("U", None, a, b):
                rest = ("|", b, ("&", a, ("X", path)))
                return self.progress(rest, state)
        if not is_state(path):
            raise RefusedError(f"this path formula is not supported: {path}")
        return state in self.truths(path)


def is_state(f):
    return f in (True, False) or (f[0] in {"label", "true", "false", "E", "A"}) or (
        f[0] in {"!", "&", "|"} and all(map(is_state, f[1:]))
    )  # fmt: skip


def negation(path):
    return path[1] if path[0] == "!" else ("!", path)


# ---------------------------------------------------------------- output


def java(value):
    """As Java prints a double, a boolean, or PRISM's BigRational."""
    if isinstance(value, bool):
        return str(value).lower()
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Fraction):
        return str(value)
    number = Decimal(repr(value))
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = format(number, "f")
        return text if "." in text else f"{text}.0"
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    return f"{'-' * (value < 0)}{digits[0]}.{digits[1:] or 0}E{number.adjusted()}"


def main():
    how = os.environ.get("FAKE_PRISM", "")
    options, names, arguments = {}, [], sys.argv[1:]
    while arguments:
        argument = arguments.pop(0)
        if not argument.startswith("-"):
            names.append(argument)
        elif argument[1:] not in ARITY:
            fail(f'Invalid switch {argument} (type "prism -help" for full list)')
        else:
            options[argument[1:]] = arguments.pop(0) if ARITY[argument[1:]] else True
    if "version" in options:
        say("PRISM version 4.10.fake" if how != "another program" else "5.8.1")
        return
    say("PRISM\n=====\n\nVersion: 4.10.fake")
    match how:
        case "message":
            fail("Something about the model is wrong")
        case "hang":
            Path(os.environ["FAKE_PRISM_PIDS"]).write_text(f"{os.getpid()}")
            time.sleep(60)
        case "orphan":  # as the shell script leaves a Java behind
            told = Path(os.environ["FAKE_PRISM_PIDS"])
            if os.fork() == 0:
                told.write_text(f"{os.getpid()}")
                time.sleep(60)
            while not (told.exists() and told.read_text()):
                time.sleep(0.01)
        case "flood":
            for _ in range(100):
                sys.stdout.write("x" * 1_000_000)
        case "signal":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "nothing":
            return
    exact = "exact" in options

    def number(text):
        top, _, bottom = text.partition("/")
        kind = Fraction if exact else float
        return kind(top) / kind(bottom or 1)

    if "importmodel" in options:
        model = explicit(options["importmodel"], number)
        assert options["dtmc"]
        assert options["explicit"]
        if exact:
            model.labels = {}
    else:
        model = text_model(names.pop(0), number)
    (properties,) = names
    checker = Checker(model, exact, float(options.get("epsilon", 1e-6)))
    questions = [line.rstrip(";") for line in Path(properties).read_text().split("\n") if line]
    results, vector = [], None
    for question in questions:
        named = re.fullmatch(r'"(\w+)": (.*)', question)
        formula = (named[2] if named else question).strip()
        parser = parse(formula)
        tree = parser.formula()
        if parser.peek() is not None:
            fail(f"Syntax error ({parser.peek()}, {formula})")
        try:
            vector = checker.values(tree)
            results.append(java(vector[model.initial]))
        except RefusedError as refused:
            results.append(f"Error: {refused}.")
    write(options, model, questions, results, vector, how)


def write(options, model, questions, results, vector, how):
    order = list(model.states)
    if how == "permuted":
        order.reverse()
    if "exportstates" in options:
        shown = order[:-1] if how == "fewer states" else order
        lines = ["(s)", *(f"{i}:({s})" for i, s in enumerate(shown))]
        if how == "twice":
            lines[2] = "1:(0)"
        Path(options["exportstates"]).write_text("\n".join(lines) + "\n")
    if "exportvector" in options and vector is not None and how != "no vector":
        lines = [java(vector[s]) for s in order]
        match how:
            case "nan":
                lines[1] = "NaN"
            case "foreign":
                lines[0] = "0.1 (approximately)"
            case "fewer values":
                lines.pop()
            case "impossible":
                lines[0] = "1.5"
            case "negative":
                lines[0] = "-0.25"
            case "wrong":
                lines[0] = "0.125"
        text = "\n".join(lines) + "\n"
        if how == "truncated":
            text = text[:-3]
        if how == "huge":
            text = "0.5\n" * 1_000_000
        Path(options["exportvector"]).write_text(text)
    path, _, form = options["exportresults"].partition(":")
    assert form == "csv"
    blocks = []
    for question, result in zip(questions, results, strict=True):
        head = '"' + question.replace('"', '""') + '"\n' if len(questions) > 1 else ""
        blocks.append(f"{head}Result\n{result}\n")
    if how == "fewer results":
        blocks.pop()
    if how == "other rational":
        blocks[0] = blocks[0].replace("Result\n", "Result\nabout ")
    Path(path).write_text("\n".join(blocks))
