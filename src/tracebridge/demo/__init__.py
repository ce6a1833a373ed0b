"""The packaged corpus of ``tracebridge demo``: simulated runs of a customer-service agent that handles refunds."""
