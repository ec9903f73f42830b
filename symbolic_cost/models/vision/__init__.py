"""Networks of images: transformers, hierarchical maps, convolutions, detectors and masks."""
