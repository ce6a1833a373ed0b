"""What the data say about chains that remember more: cross-validation, certificates in two scopes, draws, classes."""
