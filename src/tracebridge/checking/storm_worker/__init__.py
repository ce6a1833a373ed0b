"""The Storm process: the only modules that import stormpy, and none of them imports anything else of tracebridge.

Storm crashes, hangs, ignores Ctrl-C and prints to the C standard output. Here it may: the process shares nothing with
its client but two pipes, on which the messages of `protocol` go each way. Standard output and error are a third pipe
that the client reads. `protocol` is the one module that the client imports too.
"""
