"""The demonstration: two simulated backends, the gateway between real SDK clients and them, and a verdict."""
