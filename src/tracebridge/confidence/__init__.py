"""What stated confidence does in multi-agent deliberation: routing, calibration, commitment, and the chains of them."""
